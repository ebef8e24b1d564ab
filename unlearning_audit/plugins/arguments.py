"""Match the parameters of a published unlearning function to what it can be given, by their names."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from unlearning_audit.plugins.suggest import unknown
from unlearning_audit.plugins.syntax import Parameter

#: Role → other names of it in published code.
SYNONYMS = {
    "model": ("net", "network", "student", "model_s", "unlearn_model", "unlearned_model", "model_to_unlearn"),
    "original": (
        "original_model", "ori_model", "orig_model", "teacher", "teacher_model", "model_t", "full_trained_teacher",
        "full_teacher", "competent_teacher", "pretrained_model", "trained_model", "reference_model",
    ),
    "fresh_model": (
        "unlearning_teacher", "unlearn_teacher", "incompetent_teacher", "bad_teacher", "dumb_teacher", "random_model",
        "init_model", "untrained_model",
    ),
    "loaders": ("data_loaders", "dataloaders", "loader_dict"),
    "args": ("opt", "opts", "cfg", "config", "conf", "hparams"),
    "criterion": ("criteria", "loss_fn", "loss_func", "loss_function"),
    "optimizer": ("optimiser", "optim"),
    "num_classes": ("n_classes", "nb_classes", "classes", "num_class", "class_num", "num_labels"),
    "device": ("dev",),
    "seed": ("random_seed", "rng_seed"),
    "batch_size": ("bs",),
    "num_workers": ("workers",),
}  # fmt: skip
BY_NAME = {name: role for role, names in SYNONYMS.items() for name in (role, *names)} | {"logger": "logger"}

#: Words for a set of samples, and words for the kind of object that holds it. Whole words count, in any order.
SETS = {
    "forget": "forget forgotten forgetting unlearn unlearned unlearning remove removed erase erased delete deleted",
    "retain": "retain retained remain remaining keep kept preserve preserved",
    "val": "val valid validation test testing eval evaluation",
    "train": "train training full all",
}
KINDS = {"data": "data dataset set ds samples examples", "loader": "loader dataloader dl iter batches batch"}
SET_OF = {word: subset for subset, words in SETS.items() for word in words.split()}
KIND_OF = {word: kind for kind, words in KINDS.items() for word in words.split()}

#: The short names D_f and D_r of papers, which count only where a function takes both.
SHORT = {"df": "forget", "dr": "retain"}

#: Roles of arguments, which a study's field ``give`` names: forget_loader, forget_data and so on for every set, and
#: those with names of their own. `docs/method.md` and `methods._call` say what each is.
ROLES = (*SYNONYMS, "logger", *(f"{subset}_{kind}" for kind in KINDS for subset in SETS))

#: Words that make a name a number, a switch or the opposite: num_forget_samples, use_train_set, non_forget_data.
OTHERWISE = {"num", "n", "nb", "no", "number", "count", "use", "with", "without", "not", "non", "except"}

#: Roles that are given only if the parameter has no default. The same holds for names that may be switches, such as
#: test or keep, unless they contain a noun.
ONLY_IF_REQUIRED = ("criterion", "optimizer", "batch_size", "logger")
NOUNS = ("forget", "retain", "remain")


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case, split at "_", digits and capitals. "trainset" is two words, and "D_f"
    is the word df.

    >>> [words_of(name) for name in ("retain_loader2", "forgetDL", "D_retain", "trainset", "D_f")]
    [['retain', 'loader'], ['forget', 'dl'], ['d', 'retain'], ['train', 'set'], ['df']]
    """
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    if words[:2] in (["d", "f"], ["d", "r"]):
        words[:2] = ["".join(words[:2])]
    # A set and a kind written as one word, such as "trainset", are two. "dataset" is a word of KIND_OF itself.
    joined = re.compile(f"^({'|'.join([*SET_OF, *SHORT])})({'|'.join(KIND_OF)})$")
    separated = [word if word in KIND_OF else joined.sub(r"\1 \2", word) for word in words]
    return " ".join(separated).split()


