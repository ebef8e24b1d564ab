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
LONGEST_COLUMN = LONGEST - len("reading_")

#: The number of standard errors from .5 beyond which an AUC of retrained models shows that forgotten and held-out
#: samples differ, whatever models saw.
STANDARD_ERRORS = 2.0


def write(imported: Imported, folder: Path, name: str) -> dict[str, Any]:
    """Write the models of each group as files of imported models below ``folder``; return a study that audits them.

    Each group is a scenario of the study. A file has the models of one method or of one role; diverged models of a
    method become a file that records the failure. Files of models that an earlier call left there are removed.

    Parameters
    ----------
    folder
        The folder of the files, relative to the folder from which the study is run.
    name
        The name of the study.

    Raises
    ------
    ValueError
        If models of a group disagree about which samples were forgotten.
    """
    scenarios: dict[str, Any] = {}
    everyone = [model for group in imported.groups for model in group.models]
    # Name of an attack or reading in the files → in the study.
    columns = slugs((column for model in everyone for column in (*model.scores, *model.readings)), LONGEST_COLUMN)
    names_of_aggregates: set[str] = set()
    for group in imported.groups:
        group_folder = folder / group.name
        numbers_of_all, values = _numbers_of_all(group, columns), _aggregates.of_models(group)
        populations = {"original": group.none, "retrain": group.retrain, "retrain_control": group.control}
        # Path → (name of the population or method, its models).
        files = {group_folder / label / FILE: (label, members) for label, members in populations.items() if members}
        files |= {group_folder / label / "target" / FILE: (label, members) for label, members in group.methods.items()}
        for path, (label, models) in files.items():
            if label in group.methods and (damage := group.damage(label)):
                path.parent.mkdir(parents=True, exist_ok=True)
                write_failure(path, "diverged", damage)
                continue
            aggregates = _aggregates.rows(models, group, values)
            names_of_aggregates |= {row["name"] for row in aggregates}
            # Numbers that the files of these models print, beside recomputed ones. Models may share a file.
            checks = [check for file in dict.fromkeys(m.file for m in models) for check in imported.agreements[file]]
            # What was assumed about the group, and whether the AUC of retrained models differs from .5: said once.
            remarks = [*group.notes, *notes_on_retrained(models)] if label == "retrain" else []
            numbers = _select_models(numbers_of_all, models, group.models)
            dataclasses.replace(
                numbers, aggregates=json.dumps(aggregates), remarks=json.dumps(remarks),
                agreements=json.dumps([{**dataclasses.asdict(check), "agrees": check.agrees} for check in checks]),
            ).write(path)  # fmt: skip
        _remove_others(group_folder, set(files))
        methods = {NONE: group.none, RETRAIN: group.retrain, **group.methods}
        # Whether forgotten and held-out samples are a random draw, which tests for one model need.
        design = {"design": "random"} if all(model.fair for model in group.models) else {}
        scenarios[group.name] = {
            "protocol": {"name": "external", "path": group_folder.as_posix(), **design},
            "methods": [method for method, members in methods.items() if members], "attacks": [],
        }  # fmt: skip
    with_steps = [group for group in imported.groups if len({model.step for model in group.models} - {None}) > 1]
    figures = {
        f"trajectory_{number}": {"title": f"Checkpoints over time: {group.name.replace('_', ' ')}",
                                 "kind": "trajectory", "scenarios": [group.name]}
        for number, group in enumerate(with_steps, start=1)
    }  # fmt: skip
    tables = _tables(imported.groups, columns)
    if names_of_aggregates:
        tables["aggregates"] = {
            "title": "Aggregates of OpenUnlearning",
            "metric": [f"aggregate_{aggregate}" for aggregate in sorted(names_of_aggregates)],
            "scenarios": list(scenarios), "layout": "long",
        }  # fmt: skip
    return {"study": name, "scenarios": scenarios, "tables": tables, "figures": figures}


def _remove_others(folder: Path, files: set[Path]) -> None:
    """Remove files of models below the ``folder`` of a group that are not among ``files``, and folders that become
    empty. An earlier call wrote these files, and they would count as methods."""
    for path in {*folder.glob(f"*/{FILE}"), *folder.glob(f"*/target/{FILE}")} - files:
        path.unlink()
        for inner in path.relative_to(folder).parents[:-1]:  # the last one would be ``folder`` itself
            if not any((folder / inner).iterdir()):
                (folder / inner).rmdir()


