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

#: The largest length of a column's name: with "reading_" before it, it is the name of a metric.
ROOM = LONGEST - len("reading_")

#: The number of standard errors from .5 beyond which an AUC of retrained models shows that forgotten and held-out
#: samples differ by themselves.
ERRORS = 2.0


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
        whole, values = _whole(group, columns), _aggregates.of(group)
        populations = {"original": group.none, "retrain": group.retrain, "retrain_control": group.control}
        files = {place / part / FILE: (part, models) for part, models in populations.items() if models}
        files |= {place / name / "target" / FILE: (name, models) for name, models in group.methods.items()}
        for path, (part, models) in files.items():
            if part in group.methods and (damage := group.damage(part)):
                path.parent.mkdir(parents=True, exist_ok=True)
                write_failure(path, "diverged", damage)
                continue
            aggregates = _aggregates.rows(models, group, values)
            named |= {one["name"]: None for one in aggregates}
            checks = [one for file in dict.fromkeys(m.file for m in models) for one in imported.agreements[file]]
            # What was assumed about retrained models, and whether their AUC differs from .5.
            remarks = [*group.notes, *notes_on_retrained(models)] if part == "retrain" else []
            dataclasses.replace(
                _of(models, group.models, whole), aggregates=json.dumps(aggregates), remarks=json.dumps(remarks),
                agreements=json.dumps([{**dataclasses.asdict(one), "agrees": one.agrees} for one in checks]),
            ).write(path)  # fmt: skip
        _remove_others(place, set(files))
        listed = [
            name for name, models in {NONE: group.none, RETRAIN: group.retrain, **group.methods}.items() if models
        ]
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


def _whole(group: Group, columns: dict[str, str]) -> Published:
    """Return the scores, values and masks of all models of a group on all of its samples.

    ``columns``: name of an attack or value in the files → in the study. Numbers are NaN where a model has none, and, of
    attacks and values that all models have, on samples that not all of them have. Raises ValueError if a sample belongs
    to different parts (forgotten, held out, …) in two models. A model with a random draw of its own (`Model.fair`) is
    not checked: its forgotten samples may be held out from another.
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
    place, parts = {sample: number for number, sample in enumerate(part)}, np.array(list(part.values()))
    shape = len(group.models), len(place)
    forget, heldout, retain = (np.tile(parts == side, (shape[0], 1)) for side in (FORGET, HELDOUT, RETAIN))
    scores: dict[str, np.ndarray] = {}
    values: dict[str, np.ndarray] = {}
    for number, model in enumerate(group.models):
        rows = [place[sample] for sample in model.ids]
        forget[number, rows], heldout[number, rows] = model.forget, model.heldout
        for name, score in model.scores.items():
            scores.setdefault(columns[name], np.full(shape, np.nan))[number, rows] = score
        for name, reading in model.readings.items():
            rows = [place[sample] for sample in reading.ids]
            values.setdefault(columns[name], np.full(shape, np.nan))[number, rows] = reading.value
    comparable = []
    for name, column in (*scores.items(), *values.items()):
        by_all = np.isfinite(column).all(axis=0)
        if by_all.any():
            column[:, ~by_all] = np.nan
            comparable.append(name)
    first = {columns[name]: one for model in reversed(group.models) for name, one in model.readings.items()}
    return Published(
        forget=forget, heldout=heldout, retain=retain, test=parts == OTHER, samples=np.array(list(place), "U"),
        attacks=np.array(list(scores), "U"), scores=np.array(list(scores.values())).reshape(-1, *shape),
        readings=np.array(list(values), "U"), values=np.array(list(values.values())).reshape(-1, *shape),
        direction=np.array([first[name].direction for name in values], np.int64),
        share=np.array([first[name].share for name in values], bool),
        comparable=np.array(comparable, "U"), fair=all(model.fair for model in group.models),
    )  # fmt: skip


def _of(models: list[Model], everyone: list[Model], whole: Published) -> Published:
    """Return the part of ``whole``, which holds the numbers of ``everyone``, that is of ``models``: without the columns
    that none of them has."""
    rows, step = [everyone.index(model) for model in models], models[0].step
    scores, values = whole.scores[:, rows], whole.values[:, rows]
    scored, valued = (np.isfinite(numbers).any(axis=(1, 2)) for numbers in (scores, values))
    return dataclasses.replace(
        whole, forget=whole.forget[rows], heldout=whole.heldout[rows], retain=whole.retain[rows],
        attacks=whole.attacks[scored], scores=scores[scored], readings=whole.readings[valued], values=values[valued],
        direction=whole.direction[valued], share=whole.share[valued], step=-1 if step is None else step,
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
                attacks.setdefault(f"auc_{name}", {"title": title, "metric": f"auc_{name}", "scenarios": []})
                attacks[f"auc_{name}"]["scenarios"].append(group.name)
            for name in (columns[name] for name, one in model.readings.items() if one.part == FORGET and one.share):
                about = {"title": f"{name}, mean over what is to be forgotten", "metric": f"reading_{name}"}
                means.setdefault(f"mean_{name}", {**about, "where": {"role": "forget"}, "scenarios": []})
                means[f"mean_{name}"]["scenarios"].append(group.name)
    return {
        key: table | {"scenarios": list(dict.fromkeys(table["scenarios"]))}
        for key, table in {**attacks, **means}.items()
    }


def agreement_rows(imported: Imported) -> list[dict[str, Any]]:
    """Return a row of the table that shows users each number that a file prints beside the one computed from its
    samples."""
    return [
        {"file": str(file), "quantity": agreement.quantity, "printed": agreement.printed,
         "recomputed": agreement.recomputed, "agrees": {True: "yes", False: "no", None: ""}[agreement.agrees],
         "how": agreement.how}
        for file, agreements in imported.agreements.items() for agreement in agreements
    ]  # fmt: skip
