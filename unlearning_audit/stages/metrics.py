"""Score one method in one scenario by attacks, and turn scores and logits into numbers with intervals, and a list of
records."""

import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.evaluation import contributions as added
from unlearning_audit.evaluation import records as lists
from unlearning_audit.evaluation import rows
from unlearning_audit.evaluation.measuring import Numbers, measure, unchanged
from unlearning_audit.evaluation.opening import case_of
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.evaluation.scoring import score
from unlearning_audit.store import parts, tables
from unlearning_audit.store.files import ArtifactError, NoAnswerError, by_hand, record_of


def metrics(
    scores: str,
    metrics: str,
    contributions: str,
    records: str,
    settings: dict[str, Any],
    place: dict[str, Any],
    **files: str | list[str],
) -> dict[str, Any]:
    """Attacks learn from shadow models only: as trained, and as unlearned by the same method; where a protocol has none
    (``own_rows``), from rows of the model that they are asked about.

    A method that failed, or whose logits are not finite, gets one row that says so, and no number; so does every
    attack and every metric that fails, beside the numbers of the others. What an attack or a metric said of the same
    models before, by the keys in ``place``, is taken from there.

    ``contributions``: where what models and samples add to the numbers that decide goes; ``records``: where the lines
    of records go; ``files``: the inputs, as `workflow.nodes.ROLES` names them; of models from elsewhere
    ``populations``, the three files of each.
    """
    started, folder = time.perf_counter(), Path(metrics).parent
    attacked, missing = _scored(scores, settings, place["attacks"], files)
    seconds = {"attacks": round(time.perf_counter() - started, 3)} if settings["attacks"] else {}
    case = case_of(settings, **files, **({"scores": [scores]} if settings["attacks"] else {}))
    case.missing = missing
    of = place["metrics"]
    known = _known(folder, of["keys"])
    numbers = measure(case, settings["metrics"], files=of["files"], terms=of["terms"], known=known)
    doubts = [*case.unread, *remarks(case.unlearned_files)]
    said = [*(Row("doubt", note=text) for text in doubts), *unchanged(case.before_files, case.unlearned_files)]
    added.write(contributions, numbers.contributions)
    lists.write(records, numbers.records)
    rows.write(metrics, [*numbers.rows, *said])
    seconds |= {name: part["seconds"] for name, part in numbers.parts.items()}
    judged = {of["keys"][name]: part for name, part in numbers.parts.items()}
    return {"rows": len(numbers.rows) + len(said), "seconds_of": seconds, "parts": attacked | judged}


def _scored(
    path: str, settings: dict[str, Any], place: dict[str, Any], files: dict[str, Any]
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Write the scores of all attacks. Returns the record of each part by its key, and why attacks could not be asked
    in a form."""
    asked: dict[str, Any] = {
        role: files[role] for role in ("data", "splits", "originals", "unlearned") if role in files
    }
    asked |= {f"{of}_readings": files.get(f"{of}_signals", []) for of in ("original", "unlearned")}
    if "attacked" in files:
        settings, asked = {**settings, "populations": settings["attacked"]}, {"populations": files["attacked"]}
    case = case_of(settings, **asked)
    if case.published is not None or not settings["attacks"]:  # their files hold scores already
        tables.write_scores(path, tables.no_scores())
        return {}, {}
    read = cache(tables.read_scores)
    known: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for name, (folder, part) in parts.beside(Path(path).parent, place["keys"]).items():
        with suppress(ArtifactError):
            known |= {of: columns for of, columns in read(folder / "scores.parquet").items() if of[0] == name}
            case.missing |= part["missing"]
    try:
        made = score(
            case, settings["attacks"], seed=settings["seed"], own_rows=settings.get("own_rows", False),
            files=place["files"], terms=place["terms"], known=known,
        )  # fmt: skip
    except NoAnswerError:  # which metrics find as well, and say
        tables.write_scores(path, tables.no_scores())
        return {}, {}
    tables.write_scores(path, made.columns, made.failed)
    missing = {
        name: {key: why for key, why in case.missing.items() if key.partition("/")[0] == name}
        for name in settings["attacks"] if name not in made.failed
    }  # fmt: skip
    return {place["keys"][name]: {"missing": of_attack} for name, of_attack in missing.items()}, case.missing


def _known(folder: Path, keys: dict[str, str]) -> dict[str, Numbers]:
    """What metrics said of the same models before."""
    known: dict[str, Numbers] = {}
    numbers, deciding, lines = cache(rows.read), cache(added.read), cache(lists.read)
    for name, (place, part) in parts.beside(folder, keys).items():
        with suppress(ArtifactError):
            known[name] = Numbers(
                numbers(place / "metrics.csv")[slice(*part["rows"])],
                {key: deciding(place / "contributions.npz")[key] for key in part["contributions"]},
                lines(place / "records.csv")[slice(*part["records"])], {name: part},
            )  # fmt: skip
    return known


def remarks(paths: list[str]) -> list[str]:
    """Sentences about users' files, from the specs of the jobs that made these files and from this job, and about files
    that were put there by hand."""
    sentences: dict[str, None] = {}
    for path in paths:
        if Path(path).with_name("spec.json").exists():
            sentences |= dict.fromkeys([*record_of(path).get("remarks", []), *filter(None, [by_hand(path)])])
    return [*sentences]
