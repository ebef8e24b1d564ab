"""Compare finished studies: which verdicts differ and why, and whether methods rank alike."""

import itertools
import math
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit import stats
from unlearning_audit.report import decisions, naming, words
from unlearning_audit.store import cells
from unlearning_audit.store.files import ArtifactError, read_json

#: The key of a verdict: scenario, setting, method.
Case = tuple[str, str, str]
#: Stages on which a verdict rests, from the first to the last. The first whose jobs differ explains a difference.
STAGES = ("train", "unlearn", "comparisons")
#: Stages whose results are inputs of the jobs that make models.
ORIGINS = ("data", "pretrain", "splits", "selection")
#: The most settings that a sentence names.
MOST_SETTINGS = 3


@dataclass(frozen=True)
class Study:
    """A finished study, with the ``folder`` of its results. A case is (scenario, setting, method).

    Parameters
    ----------
    verdicts
        Case → its row of the study's table of verdicts.
    jobs
        Case → the jobs on which its verdict rests, each as (stage, name).
    distances
        (scenario, setting) → metric → method → absolute distance from retraining.
    """

    folder: Path
    verdicts: dict[Case, dict[str, Any]]
    jobs: dict[Case, list[tuple[str, str]]]
    distances: dict[tuple[str, str], dict[str, dict[str, float]]] = field(default_factory=dict)


def read(folder: str | Path) -> Study:
    """Read the verdicts of a finished study, the jobs behind the verdicts, and the methods' absolute distances from
    retraining, from the ``folder`` of its results. References (none, retrain, …) have no distances.

    Raises ArtifactError that names a file which is missing or not valid.
    """
    folder = Path(folder)
    table = folder / "tables" / "verdicts.csv"
    if not table.exists():
        raise ArtifactError(f"{table}: this file is missing; give the folder of a finished study, such as results/mine")
    verdicts = {_case(row): row for row in cells.table(table)}
    summary = read_json(folder / "summary.json")
    if "nodes" not in summary:
        raise ArtifactError(f"{folder}: these results of an older version do not name their jobs; run the study again")
    made_by = summary["nodes"]  # "scenario|setting|method" → jobs
    jobs = {case: [tuple(job) for job in made_by["|".join(case)]] for case in verdicts}
    distances: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for row in cells.table(folder / "tables" / "ranks.csv"):
        scenario, setting, method = _case(row)
        if method not in naming.BASELINES:
            by_metric = distances.setdefault((scenario, setting), {})
            by_metric.setdefault(row["metric"], {})[method] = abs(float(row["distance"]))
    return Study(folder, verdicts, jobs, distances)


def _case(row: dict[str, Any]) -> Case:
    """Return the case that a row of a table is about."""
    return row["scenario"], row["setting"], row["method"]


def names(studies: list[Study]) -> list[str]:
    """Return the name of each study, which is the name of its folder; if two folders have the same name, the whole
    paths of all."""
    short = [study.folder.name for study in studies]
    return short if len(set(short)) == len(short) else [str(study.folder) for study in studies]


def compare(studies: list[Study]) -> list[dict[str, str]]:
    """Return a row for every case (scenario, setting, method) on which at least two studies have a verdict.

    The columns are ``method``, the case in words; one called by the name of each study, its verdict with the share of
    traces removed, "—" without a verdict; and ``why``, why the first verdict differs from the next one that is not
    equal to it, "" if all verdicts are equal. The cases of the first study come first, in its order, then the cases
    that only later studies have.
    """
    shared = []
    for case in dict.fromkeys(case for study in studies for case in study.verdicts):
        rows = [study.verdicts.get(case) for study in studies]
        judged = [study for study in studies if case in study.verdicts]
        if len(judged) > 1:
            verdict = judged[0].verdicts[case]["verdict"]
            # The first study with another verdict than the first of all.
            other = next((study for study in judged if study.verdicts[case]["verdict"] != verdict), None)
            verdict_of = dict(zip(names(studies), [_verdict(row) if row else "—" for row in rows], strict=True))
            scenario, setting, method = case
            place = ", ".join(filter(None, (scenario.replace("_", " "), naming.setting(setting))))
            label = f"{naming.method(method)} in {place}"
            shared.append({"method": label, **verdict_of, "why": why(judged[0], other, case) if other else ""})
    return shared