def role(name: str, *, short: bool = False) -> str | None:
    """Return which of `ROLES` a parameter of this name stands for; None if the name does not tell.

    A name that is no synonym (`SYNONYMS`) is split into words. They must name a set of samples (`SETS`), and may name
    the kind of object that holds it (`KINDS`); without a kind, a loader is meant. A name with both sets, forget
    and retain, or with a word of `OTHERWISE` does not tell.

    Parameters
    ----------
    short
        Whether the abbreviations D_f and D_r count as names of the samples to forget and to keep.

    >>> [role(name) for name in ("net", "forget_train_dl", "retain_data", "D_forget", "noisy_loader", "forget_class")]
    ['model', 'forget_loader', 'retain_data', 'forget_loader', None, None]
    """
    plain = name.lower().strip("_")
    if plain in BY_NAME:
        return BY_NAME[plain]
    words = words_of(name)
    set_of = {**SET_OF, **(SHORT if short else {})}
    sets = {set_of[word] for word in words if word in set_of}
    kinds = {KIND_OF[word] for word in words if word in KIND_OF}
    if not sets or {"forget", "retain"} <= sets or OTHERWISE & {*words} or words in (["all"], ["full"]):
        return None
    # A name with an unknown word counts if its last word is a kind, as in "cifar_forget_loader".
    if not {*words} <= {*set_of, *KIND_OF, "d"} and words[-1] not in ("data", "dataset", "set", "ds", "loader", "dl"):
        return None
    # Of several sets the first of SETS counts: "forget_valid_dl" holds samples to forget. But "retain_valid_dl" is a
    # validation set.
    subset = "val" if sets == {"retain", "val"} else min(sets, key=list(SETS).index)
    return f"{subset}_{'data' if kinds == {'data'} else 'loader'}"


def assigned(
    parameters: Sequence[Parameter], options: Mapping[str, Any], give: Mapping[str, str], *, more: bool
) -> dict[str, str | None]:
    """Decide what each parameter of a published unlearning function receives: return parameter → its role in `ROLES`,
    or None if it receives the option of its own name.

    Parameters that keep their default are left out.

    A parameter receives the first of these that exists: 1. the option of its name (except that for an optimizer, a
    mapping only describes the optimizer that is given); 2. the role that ``give`` states; 3. the role that its name
    suggests; 4. its default. A default goes before some suggested roles (`_keeps_default`). If no parameter stands for
    the model to unlearn, a single original model does. D_f and D_r are recognised only if both occur.

    Parameters
    ----------
    options
        The function's own options.
    give
        Parameter → role, as the study states it.
    more
        Whether the function takes further keywords.

    Raises
    ------
    ValueError
        For a parameter that receives nothing, for an option that no parameter takes, and for a function that takes no
        model or no samples.
    """
    for name, stated in give.items():
        if stated not in ROLES:
            raise ValueError(f"give.{name}: {unknown(stated, ROLES, f'thing {stated!r} to be given')}")
    short = {*SHORT} <= {word for parameter in parameters for word in words_of(parameter.name)}
    roles = {p.name: give.get(p.name) or role(p.name, short=short) for p in parameters}
    originals = [name for name, purpose in roles.items() if purpose == "original"]
    if "model" not in roles.values() and len(originals) == 1:  # the original is then the model that shall forget
        roles[originals[0]] = "model"
    received: dict[str, str | None] = {}
    for parameter in parameters:
        purpose = roles[parameter.name]
        if parameter.name in options and not (purpose == "optimizer" and isinstance(options[parameter.name], Mapping)):
            received[parameter.name] = None
        elif purpose and (parameter.required or parameter.name in give or not _keeps_default(parameter.name, purpose)):
            received[parameter.name] = purpose
        elif parameter.required:
            known = ", ".join(ROLES)
            advice = f"set options.{parameter.name}, or say with give.{parameter.name} which of {known} it is"
            raise ValueError(f"the parameter {parameter.name!r} is not known; {advice}")
    filled = {purpose for purpose in received.values() if purpose}
    # Without the model or any samples to forget or keep, it cannot be a function that unlearns.
    samples = [purpose for purpose in filled if purpose.startswith(("retain", "forget", "train", "loaders"))]
    if "model" not in filled or not samples:
        signature = ", ".join(parameter.name for parameter in parameters)
        raise ValueError(f"it must take (model, retain_loader, forget_loader) or some of these; it takes ({signature})")
    # A parameter such as args takes all options, so that none is left over.
    unused = [name for name in options if name not in roles and not more and "args" not in filled]
    if unused:
        raise ValueError(f"options.{unused[0]}: {unknown(unused[0], roles, f'parameter {unused[0]!r}')}")
    return received


def _keeps_default(name: str, purpose: str) -> bool:
    """Return whether a parameter that has a default keeps it, although its name suggests the role ``purpose``.

    It keeps the default if the role is in `ONLY_IF_REQUIRED`, or if the parameter's name may also be a switch: words
    such as test or train, without a noun such as forget and without a word for data or loader.
    """
    may_be_switch = purpose.endswith("_loader") and not {*words_of(name)} & {*KIND_OF, *SHORT, *NOUNS}
    return purpose in ONLY_IF_REQUIRED or may_be_switch
