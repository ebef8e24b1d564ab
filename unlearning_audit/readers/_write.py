"""Write groups of models as folders of the protocol external, and the study that audits them."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.evaluation.published import FILE, Published
from unlearning_audit.plugins.names import LONGEST
from unlearning_audit.readers import _aggregates
from unlearning_audit.readers._gather import Imported
from unlearning_audit.readers._groups import Group, aucs, slugs
from unlearning_audit.readers._model import FORGET, HELDOUT, NONE, OTHER, RETAIN, RETRAIN, Model
from unlearning_audit.store.files import write_failure

#: Names of folders that a method cannot have.
RESERVED = ("target", "shadow", "original", "shadow_original", "retrain", "retrain_control", "none")

#: The largest length of a column's name: with "reading_" before it, it is the name of a metric.
ROOM = LONGEST - len("reading_")

#: The number of standard errors from .5 beyond which an AUC of retrained models shows that forgotten and held-out
#: samples differ by themselves.
ERRORS = 2.0


@dataclasses.dataclass(frozen=True)
class _Table:
    """What the models of a group have in common: ``samples`` str [samples]; ``part`` of each; ``attacks`` and
    ``readings`` that all models have: name → the samples for which all have a value, bool [samples]."""

    samples: list[str]
    part: np.ndarray
    attacks: dict[str, np.ndarray]
    readings: dict[str, np.ndarray]


def write(imported: Imported, folder: Path, name: str) -> dict[str, Any]:
    """Write the models of each group as files of imported models below ``folder``; return a study that audits them.

    ``folder`` is relative to the study's folder, and ``name`` the study's name. Diverged models of a method become a
    file that records the failure. Files of models that an earlier call left there are removed. Raises ValueError if
    models disagree about what was forgotten.
    """
    scenarios: dict[str, Any] = {}
    models = [model for group in imported.groups for model in group.models]
    columns = slugs((name for model in models for name in (*model.scores, *model.readings)), ROOM)
    named: dict[str, None] = {}
    for group in imported.groups:
        place = folder / group.name
        table = _table(group)
        labels = {key: f"m {key}" if key in RESERVED else key for key in group.methods}
        short = slugs(labels.values())
        methods = {short[labels[key]]: models for key, models in group.methods.items()}
        populations = {"original": group.none, "retrain": group.retrain, "retrain_control": group.control}
        populations |= {f"{key}/target": models for key, models in methods.items()}
        names = {place / short[labels[key]] / "target" / FILE: key for key in group.methods}
        files = {place / part / FILE: (part, models) for part, models in populations.items() if models}
        values = _aggregates.of(group)
        for path, (part, models) in files.items():
            if path in names and (damage := group.damage(names[path])):
                path.parent.mkdir(parents=True, exist_ok=True)
                write_failure(path, "diverged", damage)
                continue
            population = _population(models, table, imported, group, part, columns)
            aggregates = _aggregates.rows(models, group, values)
            named |= {one["name"]: None for one in aggregates}
            dataclasses.replace(population, aggregates=json.dumps(aggregates)).write(path)
        _remove_others(place, set(files))
        yardsticks = {NONE: group.none, RETRAIN: group.retrain}
        listed = [key for key, models in yardsticks.items() if models] + list(methods)
        fair = {"design": "random"} if all(model.fair for model in group.models) else {}
        scenarios[group.name] = {
            "protocol": {"name": "external", "path": place.as_posix(), **fair}, "methods": listed, "attacks": [],
        }  # fmt: skip
    steps = [group for group in imported.groups if len({run.step for run in group.models} - {None}) > 1]
    figures = {
        f"trajectory_{number}": {
            "title": f"Checkpoints over time: {group.name.replace('_', ' ')}", "kind": "trajectory",
            "scenarios": [group.name],
        }
        for number, group in enumerate(steps, start=1)
    }  # fmt: skip
    tables = _tables(imported.groups, columns)
    if named:
        tables["aggregates"] = {
            "title": "Aggregates of OpenUnlearning", "metric": [f"aggregate_{one}" for one in sorted(named)],
            "scenarios": list(scenarios), "layout": "long",
        }  # fmt: skip
    return {"study": name, "scenarios": scenarios, "tables": tables, "figures": figures}


def _remove_others(place: Path, files: set[Path]) -> None:
    """Remove files of models below ``place`` that are not among ``files``, and folders that become empty.

    They are of an earlier call and would count as methods.
    """
    for path in {*place.glob(f"*/{FILE}"), *place.glob(f"*/target/{FILE}")} - files:
        path.unlink()
        for folder in path.relative_to(place).parents[:-1]:
            if not any((place / folder).iterdir()):
                (place / folder).rmdir()


def _table(group: Group) -> _Table:
    """Return what the models of a group have in common: their samples, and the attacks and values that all of them
    have.

    Each sample has one part (forgotten, held out, …). For each attack and value, a mask selects the samples on which
    all models have it. Raises ValueError if a sample belongs to different parts in two models. A model with a random
    draw of its own (`Model.fair`) is not checked: its forgotten samples may be held out from another.
    """
    part: dict[str, str] = {}
    for model in group.models:
        sides = dict(zip(model.ids, np.where(model.forget, FORGET, HELDOUT).tolist(), strict=True))
        read = {sample: reading.part for reading in model.readings.values() for sample in reading.ids}
        for sample, side in ({} if model.fair else sides | read).items():
            if part.get(sample, side) != side:
                raise ValueError(
                    f"{model.file}: sample {sample} is {side} for one of the compared models and {part[sample]} for "
                    "another; give all of them the same sides"
                )
        part |= {sample: side for sample, side in sides.items() if sample not in part} | read
    samples = list(part)

    def common(columns: Sequence[dict[str, Sequence[str]]]) -> dict[str, np.ndarray]:
        """Return, for each name that all models have, the samples on which all have it, bool [samples]."""
        shared = {
            name: frozenset.intersection(*(frozenset(of_model[name]) for of_model in columns))
            for name in columns[0] if all(name in of_model for of_model in columns)
        }  # fmt: skip
        return {name: np.isin(samples, list(rows)) for name, rows in shared.items() if rows}

    attacks = common([dict.fromkeys(model.scores, model.ids) for model in group.models])
    readings = common([{name: reading.ids for name, reading in model.readings.items()} for model in group.models])
    return _Table(samples, np.array([part[sample] for sample in samples]), attacks, readings)


def _population(
    models: list[Model], table: _Table, imported: Imported, group: Group, part: str, columns: dict[str, str]
) -> Published:
    """Return scores, values and masks of ``models``, those of one ``part`` of a group such as "retrain", as arrays.

    ``table``: what all models of the group have in common; a score or value is NaN on samples that not all have.
    ``columns``: name of an attack or value in the files → in the study.
    """
    place = {sample: number for number, sample in enumerate(table.samples)}
    size = len(table.samples)
    attacks = list(dict.fromkeys(name for model in models for name in model.scores))
    readings = list(dict.fromkeys(name for model in models for name in model.readings))
    scores, values = (np.full((len(names), len(models), size), np.nan) for names in (attacks, readings))
    masks = {role: np.tile(table.part == role, (len(models), 1)) for role in (FORGET, HELDOUT, RETAIN)}
    for number, model in enumerate(models):
        rows = [place[sample] for sample in model.ids]
        for name, score in model.scores.items():
            scores[attacks.index(name), number, rows] = score
        for name, reading in model.readings.items():
            values[readings.index(name), number, [place[sample] for sample in reading.ids]] = reading.value
        if rows:
            masks[FORGET][number, rows], masks[HELDOUT][number, rows] = model.forget, model.heldout
    for names, numbers, shared in ((attacks, scores, table.attacks), (readings, values, table.readings)):
        for column, name in zip(numbers, names, strict=True):
            if name in shared:
                column[:, ~shared[name]] = np.nan
    first = {name: next(m.readings[name] for m in models if name in m.readings) for name in readings}
    checks = [reading for file in dict.fromkeys(m.file for m in models) for reading in imported.agreements[file]]
    return Published(
        forget=masks[FORGET], heldout=masks[HELDOUT], retain=masks[RETAIN], test=table.part == OTHER,
        samples=np.array(table.samples, "U"), attacks=np.array([columns[name] for name in attacks], "U"),
        scores=scores, readings=np.array([columns[name] for name in readings], "U"), values=values,
        direction=np.array([first[name].direction for name in readings], np.int64),
        share=np.array([first[name].share for name in readings], bool),
        comparable=np.array([columns[name] for name in (*table.attacks, *table.readings)], "U"),
        fair=all(model.fair for model in models), step=-1 if models[0].step is None else models[0].step,
        agreements=json.dumps([{**dataclasses.asdict(reading), "agrees": reading.agrees} for reading in checks]),
        # What was assumed about retrained models, and whether their AUC differs from .5.
        remarks=json.dumps([*group.notes, *notes_on_retrained(models)] if part == "retrain" else []),
    )  # fmt: skip


def notes_on_retrained(models: list[Model]) -> list[str]:
    """Return a list of one sentence with the AUC of retrained models if it differs from .5 by more than chance; else
    [].

    It warns users that an AUC of .5 does not mean retraining then. [] also where all models have a random draw of
    samples.
    """
    values = [aucs(model) for model in models]
    if all(model.fair for model in models) or not all(values):
        return []
    m, n = (np.mean([getattr(model, side).sum() for model in models]) for side in (FORGET, HELDOUT))
    error = np.sqrt((m + n + 1) / (12 * m * n))
    means = {name: float(np.mean([own[name] for own in values if name in own])) for name in values[0]}
    apart = {name: value for name, value in means.items() if abs(value - 0.5) > ERRORS * error}
    if not apart:
        return []
    listed = ", ".join(f"{value:.2f} by {name}" for name, value in sorted(apart.items(), key=lambda item: item[1]))
    below = {value < 0.5 for value in apart.values()}
    side = "unlike" if len(below) > 1 else "harder than" if True in below else "easier than"
    return [
        f"Retrained models have an AUC of {listed}, not .5: what is to be forgotten is {side} what was held out. A "
        "method with an AUC of .5 is not like retraining; distances are measured from the retrained models' AUC."
    ]


def _tables(groups: Sequence[Group], columns: dict[str, str]) -> dict[str, Any]:
    """Return the specifications of tables for the study file: name of the table → its fields.

    There is one for the AUC of each attack, and one for the mean over forgotten samples of each value between 0 and 1
    (`Reading.share`). Each lists the scenarios that have the attack or value. ``columns``: name of an attack or value
    in the files → in the study.
    """
    attacks: dict[str, dict[str, Any]] = {}
    means: dict[str, dict[str, Any]] = {}
    for group in groups:
        for model in group.models:
            for name in (columns[name] for name in model.scores):
                title = f"AUC of {name}, forgotten against held-out samples"
                table = {"title": title, "metric": f"auc_{name}", "scenarios": {}}
                attacks.setdefault(f"auc_{name}", table)["scenarios"][group.name] = None
            shares = [name for name, one in model.readings.items() if one.part == FORGET and one.share]
            for name in (columns[name] for name in shares):
                title = f"{name}, mean over what is to be forgotten"
                table = {"title": title, "metric": f"reading_{name}", "where": {"role": "forget"}, "scenarios": {}}
                means.setdefault(f"mean_{name}", table)["scenarios"][group.name] = None
    return {key: table | {"scenarios": list(table["scenarios"])} for key, table in {**attacks, **means}.items()}


def agreement_rows(imported: Imported) -> list[dict[str, Any]]:
    """Return a row of the table that shows users each number that a file prints beside the one computed from its
    samples."""
    return [
        {"file": str(file), "quantity": agreement.quantity, "printed": agreement.printed,
         "recomputed": agreement.recomputed, "agrees": {True: "yes", False: "no", None: ""}[agreement.agrees],
         "how": agreement.how}
        for file, agreements in imported.agreements.items() for agreement in agreements
    ]  # fmt: skip
