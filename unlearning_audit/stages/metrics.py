"""Score one method in one scenario by attacks; turn scores and logits into numbers with intervals, and a list of
records."""

import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.evaluation import effects as effect_files
from unlearning_audit.evaluation import records as record_lists
from unlearning_audit.evaluation import rows
from unlearning_audit.evaluation.measuring import Numbers, measure, unchanged
from unlearning_audit.evaluation.opening import evaluation_of
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.evaluation.scoring import score
from unlearning_audit.store import tables
from unlearning_audit.store.files import ArtifactError, NoAnswerError, spec_of


def metrics(
    scores: str,
    metrics: str,
    effects: str,
    records: str,
    settings: dict[str, Any],
    place: dict[str, Any],
    **files: str | list[str],
) -> dict[str, Any]:
    """Write the scores, numbers, effects and records of one method in one scenario; return facts for the spec.

    Attacks learn only from shadow models: as trained, and as unlearned by the same method. Where the protocol trains no
    shadow models (``own_rows``), attacks learn from rows of the model that they attack.

    A method that failed, or whose logits are not finite, gets one row that says so, and no number. An attack or metric
    that fails gets such a row too, and the others keep their numbers. Results of an attack or metric that another job
    has computed for the same models are reused.

    Parameters
    ----------
    scores
        The file to write: scores of attacks.
    metrics
        The file to write: numbers of metrics.
    effects
        The file to write: what each model and sample adds to the numbers that decide verdicts.
    records
        The file to write: forgotten records that are still recognised.
    place
        For "attacks" and for "metrics" three mappings by name: the "keys", the users' "files" and the users' time
        limits ("terms").
    files
        Inputs by their role in the job (`workflow.nodes.ROLES`); for imported models ``populations``, three files for
        each population.
    """
    started, folder = time.perf_counter(), Path(metrics).parent
    attacked, missing = _scored(scores, settings, place["attacks"], files)
    seconds = {"attacks": round(time.perf_counter() - started, 3)} if settings["attacks"] else {}
    evaluation = evaluation_of(settings, **files, **({"scores": [scores]} if settings["attacks"] else {}))
    evaluation.missing = missing
    facts = place["metrics"]
    known = _known(folder, facts["keys"])
    numbers = measure(evaluation, settings["metrics"], files=facts["files"], terms=facts["terms"], known=known)
    # Doubts of the jobs that made the models, each once.
    remarks = [remark for path in evaluation.unlearned_files for remark in spec_of(path).get("remarks", [])]
    doubts = [Row("doubt", note=text) for text in (*evaluation.unread, *dict.fromkeys(remarks))]
    original = evaluation.group("original")
    notes = [*doubts, *unchanged(original.files if original else [], evaluation.unlearned_files)]
    effect_files.write(effects, numbers.effects)
    tables.write_rows(records, numbers.records, record_lists.COLUMNS)
    rows.write(metrics, [*numbers.rows, *notes])
    seconds |= {name: part["seconds"] for name, part in numbers.parts.items()}
    measured = {facts["keys"][name]: part for name, part in numbers.parts.items()}
    return {"rows": len(numbers.rows) + len(notes), "seconds_of": seconds, "parts": attacked | measured}