def _verdict(row: dict[str, Any]) -> str:
    """Return the verdict in a ``row`` of the table of verdicts, with the share of traces removed: "● traces remain, 36
    % [28, 43]"."""
    state = words.state(row["verdict"])
    shares = {name: float(row[name] or "nan") for name in ("share_closed", "share_low", "share_high")}
    return ", ".join(filter(None, (f"{state.mark} {state.word}", decisions.share(shares))))


def why(before: Study, after: Study, case: Case) -> str:
    """Return a sentence on why two studies may have different verdicts on a case.

    The verdict rests on jobs, each of which is (stage, name). The name ends in a key made from the job's settings, so
    jobs of equal names are the same job. The first of `STAGES` in which the two studies do not have the same jobs
    decides. If each study has a job of this stage that the other study lacks, the sentence says how the settings of two
    such jobs differ. If only one study has jobs that the other lacks, the sentence says how many. If all jobs are the
    same, the sentence says so.
    """
    old, new = set(before.jobs[case]), set(after.jobs[case])
    for stage in STAGES:
        only_before = {name for job_stage, name in old - new if job_stage == stage}
        only_after = {name for job_stage, name in new - old if job_stage == stage}
        if only_before and only_after:
            jobs = ((before, only_before), (after, only_after))  # of each study, the first job stands for all
            return _changes(stage, *(study.folder.parent / stage / min(names) / "spec.json" for study, names in jobs))
        if only_before or only_after:
            more = naming.count(len(only_before | only_after), f"more {stage} job")
            larger = (after if only_after else before).folder.name
            return f"{larger} has {more}, and so more models; the models that both have are the same"
    return "all keys are equal: the same jobs, run on another machine or with other versions of packages"


def agreement(left: Study, right: Study) -> tuple[float, int]:
    """Return the mean of Kendall's τ between two studies' rankings of methods by distance from retraining, and over how
    many scenarios and settings it is the mean.

    In each scenario and setting, methods are ranked by the first metric that both studies have there. A scenario and
    setting with fewer than two common methods, or in which τ is undefined, does not count. If none counts, the result
    is NaN and 0.
    """
    taus = []
    for place, by_metric in left.distances.items():
        other_by_metric = right.distances.get(place, {})
        metric = next((name for name in by_metric if name in other_by_metric), "")
        distances, other_distances = by_metric.get(metric, {}), other_by_metric.get(metric, {})
        both = [method for method in distances if method in other_distances]
        if len(both) > 1:
            x = np.array([distances[method] for method in both])
            y = np.array([other_distances[method] for method in both])
            taus.append(stats.kendall(x=x, y=y).value)
    taus = [tau for tau in taus if not math.isnan(tau)]
    return (sum(taus) / len(taus), len(taus)) if taus else (math.nan, 0)


def _changes(stage: str, old: Path, new: Path) -> str:
    """Return how the settings of two jobs of a ``stage`` differ, and first how the settings of their origins differ: of
    the jobs of the stages `ORIGINS` (data, splits, …) whose results the two jobs take.

    For example "data otherwise: use.size: 600 → 400; train otherwise: recipe.lr: 0.1 → 0.2". For the stage
    "comparisons", which makes verdicts, origins are left out. If a file with settings is missing, or if all settings
    are equal, the sentence says so. ``old`` and ``new``: the jobs' files ``spec.json``, with their settings and the
    paths of their inputs.
    """
    noun = "verdicts computed otherwise; the models are the same" if stage == "comparisons" else f"{stage} otherwise"
    if not (old.is_file() and new.is_file()):
        return f"{noun}: its key differs; the files with its settings are missing, so they cannot be compared"
    sentences = []
    before, after = ({**_origins(spec), stage: spec} for spec in (old, new))
    for compared in (stage,) if stage == "comparisons" else (*ORIGINS, stage):
        if compared in before and compared in after and (changes := _settings(before[compared], after[compared])):
            sentences.append(f"{noun if compared == stage else f'{compared} otherwise'}: {changes}")
    return "; ".join(sentences) or f"{noun}: its settings are equal, so its inputs or the code that made it differ"


