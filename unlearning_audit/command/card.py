"""``audit card``: a battery of scenarios for one method, and what it found in one screen."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from unlearning_audit import ROOT
from unlearning_audit.artifacts.files import write_text

#: Settings that are tried of a method whose file says what may be tuned.
TRIALS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The method's file, and the battery."""
    parser.add_argument("file", help="a method of yours, as audit new my_method.py writes one")
    parser.add_argument("--study", default=str(ROOT / "studies/card.yaml"), help="another battery than the shipped one")


def run(args: argparse.Namespace, fields: dict, snakemake: Callable[[str], int]) -> int:
    """Write the study, run it, print the card and write its page. ``fields``: those of ``--set``; ``snakemake`` runs a
    study's file. Raises ValueError for a file that is no method."""
    import shlex

    from unlearning_audit.display.page import card

    study, method = write_battery(args.file, fields, args.study)
    if code := snakemake(f"{study}.yaml"):
        return code
    more = [word for text in args.fields for word in ("--set", text)]
    shipped = args.study == str(ROOT / "studies/card.yaml")
    battery = [] if shipped else ["--study", args.study]
    command = shlex.join(["audit", "card", args.file, *more, *battery])
    page = Path("results", study, "card.html")
    content = card.read(page.parent, method, args.file, command)
    write_text(page, card.render(content))
    print(f"\n{card.text(content)}\nCard: {page}")
    return 0


def write_battery(file: str, fields: dict, battery: str) -> tuple[str, str]:
    """Write the battery with the method in every scenario beside the working directory's other studies; the names of
    the study and of the method. Raises ValueError for a file that is no method, or a battery that is no study."""
    import json

    import yaml

    from unlearning_audit.plugins import syntax
    from unlearning_audit.study import reading
    from unlearning_audit.workflow import trial

    if trial.kind(file, fields.get("function", "")) != "methods":
        raise ValueError(f"{file}: this is no method; audit card takes a file with a function unlearn")
    name = trial.name_of(file, "methods")
    study, _ = reading.load([battery])
    reading.read(study, battery)
    study["study"] = f"card_{name}"
    entry = {"file": file if os.path.isabs(file) else os.path.relpath(file), **fields}
    tuned = {} if fields.get("tune") or "TUNE" not in syntax.defined(Path(file)) else {"tune": {"trials": TRIALS}}
    shared = study.get("defaults") or {}
    methods = _with_options(shared.get("methods") or {}, {})
    study["defaults"] = {**shared, "methods": {**methods, name: entry}}
    for i, (title, scenario) in enumerate(study["scenarios"].items()):
        scenario = scenario or {}
        if i and "methods" not in scenario:
            continue
        base = _with_options(scenario.get("methods", methods), methods)
        study["scenarios"][title] = {**scenario, "methods": {**base, name: entry if i else {**entry, **tuned}}}
    path = Path(f"{study['study']}.yaml")
    # Through JSON, which knows no anchors: what scenarios share is written out.
    write_text(path, yaml.safe_dump(json.loads(json.dumps(study)), sort_keys=False))
    return study["study"], name


def _with_options(methods: dict | list, options: dict) -> dict:
    """Methods with their options; those of a list have ``options``."""
    return {name: options.get(name, {}) for name in methods} if isinstance(methods, list) else methods