def _numbers_of_all(group: Group, columns: dict[str, str]) -> Published:
    """Return the scores, readings and masks of all models of a group on all samples of the group.

    Numbers are NaN where a model has none. If there are samples on which all models have a number of an attack or
    reading, its numbers on other samples become NaN, so that all models are compared on the same samples. Raises
    ValueError if models disagree to which part of the data a sample belongs.

    Parameters
    ----------
    columns
        Name of an attack or reading in the files → its name in the study.
    """
    part_of = _part_of_sample(group.models)
    column_of = {sample: column for column, sample in enumerate(part_of)}
    parts, shape = np.array(list(part_of.values())), (len(group.models), len(part_of))
    # All arrays are [models, samples]. At first, every model has the parts that `_part_of_sample` gives.
    forget, heldout, retain = (np.tile(parts == part, (len(group.models), 1)) for part in (FORGET, HELDOUT, RETAIN))
    scores: dict[str, np.ndarray] = {}
    values: dict[str, np.ndarray] = {}
    for number, model in enumerate(group.models):
        scored_samples = [column_of[sample] for sample in model.ids]
        # A model's own masks count, as it may have a random draw of its own.
        forget[number, scored_samples], heldout[number, scored_samples] = model.forget, model.heldout
        for name, score in model.scores.items():
            scores.setdefault(columns[name], np.full(shape, np.nan))[number, scored_samples] = score
        for name, reading in model.readings.items():
            read_samples = [column_of[sample] for sample in reading.ids]
            values.setdefault(columns[name], np.full(shape, np.nan))[number, read_samples] = reading.value
    comparable = []
    for name, numbers in (*scores.items(), *values.items()):
        of_all_models = np.isfinite(numbers).all(axis=0)
        if of_all_models.any():
            numbers[:, ~of_all_models] = np.nan
            comparable.append(name)
    # The direction and the kind of a reading are those that the first model states.
    readings = {columns[name]: reading for model in reversed(group.models) for name, reading in model.readings.items()}
    return Published(
        forget=forget, heldout=heldout, retain=retain, test=parts == OTHER, samples=np.array(list(part_of), "U"),
        attacks=np.array(list(scores), "U"), scores=np.array(list(scores.values())).reshape(-1, *shape),
        readings=np.array(list(values), "U"), values=np.array(list(values.values())).reshape(-1, *shape),
        direction=np.array([readings[name].direction for name in values], np.int64),
        share=np.array([readings[name].share for name in values], bool),
        comparable=np.array(comparable, "U"), fair=all(model.fair for model in group.models),
    )  # fmt: skip


def _part_of_sample(models: list[Model]) -> dict[str, str]:
    """Return sample → its part of the data (forgotten, held out, …), for all samples of some models.

    Raises ValueError if a sample belongs to different parts in two models. A model whose forgotten samples are a random
    draw of its own (`Model.fair`) is not checked, because its forgotten samples may be held out from another model. A
    sample of such models gets the part that it has in the first model, unless a reading names another part.
    """
    part_of: dict[str, str] = {}
    for model in models:
        scored = dict(zip(model.ids, np.where(model.forget, FORGET, HELDOUT).tolist(), strict=True))
        read = {sample: reading.part for reading in model.readings.values() for sample in reading.ids}
        for sample, part in (scored | read).items():
            if part_of.get(sample, part) != part and not model.fair:
                both = f"is {part} for one of the compared models and {part_of[sample]} for another"
                raise ValueError(f"{model.file}: sample {sample} {both}; give all of them the same sides")
        part_of |= {sample: part for sample, part in scored.items() if sample not in part_of} | read
    return part_of