def _origins(spec: Path) -> dict[str, Path]:
    """Return stage → file ``spec.json`` of the first job of that stage among the jobs that made the inputs of a job.
    ``spec``: the file of the latter, which lists its inputs; {} if it lists none."""
    paths = [Path(path) for path in read_json(spec).get("inputs", [])]
    # A path ends in stage/name/file. In reversed order, the first job of a stage overwrites the others.
    jobs = {path.parts[-3]: path.parts[-2] for path in reversed(paths) if len(path.parts) > 2}
    return {stage: spec.parents[2] / stage / name / "spec.json" for stage, name in jobs.items()}


def _settings(old: Path, new: Path) -> str:
    """Return the settings that differ between two spec.json files, as "name: old → new"; "" if no setting differs, or
    if a file is missing. At most `MOST_SETTINGS` are listed; further settings are counted."""
    if not (old.is_file() and new.is_file()):
        return ""
    differ = differences(*(read_json(path).get("settings", {}) for path in (old, new)))
    listed = [f"{name}: {change}" for name, change in differ.items()][:MOST_SETTINGS]
    rest = f" and {len(differ) - MOST_SETTINGS} more" if len(differ) > MOST_SETTINGS else ""
    return "; ".join(listed) + rest


def differences(old: object, new: object) -> dict[str, str]:
    """Return dotted name of a setting → "old → new", for all settings in which two nested mappings differ; a missing
    value is "—"."""
    before, after = flat(old), flat(new)
    pairs = {name: (before.get(name, "—"), after.get(name, "—")) for name in dict.fromkeys([*before, *after])}
    return {name: f"{left} → {right}" for name, (left, right) in pairs.items() if left != right}


def flat(tree: object, path: str = "") -> dict[str, object]:
    """Return nested settings as a flat mapping: {"recipe": {"lr": 0.1}} as {"recipe.lr": 0.1}. An empty mapping has no
    entry.

    Parameters
    ----------
    path
        The dotted name of ``tree`` itself. A value that is not a mapping is returned under this name.
    """
    if not isinstance(tree, dict):
        return {path: tree}
    settings: dict[str, object] = {}
    for name, value in tree.items():
        settings |= flat(value, f"{path}.{name}" if path else str(name))
    return settings


def headline(shared: list[dict[str, str]]) -> str:
    """Return one sentence: on how many cases at least two studies have a verdict, and on how many of these the verdicts
    differ; or that there is no such case. ``shared``: the rows that `compare` returns."""
    changed = sum(bool(row["why"]) for row in shared)
    if not shared:
        return "These studies share no scenario and method, so nothing can be compared."
    verdicts, verb = naming.count(len(shared), "verdict"), "differs" if changed == 1 else "differ"
    return f"Of {verdicts} that at least two of these studies share, {changed or 'none'} {verb}."


def text(studies: list[Study], shared: list[dict[str, str]], width: int) -> str:
    """Return the comparison as text for a terminal, in lines of at most ``width`` characters: the verdicts that differ
    and why, and how much the rankings of methods agree in every two studies.

    Two studies without a common ranking have no line.

    Parameters
    ----------
    shared
        The rows that `compare` returns: for each case, the verdict of each study, and why verdicts differ.
    """
    lines = textwrap.wrap(headline(shared), width)
    study_names = names(studies)
    for row in shared:
        if row["why"]:  # the verdicts differ
            lines += textwrap.wrap(f"{row['method']}: {' → '.join(row[name] for name in study_names)}", width)
            lines += textwrap.wrap(row["why"], width, initial_indent="  ", subsequent_indent="  ")
    for (study, name), (other, other_name) in itertools.combinations(zip(studies, study_names, strict=True), 2):
        tau, count = agreement(study, other)
        if count:
            mean = f"Kendall's τ {tau:.2f}, mean of {naming.count(count, 'setting')}"
            lines += textwrap.wrap(f"Ranks of {name} and {other_name}: {mean}.", width)
    return "\n".join(lines)
