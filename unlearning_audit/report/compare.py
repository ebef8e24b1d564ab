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
    """A finished study: the ``folder`` of its results, the rows of its verdicts, and the jobs on which each verdict
    rests.

    ``distances``: (scenario, setting) → metric → method → absolute distance from retraining.
    """

    folder: Path
    verdicts: dict[Case, dict[str, Any]]
    nodes: dict[Case, list[tuple[str, str]]]
    distances: dict[tuple[str, str], dict[str, dict[str, float]]] = field(default_factory=dict)


def read(folder: str | Path) -> Study:
    """Read the verdicts of a finished study, the jobs behind them and the distances from the ``folder`` of its results.

    Raises ArtifactError that names a file which is missing or not valid.
    """
    folder = Path(folder)
    table = folder / "tables" / "verdicts.csv"
    if not table.exists():
        raise ArtifactError(f"{table}: this file is missing; give the folder of a finished study, such as results/mine")
    verdicts = {(row["scenario"], row["setting"], row["method"]): row for row in cells.table(table)}
    summary = read_json(folder / "summary.json")
    if "nodes" not in summary:
        raise ArtifactError(f"{folder}: these results of an older version do not name their jobs; run the study again")
    nodes = {_case(key): [tuple(node) for node in made_by] for key, made_by in summary["nodes"].items()}
    distances: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for row in cells.table(folder / "tables" / "ranks.csv"):
        if row["method"] not in naming.BASELINES:
            by_metric = distances.setdefault((row["scenario"], row["setting"]), {})
            by_metric.setdefault(row["metric"], {})[row["method"]] = abs(float(row["distance"]))
    return Study(folder, verdicts, nodes, distances)


def _case(key: str) -> Case:
    """Split a key of summary.json into scenario, setting and method; only the setting may contain "|"."""
    scenario, rest = key.split("|", 1)
    setting, method = rest.rsplit("|", 1)
    return scenario, setting, method


def names(studies: list[Study]) -> list[str]:
    """Return the names of studies, those of their folders; the whole paths if two have the same name."""
    short = [study.folder.name for study in studies]
    return short if len(set(short)) == len(short) else [str(study.folder) for study in studies]


def compare(studies: list[Study]) -> list[dict[str, str]]:
    """Return a row for every case (scenario, setting, method) on which at least two studies have a verdict.

    The columns are ``method``: the case in words; the name of each study: its verdict with the share of traces removed,
    "—" without a verdict; ``why``: why the first verdict differs from the next one that is not equal to it, "" if all
    are equal. Cases come in the order of the first study, then those that only later studies have.
    """
    shared = []
    for case in dict.fromkeys(case for study in studies for case in study.verdicts):
        rows = [study.verdicts.get(case) for study in studies]
        (first, verdict), *others = [(study, row["verdict"]) for study, row in zip(studies, rows, strict=True) if row]
        if others:
            other = next((study for study, said in others if said != verdict), None)
            verdict_of = dict(zip(names(studies), [_verdict(row) if row else "—" for row in rows], strict=True))
            scenario, setting, method = case
            place = ", ".join(filter(None, (scenario.replace("_", " "), naming.setting(setting))))
            label = f"{naming.method(method)} in {place}"
            shared.append({"method": label, **verdict_of, "why": why(first, other, case) if other else ""})
    return shared


def _verdict(row: dict[str, Any]) -> str:
    """Return a verdict with the share of traces removed: "● traces remain, 36 % [28, 43]"."""
    state = words.state(row["verdict"])
    shares = {name: float(row[name] or "nan") for name in ("share_closed", "share_low", "share_high")}
    return ", ".join(filter(None, (f"{state.mark} {state.word}", decisions.share(shares))))


def why(before: Study, after: Study, case: Case) -> str:
    """Return a sentence on why two studies may have different verdicts on a case: the first of `STAGES` whose jobs
    differ, and how the settings of one such job in each study differ.

    If only one study has further jobs of that stage, the sentence says how many. If the two studies have the same jobs,
    the sentence says so. A job is (stage, name), and its name ends in its key.
    """
    old, new = (set(study.nodes[case]) for study in (before, after))
    for stage in STAGES:
        # Names of the jobs of this stage that only the earlier study has, and that only the later one has.
        left, right = ({name for at, name in nodes if at == stage} for nodes in (old - new, new - old))
        if left and right:
            return _changes((before, min(left)), (after, min(right)), stage)
        if left or right:
            jobs = naming.count(len(left | right), f"more {stage} job")
            longer = (after if right else before).folder.name
            return f"{longer} has {jobs}, and so more models; the models that both have are the same"
    return "all keys are equal: the same jobs, run on another machine or with other versions of packages"


