"""What a published unlearning function is called with: its parameters are recognised by their names."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from unlearning_audit.plugins.suggest import unknown
from unlearning_audit.plugins.syntax import Parameter

#: What can be given → what it is. A study's field ``give`` uses these names.
ROLES = {
    "model": "the model that shall forget",
    "original": "a second copy of it, as trained, in evaluation mode",
    "fresh_model": "a model of the same architecture with new initial weights",
    "retain_loader": "batches of the samples to keep",
    "forget_loader": "batches of the samples to forget",
    "val_loader": "batches of a part of the samples to keep",
    "train_loader": "batches of all samples of the original training",
    "retain_data": "the samples to keep, one by one",
    "forget_data": "the samples to forget, one by one",
    "val_data": "a part of the samples to keep, one by one",
    "train_data": "all samples of the original training, one by one",
    "loaders": "a mapping retain, forget, val, test and train → batches; those of val serve as test",
    "args": "a namespace of all options, with num_classes, device, seed and batch_size",
    "criterion": "cross-entropy",
    "optimizer": "the optimiser of torch.optim that options.optimizer describes",
    "num_classes": "the number of classes",
    "device": "where the model is",
    "seed": "the model's own seed",
    "batch_size": "samples in a batch",
    "num_workers": "0, as the samples lie in memory",
    "logger": "a logger that writes to the job's log.txt",
}

#: Other names by which published code calls them.
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

#: Beginnings of words that say which samples; the first that fits counts.
SAMPLES = {
    "forget": ("forget", "unlearn", "remov", "eras", "delet"),
    "retain": ("retain", "remain", "keep"),
    "val": ("val", "test", "eval", "dev"),
    "train": ("train", "full", "all"),
}
DATASET, LOADER = re.compile(r".*(data|set)|ds"), re.compile(r".*(loader|iter)|dl")

#: Words that mean batches where they stand alone.
ALONE = ("retain", "remain", "forget", "val", "valid", "validation", "test", "train")

#: Given only where the function has no default of its own.
MODEST = ("criterion", "optimizer", "batch_size", "logger")

#: What an unlearning function without telling names gets, in this order.
BY_PLACE = ("model", "retain_loader", "forget_loader", "val_loader")


def role(name: str) -> str | None:
    """Which of `ROLES` a parameter of this name asks for; None if the name does not tell.

    >>> [role(name) for name in ("net", "forget_train_dl", "retain_data", "full_train_dl", "alpha")]
    ['model', 'forget_loader', 'retain_data', 'train_loader', None]
    """
    plain = name.lower().strip("_")
    if plain in BY_NAME:
        return BY_NAME[plain]
    words = re.findall(r"[a-z]+", plain)
    starts = [start for word in words for start, begins in SAMPLES.items() if word.startswith(begins)]
    singly = DATASET.fullmatch(words[-1]) if words else None
    batches = words and (LOADER.fullmatch(words[-1]) or words in ([word] for word in ALONE))
    if not (starts and (singly or batches)):
        return None
    # "retain_valid_dl" is for validation, while "forget_valid_dl" of single samples are those to forget.
    part = "val" if {"retain", "val"} == set(starts) else min(starts, key=list(SAMPLES).index)
    return f"{part}_{'data' if singly else 'loader'}"


def assigned(
    parameters: Sequence[Parameter], options: Mapping[str, Any], give: Mapping[str, str], *, more: bool
) -> dict[str, str | None]:
    """Parameter → one of `ROLES`, or None where the option of that name is given; ``more``: the function takes any
    further keyword. Parameters that keep their own default are left out.

    Raises ValueError with one sentence for a parameter that nothing is known of, and for an option without a place.
    """
    for name, place in give.items():
        if place not in ROLES:
            raise ValueError(f"give.{name}: {unknown(place, ROLES, f'thing {place!r} to be given')}")
    roles = {parameter.name: give.get(parameter.name) or role(parameter.name) for parameter in parameters}
    required = [parameter.name for parameter in parameters if parameter.required]
    if len(required) in (3, 4) and not any(roles[name] or name in options for name in required[1:]):
        roles |= dict(zip(required, BY_PLACE, strict=False))
    if "model" not in roles.values():  # what is called the original is then the model that shall forget
        roles |= dict.fromkeys([n for n, purpose in roles.items() if purpose == "original"][:1], "model")
    places = {}
    for parameter in parameters:
        purpose = roles[parameter.name]
        if parameter.name in options and not (purpose == "optimizer" and isinstance(options[parameter.name], Mapping)):
            places[parameter.name] = None
        elif purpose and (parameter.required or purpose not in MODEST):
            places[parameter.name] = purpose
        elif parameter.required:
            raise ValueError(
                f"the parameter {parameter.name!r} is not known; set options.{parameter.name}, or say by "
                f"give.{parameter.name} which of {', '.join(ROLES)} it is"
            )
    filled = {*places.values()} - {None}
    if "model" not in filled or not any(
        purpose.startswith(("retain", "forget", "train", "loaders")) for purpose in filled
    ):
        signature = ", ".join(parameter.name for parameter in parameters)
        raise ValueError(f"it must take (model, retain_loader, forget_loader) or some of these; it takes ({signature})")
    lost = [name for name in options if name not in roles and not more and "args" not in filled]
    if lost:
        raise ValueError(f"options.{lost[0]}: {unknown(lost[0], roles, f'parameter {lost[0]!r}')}")
    return places
