"""Find the tracebacks of failed jobs of a study in their logs."""

from pathlib import Path

from unlearning_audit.workflow.nodes import Plan

#: The line with which Python begins a traceback.
START = "Traceback (most recent call last):"


def of(plan: Plan) -> list[str]:
    """Return a text for each different traceback in the logs of a plan's jobs: the first job with this traceback, the
    job's log, and the traceback. [] if no log has one."""
    texts: dict[str, str] = {}
    for node in plan.all():
        log = Path(node.outputs["spec"]).with_name("log.txt")
        if traceback := last(log):
            texts.setdefault(traceback, f"{node.stage} {node.label} ({log}):\n{traceback}")
    return list(texts.values())


def last(log: Path) -> str:
    """Return the last traceback in a log, from its first line, `START`, to the error's sentence; "" if there is
    none."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    lines = text[text.rfind(START) :].splitlines() if START in text else []
    # The error's sentence, after the calls, is the first line without indentation.
    end = next((i for i, line in enumerate(lines) if i and line and not line.startswith((" ", "\t"))), len(lines))
    return "\n".join(lines[: end + 1])
