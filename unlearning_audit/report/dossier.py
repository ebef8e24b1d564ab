"""Write the dossier of ``audit report --dossier``: an audit on two pages that somebody can sign."""

import hashlib
import math
import platform
import re
import subprocess
from pathlib import Path

from unlearning_audit.evaluation import rows
from unlearning_audit.plugins import registry
from unlearning_audit.report import decisions, lookup, naming, templates, words
from unlearning_audit.report.decisions import Decisions
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.tables import verdicts
from unlearning_audit.stats import decide
from unlearning_audit.store import cells
from unlearning_audit.store.files import write_text
from unlearning_audit.workflow import parameters
from unlearning_audit.workflow.nodes import Plan
from unlearning_audit.workflow.versions import VERSIONS, installed

#: (pattern of the name of a score in result files, the access to the models that computing it takes).
ACCESS = tuple((pattern, f"{what}, from the result files") for pattern, what in (
    ("grad", "gradients of each sample, and so the weights"),
    ("ref", "losses of each model and of a reference model"),
    ("lira|rmia", "answers of each model and of reference models to each sample"),
    ("loss|nll|ppl|perplex|zlib|min_?k", "the probability of each sample, or of its tokens"),
    ("", "a score of each sample; the files do not say how it was computed"),
))  # fmt: skip
#: Whether result files were read → a sentence on what the auditor had.
ACCESS_TO = {
    True: "The auditor had the result files of all models, with numbers for each sample; no model was run.",
    False: "The auditor had the logits of all models on all samples, and knew who saw what.",
}
#: The most lines of a table or list that are printed; the files have all.
MOST = 12
#: Hexadecimal digits of a hash that are printed.
DIGITS = 16


def write(file: str, plan: Plan, page: Path) -> Path:
    """Write the dossier of a finished study, two pages that somebody can sign, beside its report ``page``; return its
    path.

    ``file``: the study's file. The tables of roles and of recomputed numbers, which ``audit read`` writes into a folder
    beside it, are read if they exist; a missing one counts as empty.
    """
    order = parameters.report(plan, [file])["headline"]
    numbers = Numbers(rows.read_union(str(page.with_name("metrics.csv"))), order["cases"])
    judged = decisions.read(order.get("comparisons", []))
    beside = Path(file).with_name(f"{Path(file).stem}_models")
    roles, recomputed = (
        cells.table(path) if (path := beside / name).is_file() else [] for name in ("roles.csv", "recomputed.csv")
    )
    attacks, impossible = _attacks(numbers)
    # The dossier explains only these two verdicts, "traces remain" and "like retraining".
    error = words.VERDICTS.partition(" Removed:")[0].format(family=words.FAMILIES[judged.family])
    text = templates.render(
        "dossier.html", most=MOST, study=plan.study.name, file=file, digest=_digest(Path(file)), seed=plan.study.seed,
        bootstrap=plan.study.bootstrap, error=error, verdicts=_verdicts(judged), seen=_seen(judged),
        change=_change(judged), attacks=attacks, impossible=impossible, audited=_audited(numbers, roles),
        access=ACCESS_TO[bool(roles)], source=_source(roles, file),
        left_out=[row["why"] for row in roles if row["role"] == "left out"],
        disputes=_disputes(numbers, roles, recomputed), versions=_versions(),
    )  # fmt: skip
    path = page.with_name("dossier.html")
    write_text(str(path), text)
    return path


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS] if path.is_file() else "this file no longer exists"


def _verdicts(judged: Decisions) -> list[tuple[str, ...]]:
    """Return a row for each method of each scenario: scenario, method, verdict, distance with its metric, and
    p-value."""
    # The cells of a line are the verdict, what is removed, distance, factor, by which metric, p, and others.
    lines = ((line, [cell.text for cell in line.cells]) for line in verdicts.verdicts(judged, "").lines)
    return [
        (line.section, line.label, word, f"{distance or factor} {by}".rstrip(), p)
        for line, (word, _, distance, factor, by, p, *_) in lines
    ]


def _seen(judged: Decisions) -> list[str]:
    """Return a sentence for each scenario with the smallest distance that it would have detected, by its best metric.

    The best metric detects the smallest share of its margin. If every method lacks a verdict because there are too few
    retrained models, the sentence says so. A scenario whose smallest distance could not be estimated has no sentence.
    """
    sentences = []
    for where, needs in judged.resolution.items():
        rows_of = [row for method, row in judged.verdicts[where].items() if method not in naming.BASELINES]
        if {row["verdict"] for row in rows_of} == {decide.NO_YARDSTICK}:
            why = words.REASONS[decide.NO_YARDSTICK]
            sentences.append(
                f"{lookup.label(where)}: no distance, however large: {why}. What would decide stands below."
            )
            continue
        deciding = {row["metric"] for row in judged.distances[where] if row["deciding"]}
        today = [row for row in needs if row["what"] == "today" and row["metric"] in deciding and row["margin"] > 0
                 and not math.isnan(row["least_distance"])]  # fmt: skip
        if today:
            best = min(today, key=lambda row: row["least_distance"] / row["margin"])
            sentences.append(
                f"{lookup.label(where)}: this audit would have seen a distance of at least "
                f"{best['least_distance']:.2g} by {decisions.label(best['metric'])}, with probability 0.8."
            )
    return sentences