def agree(left: Study, right: Study) -> tuple[float, int]:
    """Return the mean of Kendall's τ between two studies' rankings of methods by distance, and the number of settings.

    In each shared setting, methods are ranked by the first metric that both studies have. Settings with fewer than two
    common methods, or in which τ is undefined, do not count. NaN and 0 if none is left.
    """
    values = []
    for place, by_metric in left.distances.items():
        counterpart = right.distances.get(place, {})
        metric = next((name for name in by_metric if name in counterpart), "")
        x, y = by_metric.get(metric, {}), counterpart.get(metric, {})
        both = [method for method in x if method in y]
        if len(both) > 1:
            first, second = (np.array([side[method] for method in both]) for side in (x, y))
            values.append(stats.kendall(x=first, y=second).value)
    values = [value for value in values if not math.isnan(value)]
    return (sum(values) / len(values), len(values)) if values else (math.nan, 0)


def _changes(old: tuple[Study, str], new: tuple[Study, str], stage: str) -> str:
    """Return what differs between two jobs of a stage, in their data and splits first, then in their settings.

    For example "data otherwise: use.size: 600 → 400; train otherwise: recipe.lr: 0.1 → 0.2".
    """
    noun = "verdicts computed otherwise; the models are the same" if stage == "comparisons" else f"{stage} otherwise"
    if not all(_spec(study, stage, name).is_file() for study, name in (old, new)):
        return f"{noun}: its key differs; the files with its settings are missing, so they cannot be compared"
    before, after = ({**_origins(study, stage, name), stage: name} for study, name in (old, new))
    nouns = {at: f"{at} otherwise" for at in ORIGINS if stage != "comparisons"} | {stage: noun}
    differ = {at: _settings(_spec(old[0], at, before[at]), _spec(new[0], at, after[at]))
              for at in nouns if at in before and at in after}  # fmt: skip
    sentences = [f"{nouns[at]}: {changes}" for at, changes in differ.items() if changes]
    return "; ".join(sentences) or f"{noun}: its settings are equal, so its inputs or the code that made it differ"


def _spec(study: Study, stage: str, name: str) -> Path:
    return study.folder.parent / stage / name / "spec.json"


def _origins(study: Study, stage: str, name: str) -> dict[str, str]:
    """Return stage → the first job of that stage among the inputs of a job."""
    paths = [Path(path) for path in read_json(_spec(study, stage, name)).get("inputs", [])]
    # A path ends in stage/name/file. In reversed order, the first job of a stage overwrites the others.
    return {path.parts[-3]: path.parts[-2] for path in reversed(paths) if len(path.parts) > 2}


def _settings(old: Path, new: Path) -> str:
    """Return the settings that differ between two spec.json files; "" if none does, or if a file is missing."""
    if not (old.is_file() and new.is_file()):
        return ""
    differ = differences(*(read_json(path).get("settings", {}) for path in (old, new)))
    changes = [f"{name}: {change}" for name, change in differ.items()][:MOST_SETTINGS]
    rest = f" and {len(differ) - MOST_SETTINGS} more" if len(differ) > MOST_SETTINGS else ""
    return "; ".join(changes) + rest


def differences(old: object, new: object) -> dict[str, str]:
    """Return dotted name → "old → new" for all entries in which two nested settings differ; a missing one is "—"."""
    before, after = flat(old), flat(new)
    pairs = {name: (before.get(name, "—"), after.get(name, "—")) for name in dict.fromkeys([*before, *after])}
    return {name: f"{left} → {right}" for name, (left, right) in pairs.items() if left != right}


def flat(tree: object, path: str = "") -> dict[str, object]:
    """Return nested settings as a flat mapping with dotted names."""
    if isinstance(tree, dict):
        parts = (flat(value, f"{path}.{name}" if path else str(name)) for name, value in tree.items())
        return {name: value for part in parts for name, value in part.items()}
    return {path: tree}


def headline(shared: list[dict[str, str]]) -> str:
    """Return one sentence: how many verdicts studies share, and how many of these differ; or that they share none."""
    changed = sum(bool(row["why"]) for row in shared)
    if not shared:
        return "These studies share no scenario and method, so nothing can be compared."
    verdicts, differ = naming.count(len(shared), "verdict"), f"{changed or 'none'} differ{'s' if changed == 1 else ''}"
    return f"Of {verdicts} that at least two of these studies share, {differ}."


def text(studies: list[Study], shared: list[dict[str, str]], width: int) -> str:
    """Return the comparison as text for a terminal, in lines of at most ``width`` characters: the ``shared`` verdicts
    that differ, and whether methods rank alike."""
    lines = textwrap.wrap(headline(shared), width)
    called = names(studies)
    for row in (row for row in shared if row["why"]):
        lines += textwrap.wrap(f"{row['method']}: {' → '.join(row[name] for name in called)}", width)
        lines += textwrap.wrap(row["why"], width, initial_indent="  ", subsequent_indent="  ")
    for (left, one), (right, other) in itertools.combinations(zip(studies, called, strict=True), 2):
        tau, count = agree(left, right)
        if count:
            mean = f"Kendall's τ {tau:.2f}, mean of {naming.count(count, 'setting')}"
            lines += textwrap.wrap(f"Ranks of {one} and {other}: {mean}.", width)
    return "\n".join(lines)
