"""Asks every reader for what is its own below some paths, and puts comparable models together."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unlearning_audit.plugins import registry
from unlearning_audit.readers import _groups
from unlearning_audit.readers._groups import Group
from unlearning_audit.readers._model import Agreement, Model


@dataclass(frozen=True)
class Imported:
    """What was read: ``groups`` of comparable models, ``agreements`` of each result file, and which ``formats`` they
    have (file → reader)."""

    groups: list[Group]
    agreements: dict[Path, list[Agreement]]
    formats: dict[Path, str]


def imported(
    paths: Sequence[Path],
    *,
    retrain: Sequence[Path] = (),
    none: Sequence[Path] = (),
    reader: str = "",
    options: dict | None = None,
    alone: bool = False,
) -> Imported:
    """Everything that readers find at or below ``paths``, in groups of comparable models.

    ``retrain`` and ``none``: files or folders of retrained models and of those before unlearning; they are read, too.
    ``reader``: the name of the only one that is asked, or the file of a user's own, with its ``options``. ``alone``: go
    on without any retrained model. Raises ValueError with one sentence for what cannot be read or told.
    """
    places = list(dict.fromkeys([*paths, *retrain, *none]))
    for place in places:
        if not place.exists():
            raise ValueError(f"{place}: there is no such file or folder")
    models: list[Model] = []
    formats: dict[Path, str] = {}
    across = {}
    for name, module in _readers(reader):
        alike: list[Model] = []
        for place in places:
            fresh = [path for path in module.files(place) if path not in formats]
            if not fresh:
                continue
            formats |= dict.fromkeys(fresh, name)
            root = place if place.is_dir() else place.parent
            fresh_models = module.read(fresh, module.Options(**(options or {})), root)
            across |= {id(model): getattr(module, "across", None) for model in fresh_models}
            alike += fresh_models
        _without_common_words(alike)
        models += alike
    if not models:
        formats_known = ", ".join(registry.names("readers"))
        raise ValueError(
            f"{places[0]}: holds no results of a format that is known here ({formats_known}); for another one, write a "
            "reader of your own and name it with --reader FILE"
        )
    _groups.assign(models, retrain, none)
    groups = _groups.grouped(models, alone=alone)
    agreements = {model.file: list(model.agreements) for model in models}
    for group in groups:
        for model in group.models:
            compare = across.get(id(model))
            if compare and group.retrain and model not in group.retrain and _same_set(model, group.retrain[0]):
                agreements[model.file] += compare(model, group.retrain[0])
    return Imported(groups, agreements, formats)


def _without_common_words(models: Sequence[Model]) -> None:
    """Words that all models share tell nothing apart."""
    common = frozenset.intersection(*(frozenset(model.words) for model in models)) if len(models) > 1 else frozenset()
    for model in models:
        model.words = tuple(word for word in model.words if word not in common)


def _same_set(model: Model, neighbour: Model) -> bool:
    return _groups.subject(model) == _groups.subject(neighbour)


def _readers(reader: str) -> list[tuple[str, object]]:
    """The readers that are asked; tables last, since other formats are tables, too."""
    if reader.endswith(".py"):
        return [(Path(reader).stem, registry.load("readers", Path(reader).stem, reader))]
    names = [reader] if reader else sorted(registry.names("readers"), key=lambda name: name == "plain_csv")
    return [(name, registry.load("readers", name)) for name in names]