def _change(judged: Decisions) -> list[str]:
    """Return a sentence for each method whose verdict is open, on what would decide it; references are left out."""
    open_ones = (decide.INCONCLUSIVE, *decide.STATES)
    return [
        f"{lookup.label(where)}, {naming.method(method)}: {verdicts.decides(judged, where, method, row)}"
        for where, methods in judged.verdicts.items() for method, row in methods.items()
        if row["verdict"] in open_ones and method not in naming.BASELINES
    ]  # fmt: skip


def _attacks(numbers: Numbers) -> tuple[list[tuple[str, str]], list[str]]:
    """Return (attack, access to the models that it had), sorted, and sentences on attacks that could not run, with
    reasons.

    If all attacks used scores from result files, the sentences also name what needs logits or weights.
    """
    had: dict[str, str] = {}
    impossible: dict[str, None] = {}
    for case in numbers.cases:
        for row in numbers.of(case):
            name, _, form = row.attack.partition("/")  # such as "kde/trained": by shadow models as trained
            if row.metric.startswith("auc_"):
                score = row.metric.removeprefix("auc_")
                had[score] = next(access for pattern, access in ACCESS if re.search(pattern, score))
            elif name and math.isnan(row.value) and row.note:
                impossible[f"{row.attack}: {row.note}"] = None
            elif name:
                had[row.attack] = f"logits, and shadow models {form}" if form else "logits of every sample"
        impossible |= {lookup.failed(one): None for one in numbers.failures(case) if not one.whole}
    if had and all(what.endswith("from the result files") for what in had.values()):
        heads = {name[:4] for name in had}  # gradnorm is gradient_norm
        attacks = [name for name in registry.names("attacks") if name[:4] not in heads]
        edits = [name for name in registry.names("metrics") if "weights" in registry.declared("metrics", name)]
        impossible[f"These attacks need logits, most of them of shadow models as well: {', '.join(attacks)}."] = None
        impossible[f"These metrics need the weights: {', '.join(edits)}."] = None
    return sorted(had.items()), list(impossible)


def _audited(numbers: Numbers, roles: list[dict[str, str]]) -> list[tuple[str, ...]]:
    """Return a row for each audited file, from the table of roles: path, hash, role, method, scenario, and how the role
    was decided. Files that were left out are skipped.

    Without a table of roles, there is a row for each method of each scenario, which the study itself made.
    """
    if roles:
        return [
            (row["file"], _digest(Path(row["file"])), *(row[name] for name in ("role", "method", "scenario", "why")))
            for row in roles if row["role"] != "left out"
        ]  # fmt: skip
    return [
        ("made by this study", "", "", naming.method(case["method"]), lookup.label(lookup.place(case)), "the study")
        for case in numbers.cases
    ]


def _source(roles: list[dict[str, str]], file: str) -> str:
    """Return a sentence with the commits of the git repositories in which the audited files and the study's ``file``
    lie, or one that says they lie in none."""
    commits = {}
    for row in [*roles, {"file": file}]:
        folder = Path(row["file"]).resolve().parent
        asked = subprocess.run(["git", "-C", str(folder), "rev-parse", "--show-toplevel", "HEAD"], capture_output=True,
                               text=True, check=False)  # fmt: skip
        if not asked.returncode:
            place, commit = asked.stdout.split("\n")[:2]
            commits[Path(place).name] = commit[:12]
    return "Commits: " + ", ".join(f"{name} {commit}" for name, commit in commits.items()) if commits else (
        "The files are not in a repository; only their hashes identify them."
    )  # fmt: skip


def _disputes(numbers: Numbers, roles: list[dict[str, str]], recomputed: list[dict[str, str]]) -> list[str]:
    """Return sentences on printed numbers that do not match their samples, roles decided by hand, and doubts about
    models."""
    wrong = [
        f"{row['file']}: {row['quantity']} is printed as {row['printed']}, but its samples give {row['recomputed']}."
        for row in recomputed if row["agrees"] == "no"
    ]  # fmt: skip
    by_hand = [
        f"{row['file']} {row['entry']}: its role, {row['role']}, was decided by {row['why']}."
        for row in roles if row["why"].endswith(".csv") or row["why"] == "the command"
    ]  # fmt: skip
    doubts = ((case["method"], doubt) for case in numbers.cases for doubt in numbers.noted(case, "doubt"))
    return [*wrong, *by_hand, *dict.fromkeys(f"{naming.method(method)}: {doubt}" for method, doubt in doubts)]


def _versions() -> str:
    packages = {"unlearning-audit": installed("unlearning-audit"), "Python": platform.python_version(), **VERSIONS}
    return ", ".join(f"{name} {version}" for name, version in packages.items()) + "."
