"""Score every target sample of every target model with every attack in each of its forms."""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from job import script

import numpy as np
from unlearning_audit.adversary import scoring
from unlearning_audit.adversary.case import Case, by_logits
from unlearning_audit.adversary.external_case import ExternalCase, usable
from unlearning_audit.artifacts import tables
from unlearning_audit.artifacts.arrays import NoAnswerError
from unlearning_audit.artifacts.files import ArtifactError, read_arrays, write_arrays
from unlearning_audit.plugins.guard import PluginError, guard
from unlearning_audit.plugins.isolation import isolated, remark
from unlearning_audit.plugins.registry import load, source_file


def apart(
    scored: Callable, case: Case, name: str, file: str | None, entry: dict, seed: int, terms: dict
) -> list[dict[str, np.ndarray]]:
    """What an attack of a user, or one that may not take for ever, says: its file is imported and run in a process of
    its own. Raises PluginError if it fails, or answers for other samples than it was asked about."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "scores.npz").absolute()

        def write() -> dict:
            with guard(where):  # what fails after the file was imported is its failure
                parts = list(scored(case, name, load("attacks", entry["name"], file), entry, seed))
                arrays = {f"{number} {column}": part[column] for number, part in enumerate(parts) for column in COLUMNS}
                write_arrays(path, **arrays)
                return {"forms": [str(part["form"][0]) for part in parts], "missing": case.missing}

        where = file or source_file("attacks", entry["name"])
        reply = isolated(write, where, **terms)
        arrays = read_arrays(path) if reply["forms"] else {}
    case.missing |= {key: why for key, why in reply["missing"].items() if key.partition("/")[0] == name}
    parts = [{column: arrays[f"{number} {column}"] for column in COLUMNS} for number in range(len(reply["forms"]))]
    return [
        scoring.answered(case, name, form, **part, file=where) for form, part in zip(reply["forms"], parts, strict=True)
    ]


#: What is taken over from a process in which a user's file ran.
COLUMNS = ("model", "index", "score", "decision")

#: Inputs that are logits → whose, in the names of other inputs.
LOGITS_OF = {"originals": "original", "unlearned": "unlearned"}


def scored_by_all(
    case: Case, settings: dict, place: dict, external: bool
) -> tuple[list[dict[str, np.ndarray]], dict[str, str], list[str]]:
    """The scores of all attacks, why attacks failed, and of which scores are taken over. Raises NoAnswerError where
    models from elsewhere (``external``) do not answer."""
    files, terms, previous = place.get("files", {}), place.get("terms", {}), place.get("known", "")
    earlier = earlier_scores(previous)
    scored = scoring.alone if settings.get("own_rows") else scoring.scored
    columns, failed, reused = [], {}, []
    for name, entry in settings["attacks"].items():
        if already := tables.rows_of(earlier, name):
            columns += already
            reused.append(name)
            continue
        try:
            if (on := terms.get(name, {})) or name in files:
                _ = case.answers(case.unlearned_files), case.originals and case.answers(case.originals)
                columns += apart(scored, case, name, files.get(name), entry, settings["seed"], on)
            else:
                columns += list(scored(case, name, load("attacks", entry["name"]), entry, settings["seed"]))
        except (PluginError, NoAnswerError) as error:
            if external and isinstance(error, NoAnswerError):
                raise
            failed[name] = str(error)  # or what else it reads of the models is not there
            print(error, file=sys.stderr)
    return columns, failed, reused


def earlier_scores(path: str) -> dict[str, np.ndarray]:
    """The scores of an earlier run, which only save work: none where there is no such file, or a damaged one."""
    try:
        return tables.read_scores(path) if path and Path(path).exists() else {}
    except ArtifactError as error:
        remark(f"{error}; all attacks were asked anew")
        return {}


@script
def attack(scores: str, settings: dict, place: dict, **files: str | list[str]) -> dict:
    """Attacks learn from shadow models only: as trained, and as unlearned by the same method.

    Where a protocol has none (``own_rows``), each learns from rows of the model that it is asked about.
    ``files``: the inputs, as `workflow.nodes.ROLES` names them; of models that came from elsewhere ``populations``, the
    three files of each, and nothing else.
    An attack that fails has no scores, and the reason is written down beside those of the others. Scores by the same
    code of the same models, of a run with fewer attacks, are taken over from ``place``.
    """
    external = "populations" in files
    if external:
        names, paths, _ = usable(settings["populations"], list(files["populations"]))
        case = ExternalCase.of(names, paths)
    else:
        readings = ((files[name], files.get(f"{of}_readings", ())) for name, of in LOGITS_OF.items())
        case = Case(*(files[name] for name in ("data", "splits", *LOGITS_OF)), readings=by_logits(*readings))
    try:
        if external and case.published is not None:  # their files hold scores already
            tables.write_scores(scores, tables.no_scores())
            return {"attacks": 0}
        if not external:
            _ = case.answers(case.unlearned_files), case.originals and case.answers(case.originals)
        columns, failed, reused = scored_by_all(case, settings, place, external)
    except NoAnswerError as error:  # of the models, so that there is nothing to be asked
        tables.write_scores(scores, tables.no_scores())
        return {"failed": str(error)}
    whole = {name: np.concatenate([c[name] for c in columns]) for name in columns[0]} if columns else tables.no_scores()
    tables.write_scores(scores, whole, failed)
    facts = {"taken": {"from": place["known"], "attacks": reused}} if reused else {}
    return {"attacks": len(settings["attacks"]), "missing": case.missing, "failed_attacks": failed, **facts}
