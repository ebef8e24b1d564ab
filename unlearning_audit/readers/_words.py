"""Derive model, role, method and step from the words of paths and of configuration files beside results."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from unlearning_audit.readers._model import NONE, RETRAIN, UNKNOWN, UNLEARNED, Model

_FULL = re.compile(r"^(full|target|original|originals|fine-?tuned?|before|none|memoriz(e|ing)d?)$")
_RETRAINED = re.compile(
    r"^((naive-)?(retrain|retain)(ed|ing)?(-?model|-from-scratch|-?\d*)|oracles?-?\d*|gold(en)?|reference-retrain|exact|"
    r"(from-)?scratch)$"
)
#: Names of models that were trained neither on the forget set nor on the retained samples.
_FOREIGN = re.compile(r"^(pretrain(ed)?|base(line)?|zero-?shot|untrained)$")
_UNLEARNED = re.compile(r"^(unlearn(ed|ing)?|forgot(ten)?|after)$")
_TASK = re.compile(r"^(forget|holdout|retain)(-?set)?-?\d+$|^(news|books)$")
_STEP = re.compile(r"^(?:checkpoint|ckpt|step|global-step|iter(?:ation)?)-?(\d+)$")
#: The name of a folder for one checkpoint, whose number may count epochs.
_STEP_FOLDER = re.compile(r"^(?:checkpoint|ckpt|(?:global[-_])?step|iter(?:ation)?|epoch)[-_=]?(\d+)$")
#: The number of a model among several of one kind: such a word and a number, as one word or two; also "retrain_1".
_ONE = "(?:random-?)?(?:seed|rs|rng|init|run|rank|rep|repeat|replicate|replica|trial|try|fold|copy)"
_REPLICATE, _REPLICATE_WORD = re.compile(rf"^(?:{_ONE}|s)[-=]?(\d+)$"), re.compile(rf"^{_ONE}$")
#: The words that say a role, but for those of foreign models.
_ROLES = {NONE: _FULL, RETRAIN: _RETRAINED, UNLEARNED: _UNLEARNED}
#: Separators of words. A hyphen separates only before such a word and its number, as in NPO-seed=3.
_BETWEEN = re.compile(rf"[_/\s()]+|-(?={_ONE}[-=]?\d+(?:[_/\s]|$))", re.IGNORECASE)
#: Words beside which "rank" is the rank of an adapter.
_ADAPTER = re.compile(r"lora|adapter|peft", re.IGNORECASE)
_NUMBER = re.compile(r"^\d+$")
#: Words after which a number counts models.
_COUNTED = _REPLICATE_WORD, _FULL, _RETRAINED, re.compile("^(unlearned|model)$")
#: The name of a model with its size or version, such as Llama-3.2-1B.
_SIZED = re.compile(r"(?=.*\d)(?=.*[a-z]).{4,}", re.IGNORECASE)
#: Hyper-parameters: a short word of the field and a number.
_SETTING = re.compile(
    r"^(wd|weight-?decay|lr|epochs?|ep|bs|batch(size)?|warmup|wu|alpha|beta|gamma|lambda|delta|tau|"
    r"rank|rslora|lora|r|k|m|steps?|coeff?|scale|temp|layers?|drop|eps|clip|acc|ga|gpus?|size|ds)"
    r"[-=]?-?\d+([.]\d+)?(e-?\d+)?$"
)
#: Words of folders and files that say nothing about a model.
_PLAIN = re.compile(
    r"^(saves?|evals?|evaluations?|results?|outputs?|logs?|runs?|exp(eriments?)?|checkpoints?|data|ds|size\d+|"
    r"models?|tmp|tofu|muse|wmdp|json|npy|npz|csv|aggregated|summary|finetune|ft|train(ing)?|files?|scores?|"
    r"loss(es)?|home|from)$"
)


def of_path(path: Path, root: Path, names: tuple[str, ...] = ()) -> Model:
    """Return the model of a file, with what the names of ``root``, of the folders between it and the file, and the
    entry ``names`` in it say about it.

    For a file that was named directly, the three folders above it are read; if ``root`` is only a checkpoint's folder,
    the folder above it is read as well.
    """
    place, top = path.resolve(), root.resolve()
    if top == place.parent and not _STEP_FOLDER.match(top.name.lower()):
        return of_parts((*place.parts[-4:-1], *names), path)
    inside = place.relative_to(top).parts[:-1] if place.is_relative_to(top) else ()
    above = [top.parent.name] if _STEP_FOLDER.match(top.name.lower()) else []
    return of_parts((*above, top.name, *inside, *names), path)


def trained(path: Path, root: Path, **known: Any) -> Model:
    """Return the model of a file as `of_path` does, for formats that audit models before unlearning. It has the role
    "none" unless a name states another, no words, and the fields in ``known``."""
    model = of_path(path, root)
    return replace(model, role=model.role or NONE, words=(), **known)


def of_parts(parts: tuple[str, ...], file: Path = Path()) -> Model:
    """Return a model of a ``file`` with what names say about it: its role, step, task, recipe, seed, and the words that
    are left.

    ``parts``: names of folders, outermost first, and of entries. If they disagree, an inner name counts more.
    """
    role, step, tasks, recipe, replicates, decided = UNKNOWN, None, [], [], [], ""
    names: list[str] = []
    above: frozenset[str] = frozenset()
    adapter = any(map(_ADAPTER.search, parts))
    for part in parts:
        roles: dict[str, str] = {}
        if match := _STEP_FOLDER.match(part.lower()):
            step = int(match[1])
            continue
        outer = len(names)
        words = _BETWEEN.split(part)
        for before, word in zip(["", *words], words, strict=False):
            plain = word.lower()
            if adapter and plain.startswith("rank"):
                recipe.append(word)
            elif match := _REPLICATE.match(plain):
                replicates.append(match[1])
            elif _NUMBER.match(plain) and any(word.match(before.lower()) for word in _COUNTED):
                replicates.append(plain)
            elif _REPLICATE_WORD.match(plain):
                continue
            elif match := _STEP.match(plain):
                step = int(match[1])
            elif told := next((name for name, pattern in _ROLES.items() if pattern.match(plain)), ""):
                roles[told] = word
            elif _TASK.match(plain):
                tasks.append(plain if plain.startswith("forget") else word)
            elif _SETTING.match(plain):
                recipe.append(word)
            elif _FOREIGN.match(plain):
                roles[UNLEARNED] = word
                names.append(word)
            elif word and not _PLAIN.match(plain):
                names.append(word)
        # A name with two roles says what a log is, and with what it is to be compared.
        if told := next((name for name in (UNLEARNED, NONE, RETRAIN) if name in roles), ""):
            role, decided = told, f"{roles[told]!r} in its name"
            above = frozenset(names[:outer]) if any(map(_SIZED.match, names[outer:])) else frozenset()
    task = next((name for name in tasks if name.startswith("forget")), tasks[0] if tasks else "")
    return Model(
        file, role, tuple(dict.fromkeys(names)), tuple(dict.fromkeys(recipe)), step=step, task=task,
        replicate=" ".join(replicates), decided=decided, above=above,
    )  # fmt: skip


def sized(word: str) -> bool:
    """Return whether a word names a model with its size or version, such as Llama-3.2-1B."""
    return bool(_SIZED.match(word))


def foreign(text: str) -> bool:
    """Return whether a name says only that a model was trained neither on the forget set nor on the retained
    samples."""
    words = [word for word in re.split(r"[_/\s]+", text.lower()) if not (_PLAIN.match(word) or _STEP.match(word))]
    return bool(words) and all(_FOREIGN.match(word) for word in words)


def of_run(path: Path, root: Path, names: tuple[str, ...] = ()) -> Model:
    """Return the model of a file with what names (`of_path`) and the configuration of its run say about it.

    The role and the task of the configuration go first: its trainer is the method. The name of the model that it loaded
    counts where the path of the file says nothing.
    """
    model, content = of_path(path, root, names), _configuration(path, root)
    trainer, mode = str(_at(content, "trainer", "handler") or ""), str(content.get("mode", ""))
    loaded = str(_at(content, "model", "model_args", "pretrained_model_name_or_path") or "")
    named = of_parts(tuple(filter(None, (str(content.get("task_name", "")), Path(loaded).name))))
    benchmarks = entry if isinstance(entry := content.get("eval"), dict) else {}
    logs = [content.get("retain_logs_path"), *(_at(entry, "retain_logs_path") for entry in benchmarks.values())]
    model.retrained_file = str(next(filter(None, logs), ""))
    model.task = str(content.get("forget_split") or "") or named.task or model.task
    model.step = named.step if model.step is None else model.step
    for field in ("words", "recipe", "replicate"):
        setattr(model, field, getattr(model, field) or getattr(named, field))
    if mode == "unlearn" or (trainer and trainer not in ("FinetuneTrainer", "Trainer") and mode != "train"):
        model.role, model.method, model.decided = UNLEARNED, trainer, f"its configuration ({trainer or mode})"
    elif named.role:
        model.role, model.decided = named.role, named.decided
    return model


def _configuration(path: Path, root: Path) -> dict[str, Any]:
    """Return the content of ``.hydra/config.yaml`` or ``config.yaml`` of the run that wrote a file; {} without one.

    The nearest one counts, at most three folders above the file and not above ``root``'s parent.
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
