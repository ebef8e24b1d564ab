"""Derive model, role, method and step from the words of paths and of configuration files beside results."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from unlearning_audit.readers._model import NONE, RETRAIN, UNKNOWN, UNLEARNED, Model

#: Words before the number of one of several models of a kind: one word with the number, such as seed3, or two.
_ONE = "(?:random-?)?(?:seed|rs|rng|init|run|rank|rep|repeat|replicate|replica|trial|try|fold|copy)"
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


def of_path(path: Path, root: Path, names: tuple[str, ...] = ()) -> Model:
    """Return the model of a file, with what names say about it: those of ``root``, the folder that the user named, of
    the folders between it and the file, and the ``names`` of the model within the file.

    If the file lies in ``root`` itself, the names of the three folders above the file are read; if ``root`` is a
    checkpoint's folder, the name of the folder above ``root`` is read as well.
    """
    place, top = path.resolve(), root.resolve()
    is_checkpoint = bool(_STEP_FOLDER.match(top.name.lower()))
    if top == place.parent and not is_checkpoint:
        return of_parts((*place.parts[-4:-1], *names), path)
    inside = place.relative_to(top).parts[:-1] if place.is_relative_to(top) else ()
    # A list times False is empty: the folder above counts only for a checkpoint.
    return of_parts((*[top.parent.name] * is_checkpoint, top.name, *inside, *names), path)


def trained(path: Path, root: Path, **known: Any) -> Model:
    """Return the model of a file as `of_path` does, for formats that audit models before unlearning. It has the role
    "none" unless a name states another, no words, and the fields in ``known``."""
    model = of_path(path, root)
    return replace(model, role=model.role or NONE, words=(), **known)


def of_parts(parts: tuple[str, ...], file: Path = Path()) -> Model:
    """Return a model of a ``file`` with what names say about it: its role, step, task, recipe, replicate (such as its
    seed), and the words that are left.

    ``parts``: names of folders, outermost first, and of entries in the file. If they disagree, an inner name counts.
    """
    role, step, decided = UNKNOWN, None, ""
    words_of: dict[str, list[str]] = {meaning: [] for meaning in ("", *MEANINGS)}
    adapter = any(map(_ADAPTER.search, parts))
    for part in parts:
        if match := _STEP_FOLDER.match(part.lower()):
            step = int(match[1])
            continue
        roles: dict[str, str] = {}
        parted = _BETWEEN.split(part)
        for before, word in zip(["", *parted], parted, strict=False):  # no word follows the last one
            meaning = _meaning(word, before, adapter=adapter)
            if meaning == "step":
                step = int(_digits(word))
            elif meaning in (NONE, RETRAIN, UNLEARNED, "foreign"):
                roles[UNLEARNED if meaning == "foreign" else meaning] = word
            words_of["" if meaning == "foreign" else meaning].append(word)
        # A name with two roles, such as npo_unlearned_vs_retrain, says what a log is, and what it is compared with.
        if told := next((name for name in (UNLEARNED, NONE, RETRAIN) if name in roles), ""):
            role, decided = told, f"{roles[told]!r} in its name"
    tasks = [word.lower() if word.lower().startswith("forget") else word for word in words_of["task"]]
    task = next((name for name in tasks if name.startswith("forget")), tasks[0] if tasks else "")
    words, recipe = (tuple(dict.fromkeys(words_of[meaning])) for meaning in ("", "setting"))
    replicate = " ".join(map(_digits, words_of["replicate"]))
    return Model(file, role, words, recipe, step=step, task=task, replicate=replicate, decided=decided)


def _meaning(word: str, before: str, *, adapter: bool) -> str:
    """Return the meaning of a ``word``, one of `MEANINGS`; "" for one that names the model itself.

    ``before``: the word before it, after which a number may count models; ``adapter``: whether the name is of an
    adapter, whose rank is a setting.
    """
    if adapter and word.lower().startswith("rank"):
        return "setting"
    if word.isdigit() and any(pattern.match(before.lower()) for pattern in _COUNTED):
        return "replicate"
    return next((meaning for meaning, pattern in MEANINGS.items() if pattern.match(word.lower())), "")


def _digits(word: str) -> str:
    """Return the digits of a word, such as "100" of checkpoint-100."""
    return re.sub(r"\D", "", word)


def sized(word: str) -> bool:
    """Return whether a word names a model with its size or version, such as Llama-3.2-1B."""
    return bool(_SIZED.match(word))


def foreign(text: str) -> bool:
    """Return whether a name says only that a model was trained neither on the forget set nor on the retained
    samples."""
    said = {_meaning(word, "", adapter=False) for word in re.split(r"[_/\s]+", text)} - {"plain", "step"}
    return said == {"foreign"}


def of_run(path: Path, root: Path, names: tuple[str, ...] = ()) -> Model:
    """Return the model of a file with what names (`of_path`) and the configuration of its run say about it.

    The configuration's task is preferred to that of names. So is its role: the model is unlearned if the mode is
    "unlearn", or if there is a trainer that is not one of the plain ones, whose name then becomes a further word of the
    model. The name of the task and that of the model that the run loaded count where the path of the file says nothing.
    The model's ``retrained_file`` is the first log of a retrained model that the configuration names.

    ``path``, ``root`` and ``names`` are those of `of_path`.
    """
    model, content = of_path(path, root, names), _configuration(path, root)
    trainer, mode = str(_at(content, "trainer", "handler") or ""), str(content.get("mode", ""))
    loaded = str(_at(content, "model", "model_args", "pretrained_model_name_or_path") or "")
    hints = of_parts(tuple(filter(None, (str(content.get("task_name", "")), Path(loaded).name))))
    benchmarks = evals if isinstance(evals := content.get("eval"), dict) else {}
    logs = [content.get("retain_logs_path"), *(_at(entry, "retain_logs_path") for entry in benchmarks.values())]
    model.retrained_file = str(next(filter(None, logs), ""))
    model.task = str(content.get("forget_split") or "") or hints.task or model.task
    model.step = hints.step if model.step is None else model.step
    for field in ("words", "recipe", "replicate"):
        setattr(model, field, getattr(model, field) or getattr(hints, field))
    if mode == "unlearn" or (trainer and trainer not in ("FinetuneTrainer", "Trainer") and mode != "train"):
        model.role, model.decided = UNLEARNED, f"its configuration ({trainer or mode})"
        if trainer.lower() not in "_".join(model.words).lower():
            model.words = (*model.words, trainer)
    elif hints.role:
        model.role, model.decided = hints.role, hints.decided
    return model


def _configuration(path: Path, root: Path) -> dict[str, Any]:
    """Return the content of ``.hydra/config.yaml`` or ``config.yaml`` of the run that wrote a file; {} without one.

    The nearest one counts. It is looked for in the file's folder and in the three folders above that, but not above the
    parent of ``root``.
    """
    import yaml

    for folder in list(path.resolve().parents)[:4]:
        for place in (folder / ".hydra" / "config.yaml", folder / "config.yaml"):
            if place.is_file():
                try:
                    content = yaml.safe_load(place.read_text(encoding="utf-8"))
                except (OSError, ValueError, yaml.YAMLError) as error:
                    raise ValueError(f"{place}: this configuration cannot be read ({type(error).__name__})") from None
                if isinstance(content, dict):
                    return content
        if folder == root.resolve().parent:
            break
    return {}


def _at(content: object, *keys: str) -> object:
    """Return the value under nested ``keys``; None if one is missing."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content
