"""Run ``audit why`` with two studies, or two versions of the code: find which artifacts they do not share, and which
field is the cause.

Only names are compared, so it takes about a second and nothing has to be built. Each cause is printed once, with the
artifacts that it changes: "train: recipe.lr: 0.1 → 0.2: 16 train, and what follows: 85 unlearn, 52 attack".
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unlearning_audit.plugins.source import SCRIPTS
from unlearning_audit.report import compare
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

#: The program that prints the nodes of a study as JSON, with the version of the library beside the scripts.
LISTING = """
import json, sys
import library
from unlearning_audit.command import edits
json.dump([*edits.listed(sys.argv[1]).items()], sys.stdout)
"""
#: (Stage, name) → settings and parents of a node, one folder of results.
Nodes = dict[tuple[str, str], dict[str, Any]]


def listed(study: str) -> Nodes:
    """Return (stage, name) → settings and parents of every node of a study, whose file is ``study``. Raises ValueError
    if the study is not valid."""
    made = plan.make(reading.read(*reading.load([study])))
    return {
        (node.stage, node.name): {
            "settings": node.settings,
            "parents": sorted((parent.stage, parent.name) for parent in node.parents.values()),
        }
        for node in made.all()
    }


def listed_by(study: str, scripts: Path) -> Nodes:
    """Return (stage, name) → settings and parents of every node of a study, planned by the version of the library that
    lies beside the folder ``scripts``.

    A new Python process runs `LISTING`, which finds that version by importing ``library`` from ``scripts``. Raises
    ValueError with the text of the error if the process fails.
    """
    command, variables = [sys.executable, "-c", LISTING, study], {**os.environ, "PYTHONPATH": str(scripts)}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if run.returncode:
        # The last line of a traceback, "exception: sentence", without the name of the exception.
        raise ValueError(run.stderr.strip().rsplit("\n", maxsplit=1)[-1].split(": ", maxsplit=1)[-1])
    # JSON has no tuples: it has turned them into lists.
    return {tuple(key): {**node, "parents": [*map(tuple, node["parents"])]} for key, node in json.loads(run.stdout)}


def listed_at(study: str, commit: str, repository: Path = SCRIPTS.parent) -> Nodes:
    """Return (stage, name) → settings and parents of every node of a study, planned by the code of a ``commit`` of the
    ``repository``. Raises ValueError if git cannot find the commit."""
    command = ["git", "archive", commit, "scripts", "unlearning_audit"]
    run = subprocess.run(command, capture_output=True, check=False, cwd=repository)
    if run.returncode:
        raise ValueError(f"--since {commit}: {run.stderr.decode().strip()}")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(run.stdout)) as archive:
            archive.extractall(folder, filter="data")
        return listed_by(study, Path(folder) / "scripts")


def causes(before: Nodes, after: Nodes) -> dict[str, tuple[Counter[str], Counter[str]]]:
    """Return why nodes of ``after`` are not in ``before``: cause → two counts of nodes by stage; {} if ``before`` has
    all of them.

    The first counts nodes that the cause changes directly, the second counts nodes that it changes only through their
    parents. A new node is compared with the nodes of ``before`` that have its stage and its label, the part of its name
    before the key.
    """
    old = defaultdict(list)  # (stage, label) → nodes of ``before``
    for (stage, name), node in before.items():
        old[stage, _label(name)].append(node)
    causes_of: dict[tuple[str, str], set[str]] = {}
    counters: dict[str, tuple[Counter[str], Counter[str]]] = defaultdict(lambda: (Counter(), Counter()))
    for (stage, name), node in after.items():  # parents come before their children
        if (stage, name) in before:
            continue
        # The causes for which its parents are new.
        inherited = set().union(*(causes_of.get(parent, set()) for parent in node["parents"]))
        changes = _changes(stage, node, old[stage, _label(name)], inherited=bool(inherited))
        causes_of[stage, name] = inherited | changes
        for cause in inherited | changes:
            direct, following = counters[cause]
            (direct if cause in changes else following)[stage] += 1
    return dict(counters)


def lines(before: Nodes, after: Nodes) -> Iterator[str]:
    """Yield what the command prints: how many of the nodes ``after`` an edit must be computed and how many can be
    reused, then one sentence for each cause why nodes must be computed."""
    new = len(after.keys() - before.keys())
    yield f"{new} of {len(after)} artifacts must be made; {len(after) - new} are shared."
    for cause, (direct, following) in causes(before, after).items():
        rest = f"; what follows: {_summary(following)}" if following else ""
        yield f"{cause}: {_summary(direct)}{rest}"


def _changes(stage: str, node: dict[str, Any], candidates: list[dict[str, Any]], *, inherited: bool) -> set[str]:
    """Return the causes that make a new node differ from the most similar of the earlier nodes, ``candidates``: one for
    each setting that differs.

    Without candidates, the cause is "new". If no setting differs, the cause is the node's code or its parents. Neither
    of these two causes is returned if ``inherited``: then a parent of the node has changed, which alone explains why
    the node is new.
    """
    if not candidates:
        return set() if inherited else {f"{stage}: new"}
    differences = [compare.differences(candidate["settings"], node["settings"]) for candidate in candidates]
    nearest = min(differences, key=len)
    if nearest:
        return {f"{stage}: {field}: {change}" for field, change in nearest.items()}
    return set() if inherited else {f"{stage}: its code or its parents"}


def _label(name: str) -> str:
    """Return a node's name without its key, which is the part after the last hyphen."""
    return name.rsplit("-", maxsplit=1)[0]


def _summary(stages: Counter[str]) -> str:
    """Return counts of nodes by stage as text, such as "16 train, 85 unlearn"."""
    return ", ".join(f"{count} {stage}" for stage, count in stages.items())
