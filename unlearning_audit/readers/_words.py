"""Derive model, role, method and step from the words of paths and of configuration files beside results."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from unlearning_audit.readers._model import NONE, RETRAIN, UNKNOWN, UNLEARNED, Model

#: Words before the number of one of several models of a kind: one word with the number, such as seed3, or two.
_ONE = "(?:random-?)?(?:seed|rs|rng|init|run|rank|rep|repeat|replicate|replica|trial|try|fold|copy|shard)"
#: What the words of names mean. The first pattern that fits a word in small letters decides; any other word names the
#: model itself. "foreign" models were trained neither on the forget set nor on the retained samples; "plain" words say
#: nothing about a model.
MEANINGS = {
    meaning: re.compile(rf"^(?:{pattern})$")
    for meaning, pattern in {
        "replicate": rf"(?:{_ONE}|s)[-=]?\d+",
        "one of several": _ONE,
        "step": r"(checkpoint|ckpt|step|global-step|iter(ation)?)-?\d+",
        NONE: "full|target|original|originals|fine-?tuned?|before|none|memoriz(e|ing)d?",
        RETRAIN: r"(naive-)?(retrain|retain)(ed|ing)?(-?model|-from-scratch|-?\d*)|oracles?-?\d*|gold(en)?|"
                 "reference-retrain|exact|(from-)?scratch",
        UNLEARNED: "unlearn(ed|ing)?|forgot(ten)?|after",
        "task": r"(forget|holdout|retain)(-?set)?-?\d+|news|books",
        "setting": "(wd|weight-?decay|lr|epochs?|ep|bs|batch(size)?|warmup|wu|alpha|beta|gamma|lambda|delta|tau|"
                   "rank|rslora|lora|r|k|m|steps?|coeff?|scale|temp|layers?|drop|eps|clip|acc|ga|gpus?|size|ds)"
                   r"[-=]?-?\d+([.]\d+)?(e-?\d+)?",
        "foreign": "pretrain(ed)?|base(line)?|zero-?shot|untrained",
        "plain": r"saves?|evals?|evaluations?|results?|outputs?|logs?|runs?|exp(eriments?)?|checkpoints?|data|ds|"
                 r"size\d+|models?|tmp|tofu|muse|wmdp|json|npy|npz|csv|aggregated|summary|finetune|ft|train(ing)?|"
                 "files?|scores?|loss(es)?|home|from|",
    }.items()
}  # fmt: skip
#: The name of a folder for one checkpoint, whose number may count epochs.
_STEP_FOLDER = re.compile(r"^(?:checkpoint|ckpt|(?:global[-_])?step|iter(?:ation)?|epoch)[-_=]?(\d+)$")
#: Words after which a number counts models, as in retrain_1.
_COUNTED = MEANINGS["one of several"], MEANINGS[NONE], MEANINGS[RETRAIN], re.compile("^(unlearned|model)$")
#: Separators of words. A hyphen separates only before such a word and its number, as in NPO-seed=3.
_BETWEEN = re.compile(rf"[_/\s()]+|-(?={_ONE}[-=]?\d+(?:[_/\s]|$))", re.IGNORECASE)
#: Words beside which "rank" is the rank of an adapter.
_ADAPTER = re.compile(r"lora|adapter|peft", re.IGNORECASE)
#: The name of a model with its size or version, such as Llama-3.2-1B.
_SIZED = re.compile(r"(?=.*\d)(?=.*[a-z]).{4,}", re.IGNORECASE)

#: The end of the reason of a role that a word of a name gives; the word stands before it, in quotation marks.
BY_NAME = " in its name"


def model_of_path(path: Path, root: Path, names: tuple[str, ...] = ()) -> Model:
    """Return the model of the file ``path``, with what the names of folders say about the model: the names of ``root``,
    and of the folders between ``root`` and the file.

    If the file lies in ``root`` itself, the names of the three folders above the file are read instead. If ``root`` is
    a checkpoint's folder, whose name says only the step, the name of the folder above ``root`` is read as well.

    Parameters
    ----------
    root
        The folder that the user named.
    names
        Further names, which the model has within the file.
    """
    file, top = path.resolve(), root.resolve()
    is_checkpoint = bool(_STEP_FOLDER.match(top.name.lower()))
    if top == file.parent and not is_checkpoint:
        return model_of_names((*file.parts[-4:-1], *names), path)
    inside = file.relative_to(top).parts[:-1] if file.is_relative_to(top) else ()
    above = (top.parent.name,) if is_checkpoint else ()
    return model_of_names((*above, top.name, *inside, *names), path)


def trained_model(path: Path, root: Path, **known: Any) -> Model:
    """Return the model of a file in a format of a tool that audits training, and so knows no unlearning.

    The model has the role "none" (before unlearning) unless the name of a folder or of the file states another role. It
    has no words, so that all models of such files are compared.

    Parameters
    ----------
    root
        The folder that the user named, below which names tell the role.
    known
        Further fields of the model.
    """
    model = model_of_path(path, root)
    return replace(model, role=model.role or NONE, words=(), **known)


def model_of_names(names: tuple[str, ...], file: Path = Path()) -> Model:
    """Return a model of a ``file`` with what names say about it: its role, step, task, recipe (settings of training),
    replicate (such as its seed), and its words, which name the model itself.

    If names disagree on the role or the step, the innermost name that tells it counts. The task is the first word that
    names a forget set or, without one, the first word that names a task.

    Parameters
    ----------
    names
        The names of folders, outermost first, then of entries in the file.
    """
    role, step, decided = UNKNOWN, None, ""
    words_of: dict[str, list[str]] = {meaning: [] for meaning in ("", *MEANINGS)}
    of_adapter = any(map(_ADAPTER.search, names))
    for name in names:
        if match := _STEP_FOLDER.match(name.lower()):
            step = int(match[1])
            continue
        word_of_role: dict[str, str] = {}
        for word, meaning in _with_meanings(name, of_adapter=of_adapter):
            if meaning == "foreign":  # audited like a method that is called by this word
                word_of_role[UNLEARNED], meaning = word, ""
            elif meaning in (NONE, RETRAIN, UNLEARNED):
                word_of_role[meaning] = word
            elif meaning == "step":
                step = int(_digits(word))
            words_of[meaning].append(word)
        # A name with two roles, such as npo_unlearned_vs_retrain, says first what the model is, and then what it is
        # compared with: unlearned models with all others, models before unlearning with retrained ones.
        if roles := [possible for possible in (UNLEARNED, NONE, RETRAIN) if possible in word_of_role]:
            role, decided = roles[0], f"{word_of_role[roles[0]]!r}{BY_NAME}"
    forget_sets = [word.lower() for word in words_of["task"] if word.lower().startswith("forget")]
    task = next(iter([*forget_sets, *words_of["task"]]), "")
    words, recipe = (tuple(dict.fromkeys(words_of[meaning])) for meaning in ("", "setting"))
    replicate = " ".join(map(_digits, words_of["replicate"]))
    return Model(file, role, words, recipe, step=step, task=task, replicate=replicate, decided=decided)


def without_replicate(name: str) -> str:
    """Return the words of a name, joined by underscores, without those that say which of several models of a kind it
    is, such as seed3. "" if no other word is in it."""
    pairs = _with_meanings(name, of_adapter=bool(_ADAPTER.search(name)))
    return "_".join(word for word, meaning in pairs if meaning not in ("replicate", "one of several"))


def _with_meanings(name: str, *, of_adapter: bool) -> list[tuple[str, str]]:
    """Return (word, its meaning) for each word of a name. The meaning is a key of `MEANINGS`, or "" for a word that
    names the model itself. ``of_adapter``: whether the file is of an adapter, whose rank is a setting."""
    words = _BETWEEN.split(name)
    pairs = zip(["", *words], words, strict=False)  # each word with the one before it
    return [(word, _meaning(word, before, of_adapter=of_adapter)) for before, word in pairs]


def _meaning(word: str, before: str, *, of_adapter: bool) -> str:
    """Return the meaning of a ``word`` of a file's or folder's name, a key of `MEANINGS`; "" for a word that names the
    model itself.

    Parameters
    ----------
    before
        The word before ``word``. After some words, such as seed or retrain, a number counts models.
    of_adapter
        Whether the file is of an adapter, whose rank is a setting.
    """
    if of_adapter and word.lower().startswith("rank"):
        return "setting"
    if word.isdigit() and any(pattern.match(before.lower()) for pattern in _COUNTED):
        return "replicate"
    return next((meaning for meaning, pattern in MEANINGS.items() if pattern.match(word.lower())), "")


def _digits(word: str) -> str:
    """Return the digits of a word, such as "100" of checkpoint-100."""
    return re.sub(r"\D", "", word)


def is_sized(word: str) -> bool:
    """Return whether a word names a model with its size or version, such as Llama-3.2-1B."""
    return bool(_SIZED.match(word))


def is_foreign(text: str) -> bool:
    """Return whether a name says only that a model was trained neither on the forget set nor on the retained samples;
    a step and words that say nothing about a model do not count."""
    meanings = {_meaning(word, before="", of_adapter=False) for word in re.split(r"[_/\s]+", text)} - {"plain", "step"}
    return meanings == {"foreign"}


def model_of_run(path: Path, root: Path, names: tuple[str, ...] = ()) -> Model:
    """Return the model of a file with what the names of its folders and the configuration of its run say about it.

    The configuration has a mode, a trainer, and two names: of the run, and of the model which the run loaded. The first
    log of a retrained model that the configuration mentions becomes ``retrained_file``.

    The task is taken from the configuration; if that has none, from the two names, then from the path. Step, words,
    recipe and replicate are taken from the path; if that lacks one of them, from the two names. The model is unlearned
    if the mode is "unlearn", or if the trainer is a method of unlearning and the mode is not "train". For any other
    model, the two names tell the role; if they do not, the path.

    Parameters
    ----------
    root
        The folder that the user named.
    names
        Further names, which the model has within the file.

    Raises
    ------
    ValueError
        If the configuration cannot be read.
    """
    model, content = model_of_path(path, root, names), _configuration(path, root)
    trainer, mode = str(_nested(content, "trainer", "handler") or ""), str(content.get("mode", ""))
    loaded = str(_nested(content, "model", "model_args", "pretrained_model_name_or_path") or "")
    hints = model_of_names(tuple(filter(None, (str(content.get("task_name", "")), Path(loaded).name))))
    benchmarks = content["eval"].values() if isinstance(content.get("eval"), dict) else ()
    logs = [content.get("retain_logs_path"), *(_nested(entry, "retain_logs_path") for entry in benchmarks)]
    model.retrained_file = str(next(filter(None, logs), ""))
    model.task = str(content.get("forget_split") or "") or hints.task or model.task
    model.step = hints.step if model.step is None else model.step
    model.words, model.recipe = model.words or hints.words, model.recipe or hints.recipe
    model.replicate = model.replicate or hints.replicate
    # These two trainers only finetune; any other is a method of unlearning, whose name becomes a word of the model.
    if mode == "unlearn" or (trainer and trainer not in ("FinetuneTrainer", "Trainer") and mode != "train"):
        model.role, model.decided = UNLEARNED, f"its configuration ({trainer or mode})"
        if trainer.lower() not in "_".join(model.words).lower():
            model.words = (*model.words, trainer)
    elif hints.role:
        model.role, model.decided = hints.role, hints.decided
    return model


def _configuration(path: Path, root: Path) -> dict[str, Any]:
    """Return the content of ``.hydra/config.yaml`` or ``config.yaml`` of the run that wrote a file; {} if there is no
    such file.

    The nearest configuration that is a mapping counts. It is looked for in the folder of ``path`` and in the three
    folders above that, but not above the parent of ``root``. Raises ValueError that names a configuration that cannot
    be read.
    """
    import yaml

    for folder in list(path.resolve().parents)[:4]:
        for file in (folder / ".hydra" / "config.yaml", folder / "config.yaml"):
            if file.is_file():
                try:
                    content = yaml.safe_load(file.read_text(encoding="utf-8"))
                except (OSError, ValueError, yaml.YAMLError) as error:
                    raise ValueError(f"{file}: this configuration cannot be read ({type(error).__name__})") from None
                if isinstance(content, dict):
                    return content
        if folder == root.resolve().parent:
            break
    return {}


def _nested(content: object, *keys: str) -> object:
    """Return the value under ``keys`` of nested mappings, outermost first; None if a key is missing."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content
