"""Compare finished studies: which verdicts differ and why, and whether methods rank alike."""

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
    """A finished study: its ``folder`` and ``name``, the rows of its verdicts, and the jobs on which each verdict
    rests.

    ``distances``: (scenario, setting) → metric → method → absolute distance from retraining.
    """

    folder: Path
    name: str
    verdicts: dict[Case, dict[str, Any]]
    nodes: dict[Case, list[tuple[str, str]]]
    distances: dict[tuple[str, str], dict[str, dict[str, float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """A verdict that differs between studies.

    ``words``: the verdict of every study, “—” for none; ``why``: why the first two that differ do so.
    """

    case: Case
    words: list[str]
    why: str

    @property
    def label(self) -> str:
        """The method, scenario and setting: "salun in noisy, epsilon = 8"."""
        return _label(self.case)


@dataclass(frozen=True)
class Compared:
    """The result of a comparison of studies.

    ``share``: how many verdicts at least two studies have; ``agreement`` [studies][studies]: the mean of Kendall's τ
    over the settings that both rank, and the number of settings; ``beside``: for each shared verdict on a method, its
    label and the verdict of each study with the share of traces removed.
    """

    names: list[str]
    changes: list[Change] = field(default_factory=list)
    share: int = 0
    agreement: list[list[tuple[float, int]]] = field(default_factory=list)
    beside: list[tuple[str, list[str]]] = field(default_factory=list)


def read(folder: str | Path) -> Study:
    """Read the verdicts of a finished study, the jobs behind them and the distances from the ``folder`` of its results.

    Studies of older versions may lack the files of jobs and distances; these are then empty. Raises ArtifactError that
    names a file which is missing or not valid.
    """
    folder = Path(folder)
    table = folder / "tables" / "verdicts.csv"
    if not table.exists():
        raise ArtifactError(f"{table}: this file is missing; give the folder of a finished study, such as results/mine")
    verdicts = {(row["scenario"], row["setting"], row["method"]): row for row in cells.read(table)}
    unknown = {row["verdict"] for row in verdicts.values()} - words.STATE_OF.keys() - words.REASONS.keys()
    if unknown:
        raise ArtifactError(
            f"{table}: column 'verdict' holds {min(unknown)!r}, which no version of this program writes"
        )
    summary = folder / "summary.json"
    nodes = read_json(summary).get("nodes", {}) if summary.exists() else {}
    split = {_case(key): [tuple(node) for node in made_by] for key, made_by in nodes.items()}
    ranks = folder / "tables" / "ranks.csv"
    distances: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for row in cells.read(ranks) if ranks.exists() else ():
        if row["method"] not in naming.BASELINES:
            by_metric = distances.setdefault((row["scenario"], row["setting"]), {})
            by_metric.setdefault(row["metric"], {})[row["method"]] = abs(float(row["distance"]))
    return Study(folder, folder.name, verdicts, split, distances)


def _case(key: str) -> Case:
    """Split a key of summary.json into scenario, setting and method; only the setting may contain "|"."""
    scenario, rest = key.split("|", 1)
    setting, method = rest.rsplit("|", 1)
    return scenario, setting, method


def compare(studies: list[Study]) -> Compared:
    """Compare the verdicts of studies on the same scenario, setting and method: return those that differ, with reasons,
    the number of shared verdicts, and how far rankings agree.

    Verdicts are in the order of the first study that has them. If two studies have the same name, their folders are
    shown.
    """
    names = [study.name for study in studies]
    if len(set(names)) < len(names):
        names = [str(study.folder) for study in studies]
    cases = dict.fromkeys(case for study in studies for case in study.verdicts)
    changes, share, beside = [], 0, []
    for case in cases:
        rows = [study.verdicts.get(case) for study in studies]
        present = [i for i, row in enumerate(rows) if row]
        share += len(present) > 1
        if len(present) > 1 and case[2] not in naming.BASELINES:
            beside.append((_label(case), [_verdict_and_share(row) if row else "—" for row in rows]))
        said = [row["verdict"] if row else "" for row in rows]
        differing = next((i for i in present if said[i] != said[present[0]]), None)
        if differing is not None:
            labels = [_word(row) if row else "—" for row in rows]
            changes.append(Change(case, labels, why(studies[present[0]], studies[differing], case)))
    agreement = [[agree(left, right) for right in studies] for left in studies]
    return Compared(names, changes, share, agreement, beside)


def _label(case: Case) -> str:
    """Return a case (scenario, setting, method) as readers see it, "method in scenario, setting"."""
    scenario, setting, method = case
    place = ", ".join(filter(None, (scenario.replace("_", " "), naming.setting(setting))))
    return f"{naming.method(method)} in {place}"


def _word(row: dict[str, Any]) -> str:
    return f"{words.state(row['verdict']).mark} {words.state(row['verdict']).word}"


def _verdict_and_share(row: dict[str, Any]) -> str:
    """Return a verdict with the share of traces removed: "◐ distinguishable, 36 % [28, 43]"."""
    shares = {name: float(row[name] or "nan") for name in ("share_closed", "share_low", "share_high")}
    return ", ".join(filter(None, (_word(row), decisions.share(shares))))


def why(before: Study, after: Study, case: Case) -> str:
    """Return a sentence on why two studies may have different verdicts on a case: the first stage whose jobs differ,
    and how their settings differ.

    It says so if the jobs are not recorded, if all are the same, or if one study only has more of them.
    """
    old, new = (dict.fromkeys(study.nodes.get(case, [])) for study in (before, after))
    if not old or not new:
        return "the results do not record which jobs made this verdict"
    parts = [stage for stage in STAGES if _of(old, stage) != _of(new, stage)]
    if not parts:
        return "all keys are equal: the same jobs, run on another machine or with other versions of packages"
    stage = parts[0]
    left, right = (_of(old, stage) - _of(new, stage), _of(new, stage) - _of(old, stage))
    if not left or not right:
        longer, more = (after, right) if right else (before, left)
        jobs = naming.count(len(more), f"more {stage} job")
        return f"{longer.name} has {jobs}, and so more models; the models that both have are the same"
    return _changes((before, min(left)), (after, min(right)), stage)


def agree(left: Study, right: Study) -> tuple[float, int]:
    """Return the mean of Kendall's τ between two studies' rankings of methods by distance, and the number of settings.

    In each shared setting, methods are ranked by the first metric that both studies have. NaN and 0 without such a
    setting.
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


def _of(nodes: dict[tuple[str, str], None], stage: str) -> set[str]:
    """Return the names of the jobs of one stage."""
    return {name for at, name in nodes if at == stage}


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
    return {path.parts[-3]: path.parts[-2] for path in reversed(paths) if len(path.parts) > 2}


def _settings(old: Path, new: Path) -> str:
    """Return the settings that differ between two spec.json files; "" if none does, or if a file is missing."""
    if not (old.is_file() and new.is_file()):
        return ""
    before, after = (flat(read_json(path).get("settings", {})) for path in (old, new))
    differ = [name for name in dict.fromkeys([*before, *after]) if before.get(name) != after.get(name)]
    changes = [f"{name}: {before.get(name, '—')} → {after.get(name, '—')}" for name in differ[:MOST_SETTINGS]]
    rest = f" and {len(differ) - MOST_SETTINGS} more" if len(differ) > MOST_SETTINGS else ""
    return "; ".join(changes) + rest


def flat(tree: object, path: str = "") -> dict[str, object]:
    """Return nested settings as a flat mapping with dotted names."""
    if isinstance(tree, dict):
        parts = (flat(value, f"{path}.{name}" if path else str(name)) for name, value in tree.items())
        return {name: value for part in parts for name, value in part.items()}
    return {path: tree}


def headline(compared: Compared) -> str:
    """Return one sentence: how many verdicts the studies share, and how many of these differ; or that they share
    none."""
    changed = len(compared.changes)
    verdicts = naming.count(compared.share, "verdict")
    if not compared.share:
        return "These studies share no scenario and method, so nothing can be compared."
    differ = f"{changed or 'none'} differ{'s' if changed == 1 else ''}"
    return f"Of {verdicts} that at least two of these studies share, {differ}."


def text(compared: Compared, width: int) -> str:
    """Return the comparison as text for a terminal, in lines of at most ``width`` characters."""
    lines = textwrap.wrap(headline(compared), width)
    for change in compared.changes:
        lines += textwrap.wrap(f"{change.label}: {' → '.join(change.words)}", width)
        lines += textwrap.wrap(change.why, width, initial_indent="  ", subsequent_indent="  ")
    for i, name in enumerate(compared.names):
        for j in range(i):
            tau, count = compared.agreement[i][j]
            if count:
                mean = f"Kendall's τ {tau:.2f}, mean of {naming.count(count, 'setting')}"
                lines += textwrap.wrap(f"Ranks of {compared.names[j]} and {name}: {mean}.", width)
    return "\n".join(lines)


def rows(compared: Compared) -> list[dict[str, str]]:
    """Return a row for every verdict that the studies share: the method and scenario, each study's verdict, and, if
    they differ, why. References (none, retrain, …) are left out."""
    reasons = {_label(change.case): change.why for change in compared.changes}
    return [
        {"method": label, **dict(zip(compared.names, verdicts, strict=True)), "why": reasons.get(label, "")}
        for label, verdicts in compared.beside
    ]