def _select_models(whole: Published, models: list[Model], everyone: list[Model]) -> Published:
    """Return the scores, readings and masks of some ``models`` of a group. Attacks and readings that none of these
    models has are left out.

    ``whole``: the scores, readings and masks of all models of the group, in the order of ``everyone``.
    """
    rows, (first, *_) = [everyone.index(model) for model in models], models  # models of one method have one step
    scores, values = whole.scores[:, rows], whole.values[:, rows]  # [attacks or readings, models, samples]
    scored, valued = (np.isfinite(numbers).any(axis=(1, 2)) for numbers in (scores, values))
    return dataclasses.replace(
        whole, forget=whole.forget[rows], heldout=whole.heldout[rows], retain=whole.retain[rows],
        attacks=whole.attacks[scored], scores=scores[scored], readings=whole.readings[valued], values=values[valued],
        direction=whole.direction[valued], share=whole.share[valued], step=-1 if first.step is None else first.step,
    )  # fmt: skip


def notes_on_retrained(models: list[Model]) -> list[str]:
    """Return a list of one note with the AUCs of retrained models that differ from .5 by more than chance; [] if no AUC
    does.

    If one does, a method with an AUC of .5 is not like retraining, of which the note warns users. The list is also
    empty if the samples of all models are a random draw, and if a model has no AUC.
    """
    by_model = [aucs(model) for model in models]
    if all(model.fair for model in models) or not all(by_model):
        return []
    forgotten, heldout = (np.mean([getattr(model, side).sum() for model in models]) for side in (FORGET, HELDOUT))
    # The standard error of an AUC (of the Mann–Whitney statistic) if forgotten and held-out samples are alike.
    error = np.sqrt((forgotten + heldout + 1) / (12 * forgotten * heldout))
    # The attacks of the first model.
    means = {name: float(np.mean([values[name] for values in by_model if name in values])) for name in by_model[0]}
    differing = {name: value for name, value in means.items() if abs(value - 0.5) > STANDARD_ERRORS * error}
    if not differing:
        return []
    listed = ", ".join(f"{value:.2f} by {name}" for name, value in sorted(differing.items(), key=lambda item: item[1]))
    relation = "easier than" if min(differing.values()) > 0.5 else "harder than"
    if min(differing.values()) < 0.5 < max(differing.values()):
        relation = "unlike"
    return [
        f"Retrained models have an AUC of {listed}, not .5: what is to be forgotten is {relation} what was held out. A "
        "method with an AUC of .5 is not like retraining; distances are measured from the retrained models' AUC."
    ]


def _tables(groups: Sequence[Group], columns: dict[str, str]) -> dict[str, Any]:
    """Return the specifications of tables for the study file: name of the table → its fields.

    There is a table for the AUC of each attack, and a table for the mean over forgotten samples of each reading between
    0 and 1 (`Reading.share`). Each table lists the scenarios that have the attack or reading. ``columns``: name of an
    attack or reading in the files → its name in the study.
    """
    # Name of an attack, and of a reading, in the study → scenarios, with repetitions.
    attacks: dict[str, list[str]] = {}
    means: dict[str, list[str]] = {}
    for group in groups:
        for model in group.models:
            shares = [name for name, read in model.readings.items() if read.part == FORGET and read.share]
            for scenarios, names in ((attacks, model.scores), (means, shares)):
                for name in names:
                    scenarios.setdefault(columns[name], []).append(group.name)
    return {
        f"auc_{name}": {"title": f"AUC of {name}, forgotten against held-out samples", "metric": f"auc_{name}",
                        "scenarios": list(dict.fromkeys(scenarios))}
        for name, scenarios in attacks.items()
    } | {
        f"mean_{name}": {"title": f"{name}, mean over what is to be forgotten", "metric": f"reading_{name}",
                         "where": {"role": "forget"}, "scenarios": list(dict.fromkeys(scenarios))}
        for name, scenarios in means.items()
    }  # fmt: skip


def agreement_rows(imported: Imported) -> list[dict[str, Any]]:
    """Return the rows of the table that shows users each number that a file prints beside the one computed from its
    samples."""
    return [
        {"file": str(file), "quantity": agreement.quantity, "printed": agreement.printed,
         "recomputed": agreement.recomputed, "agrees": {True: "yes", False: "no", None: ""}[agreement.agrees],
         "how": agreement.how}
        for file, agreements in imported.agreements.items() for agreement in agreements
    ]  # fmt: skip
