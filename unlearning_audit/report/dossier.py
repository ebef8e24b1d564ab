"""Write the dossier of ``audit report --dossier``: an audit on two pages that somebody can sign."""

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
from unlearning_audit.store.files import sha256, write_text
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
#: Hexadecimal digits of a hash that are printed.
DIGITS = 16


def write(file: str, plan: Plan, page: Path) -> Path:
    """Write the dossier of a finished study, two pages that somebody can sign, beside its report ``page``; return its
    path.

    For a study that ``audit read`` wrote, two tables are read from the folder beside the study's file: the roles of the
    files that were read, and the numbers that were recomputed. A missing table counts as empty.

    Parameters
    ----------
    file
        The study's file.
    """
    order = parameters.report(plan, [file])["headline"]
    numbers = Numbers(rows.read_study(str(page.with_name("metrics.csv"))), order["cases"])
    judged = decisions.read(order.get("comparisons", []))
    imported = Path(file).with_name(f"{Path(file).stem}_models")
    places = (imported / "roles.csv", imported / "recomputed.csv")
    roles, recomputed = (cells.table(place) if place.is_file() else [] for place in places)
    attacks, impossible = _attacks(numbers)
    versions = {"unlearning-audit": installed("unlearning-audit"), "Python": platform.python_version(), **VERSIONS}
    lines = verdicts.verdicts(judged, study="").lines  # only the csv names the study
    text = templates.render(
        "dossier.html",
        naming=naming,
        lookup=lookup,
        digest=_digest,
        study=plan.study,
        file=file,
        error=words.RULES.format(family=words.FAMILIES[judged.family]),
        verdicts=lines,
        seen=_seen(judged),
        change=_change(judged),
        attacks=attacks,
        impossible=impossible,
        roles=roles,
        cases=numbers.cases,
        source=_source(roles, file),
        disputes=_disputes(numbers, roles, recomputed),
        versions=versions,
    )
    path = page.with_name("dossier.html")
    write_text(str(path), text)
    return path


def _digest(file: str) -> str:
    """Return the first `DIGITS` digits of a file's SHA-256 hash; words if the file is gone."""
    return sha256(file)[:DIGITS] if Path(file).is_file() else "this file no longer exists"


def _seen(judgements: Decisions) -> list[str]:
    """Return a sentence for each scenario with the smallest distance from retraining that its present models would have
    detected, by the best of the metrics that decide verdicts.

    The best metric is the one whose smallest distance is the smallest share of the metric's margin. If every method
    lacks a verdict because there are too few retrained models, the sentence says only that. A scenario whose smallest
    distance could not be estimated has no sentence.
    """
    sentences = []
    for judged in judgements.places.values():
        if {judged.verdicts[method]["verdict"] for method in judged.compared} == {decide.NO_YARDSTICK}:
            why = words.REASONS[decide.NO_YARDSTICK]
            sentences.append(f"{judged.label}: no distance, however large: {why}. What would decide stands below.")
            continue
        deciding = {row["metric"] for row in judged.distances if row["deciding"]}
        # Of resolution.csv, the rows on the models that there are today; other rows are plans with more models.
        today = [row for row in judged.resolution if row["what"] == "today" and row["metric"] in deciding
                 and row["margin"] > 0 and not math.isnan(row["least_distance"])]  # fmt: skip
        today = [row for row in today if row["method"] == verdicts.representative(today)]  # as the table of resolution
        if today:
            best = min(today, key=lambda row: row["least_distance"] / row["margin"])
            least = f"a distance of at least {best['least_distance']:.2g} by {decisions.label(best['metric'])}"
            sentences.append(f"{judged.label}: this audit would have seen {least}, with probability 0.8.")
    return sentences


def _change(judgements: Decisions) -> list[str]:
    """Return a sentence for each method whose verdict is open, on what would decide the verdict; references are left
    out."""
    open_verdicts = (decide.INCONCLUSIVE, *decide.STATES)
    return [
        f"{judged.label}, {naming.method(method)}: {verdicts.decides(judged, method)}"
        for judged in judgements.places.values()
        for method in judged.compared
        if judged.verdicts[method]["verdict"] in open_verdicts
    ]


def _attacks(numbers: Numbers) -> tuple[list[tuple[str, str]], list[str]]:
    """Return (attack, access to the models that it had), sorted, and sentences on attacks and metrics that could not
    run, with reasons, each sentence once.

    A score from result files (a metric "auc_…") counts as an attack. If attacks ran, and all of them are such scores,
    further sentences name the attacks that need logits, besides those of the scores, and the metrics that need weights.
    """
    access_of: dict[str, str] = {}
    impossible: list[str] = []
    for case in numbers.cases:
        for row in numbers.rows_of(case):
            name, _, form = row.attack.partition("/")  # such as "kde/trained": by shadow models as trained
            if row.metric.startswith("auc_"):
                score = row.metric.removeprefix("auc_")
                # The first pattern that fits; the last one, "", fits any score.
                access_of[score] = next(access for pattern, access in ACCESS if re.search(pattern, score))
            elif name and math.isnan(row.value) and row.note:
                impossible.append(f"{row.attack}: {row.note}")
            elif name:
                access_of[row.attack] = f"logits, and shadow models {form}" if form else "logits of every sample"
        impossible += [lookup.sentence_of(failure) for failure in numbers.failures(case) if not failure.whole]
    if access_of and all(access.endswith("from the result files") for access in access_of.values()):
        # A score and an attack are the same if four letters agree: gradnorm is gradient_norm.
        starts = {score[:4] for score in access_of}
        attacks = [name for name in registry.names("attacks") if name[:4] not in starts]
        of_weights = [name for name in registry.names("metrics") if "weights" in registry.declared("metrics", name)]
        impossible.append(f"These attacks need logits, most of them of shadow models as well: {', '.join(attacks)}.")
        impossible.append(f"These metrics need the weights: {', '.join(of_weights)}.")
    return sorted(access_of.items()), list(dict.fromkeys(impossible))


def _source(roles: list[dict[str, str]], file: str) -> str:
    """Return a sentence with the commits of the git repositories in which the audited files (of ``roles``) and the
    study's ``file`` lie, or a sentence that says that no file lies in one."""
    commits = {}
    for row in [*roles, {"file": file}]:
        folder = Path(row["file"]).resolve().parent
        git = subprocess.run(["git", "-C", str(folder), "rev-parse", "--show-toplevel", "HEAD"], capture_output=True,
                             text=True, check=False)  # fmt: skip
        if git.returncode == 0:  # otherwise the folder is in no repository
            repository, commit, *_ = git.stdout.split("\n")
            commits[Path(repository).name] = commit[:12]
    if not commits:
        return "The files are not in a repository; only their hashes identify them."
    return "Commits: " + ", ".join(f"{name} {commit}" for name, commit in commits.items())


def _disputes(numbers: Numbers, roles: list[dict[str, str]], recomputed: list[dict[str, str]]) -> list[str]:
    """Return sentences on what a reader of the dossier may dispute, each doubt once: numbers in result files that do
    not match their samples, roles of models that were decided by hand (in a csv file or by the command), and doubts
    about models. ``roles`` and ``recomputed``: the rows of roles.csv and recomputed.csv."""
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