def _scored(
    path: str, settings: dict[str, Any], place: dict[str, Any], files: dict[str, Any]
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Run all attacks on one method in one scenario, and write their scores to ``path``.

    Scores that an earlier job wrote for the same key are taken from its file (``known``).

    Returns two dicts: key of an attack → facts for the spec, so that other jobs can reuse its scores; and "attack/form"
    → why this form of the attack could not run. Both dicts and the file are empty for published results, without
    attacks, and if a model failed or diverged.

    Parameters
    ----------
    place
        Three mappings by the names of attacks: "keys" to the keys of their scores, "files" to users' own files, and
        "terms" to users' time limits.
    files
        Inputs by their role in the job; for imported models, "attacked" holds the populations that attacks may see, in
        place of all.
    """
    roles = ("data", "splits", "originals", "unlearned")
    attackable: dict[str, Any] = {role: files[role] for role in roles if role in files}
    # An evaluation has one input for signals, which are those of metrics or, as here, those of attacks.
    attackable |= {f"{state}_readings": files.get(f"{state}_signals", []) for state in ("original", "unlearned")}
    if "attacked" in files:
        settings, attackable = {**settings, "populations": settings["attacked"]}, {"populations": files["attacked"]}
    evaluation = evaluation_of(settings, **attackable)
    if evaluation.published is not None or not settings["attacks"]:  # published results have scores already
        tables.write_scores(path, tables.no_scores())
        return {}, {}
    read = cache(tables.read_scores)  # several attacks may be in the file of one job, which is read once
    known: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for name, (folder, part) in _beside(Path(path).parent, place["keys"]).items():
        with suppress(ArtifactError):
            # The file has the columns of all attacks of that job, by (attack, form); key[0] is the attack.
            known |= {key: columns for key, columns in read(folder / "scores.parquet").items() if key[0] == name}
            evaluation.missing |= part["missing"]
    try:
        columns, failed = score(
            evaluation, settings["attacks"], seed=settings["seed"], own_rows=settings.get("own_rows", False),
            files=place["files"], terms=place["terms"], known=known,
        )  # fmt: skip
    except NoAnswerError:  # metrics find this too, and report it
        tables.write_scores(path, tables.no_scores())
        return {}, {}
    tables.write_scores(path, columns, failed)
    reusable = {}  # without attacks that failed as a whole, which other jobs try again
    for name in settings["attacks"]:
        if name not in failed:
            missing = {key: why for key, why in evaluation.missing.items() if key.partition("/")[0] == name}
            reusable[place["keys"][name]] = {"missing": missing}
    return reusable, evaluation.missing


def _known(folder: Path, keys: dict[str, str]) -> dict[str, Numbers]:
    """Return metric → what another job has computed of it for the same models, so that it is not computed again.

    Metrics without such results, or whose files cannot be read, are left out.

    Parameters
    ----------
    folder
        The folder of this job, beside which the folders of other jobs lie.
    keys
        Metric → the key by which the specs of jobs list its results.
    """
    known: dict[str, Numbers] = {}
    # Several metrics may be in the files of one job: each file is read once.
    read_rows, read_effects, read_records = cache(rows.read), cache(effect_files.read), cache(record_lists.read)
    # ``part``: what the spec of another job says of a metric. Its results are the lines "rows" and "records" of the
    # job's files, each (first, end), and the "effects" of these names.
    for name, (other, part) in _beside(folder, keys).items():
        with suppress(ArtifactError):
            known[name] = Numbers(
                rows=read_rows(other / "metrics.csv")[slice(*part["rows"])],
                effects={key: read_effects(other / "effects.npz")[key] for key in part["effects"]},
                records=read_records(other / "records.csv")[slice(*part["records"])], parts={name: part},
            )  # fmt: skip
    return known


def _beside(folder: Path, keys: dict[str, str]) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Find results of attacks or metrics that earlier jobs wrote for the same models, which are not computed again:
    return name → the folder that holds its results, and what the spec.json in this folder says of them.

    Names without results are left out, and folders whose spec cannot be read. If several folders have the same results,
    the last of them, sorted by name, counts.

    Parameters
    ----------
    folder
        The folder of the present job, whose name ends with a hyphen and the job's key. This folder and those beside it
        are searched that have the same name with any key.
    keys
        Name of each attack or metric → the key of its results.
    """
    names = {key: name for name, key in keys.items()}
    results: dict[str, tuple[Path, dict[str, Any]]] = {}
    for spec in sorted(folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*/spec.json")):
        with suppress(ArtifactError):
            parts = spec_of(spec).get("parts", {})
            results |= {names[key]: (spec.parent, part) for key, part in parts.items() if key in names}
    return results
