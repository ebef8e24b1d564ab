"""Find the tracebacks of failed jobs of a study in their logs."""

import re
from pathlib import Path

from unlearning_audit.plugins.guard import in_library
from unlearning_audit.workflow.nodes import Plan

START = "Traceback (most recent call last):"


def of(plan: Plan) -> list[str]:
    """Return a text for each different traceback in the logs of a plan's jobs: the first job that has it, its log, and
    the traceback. [] if no log has one."""
    blocks: dict[str, str] = {}
    for stage, nodes in plan.nodes.items():
        for name, node in nodes.items():
            log = Path(node.outputs["spec"]).with_name("log.txt")
            if calls := last(log):
                blocks.setdefault(calls, f"{stage} {name.rsplit('-', 1)[0]} ({log}):\n{calls}")
    return list(blocks.values())


def last(log: Path) -> str:
    """Return the last traceback in a log, without the calls of the library before the user's first; "" if there is
    none."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = text[text.rfind(START) :].splitlines() if START in text else []
    end = next((i for i, line in enumerate(lines) if i and line and not line.startswith((" ", "\t"))), len(lines))
    calls = re.split(r"(?m)^(?=  File )", "\n".join(lines[1:end]))
    first_of_user = next((i for i, call in enumerate(calls) if call.strip() and not _of_library(call)), 0)
    return "\n".join([*lines[:1], "".join(calls[first_of_user:]).rstrip("\n"), *lines[end : end + 1]])


def _of_library(call: str) -> bool:
    """Return whether a call is in the library or in a script of the workflow."""
    file = call.split('"')[1] if '"' in call else ""
    return "/.snakemake/scripts/" in file or in_library(file)
