"""What Snakemake prints: less of it under the command audit, nothing more of an error that a sentence explains, and
nothing that fails where nobody reads."""

import errno
import logging
import os
import sys
from collections.abc import Iterable
from typing import TextIO

from unlearning_audit.workflow import compared, interruption
from unlearning_audit.workflow.nodes import Plan

#: Environment variable; 1 where only errors of Snakemake's own are wanted, because a bar says the rest.
BRIEF = "UNLEARNING_BRIEF"

#: How Snakemake names its handler for the terminal.
HANDLER = "DefaultStreamHandler"
#: The script whose failure is the run's own answer, with a line for everything that failed.
ANSWER = ".failures.py"
#: How Snakemake repeats that a script stopped.
STOPPED, EXIT_STATUS = "RuleException:\nCalledProcessError", "returned non-zero exit status 1."
ENDINGS = ("Shutting down", "Exiting because a job execution failed", "At least one job did not complete")


class Lossy:
    """A stream of text whose reader may leave: what is written then is lost, and nothing fails by it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str):
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """As of the stream."""
        try:
            return self.stream.write(text)
        except OSError as error:
            self._lose(error)
            return len(text)

    def flush(self) -> None:
        """As of the stream."""
        try:
            self.stream.flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        """Where a pipe or a terminal has gone, jobs that start from now on write to nowhere, too."""
        if error.errno in (errno.EPIPE, errno.EIO):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


class Filter(logging.Filter):
    """Leaves out how Snakemake speaks of the job that lists failures, and of the end of a run that was interrupted; if
    ``brief``, all but errors."""

    def __init__(self, brief: bool) -> None:
        super().__init__()
        self.brief, self.answered = brief, False

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is shown."""
        if interruption.noticed():
            return False
        text = record.getMessage()
        if ANSWER in text or getattr(record, "rule_name", "") == "failures":
            self.answered = True
            return False
        # A script that ends with 1 has said why; one that was killed has not.
        if self.brief and text.startswith(STOPPED) and EXIT_STATUS in text:
            self.answered = True
            return False
        if self.answered and any(words in text for words in ENDINGS):
            return False
        return not self.brief or record.levelno >= logging.ERROR or text.startswith("Nothing to be done")


def brief() -> bool:
    """Whether only errors of Snakemake's own are wanted."""
    return os.environ.get(BRIEF) == "1"


def listen() -> None:
    """Put the filter on Snakemake's handler for the terminal; the log file keeps everything. Let no output fail.

    Reason: Snakemake raises the error of a pipe that nobody reads. Where it was about to say why a job has failed, it
    never learns that the job has ended, and waits for it for ever.
    """
    from snakemake.logging import logger

    for name in ("stdout", "stderr"):
        if not isinstance(getattr(sys, name), Lossy | None):  # none where it is closed
            setattr(sys, name, Lossy(getattr(sys, name)))
    for handler in logger.handlers:
        if handler.name == HANDLER and not any(isinstance(present, Filter) for present in handler.filters):
            handler.addFilter(Filter(brief()))
            handler.stream = handler.stream and Lossy(handler.stream)


def names(plan: Plan) -> dict[str, str]:
    """Spec file → what the node is for, by the names of methods and scenarios that the user gave."""
    purposes: dict[str, dict[str, dict[str, None]]] = {}
    for case in plan.cases:
        models = {"": [*case.originals, case.data, *case.splits], case.method: [*case.unlearned, case.metrics]}
        if case.scores:
            models[case.method].append(case.scores)
        for method, paths in models.items():
            for path in paths:
                scenarios = purposes.setdefault(compared.spec(path), {}).setdefault(method, {})
                scenarios[case.scenario.name] = None
    for comparison in plan.comparisons:
        purposes.setdefault(comparison.outputs["spec"], {}).setdefault("", {})[comparison.scenario.name] = None
    return {spec: _purpose(methods) for spec, methods in purposes.items()}


def _purpose(methods: dict[str, dict[str, None]]) -> str:
    """ "salun in noisy", or "for clean, noisy and 3 more"."""
    scenarios = list(dict.fromkeys(name for names in methods.values() for name in names))
    places = ", ".join(scenarios[:2]) + (f" and {len(scenarios) - 2} more" if len(scenarios) > 2 else "")
    listing = ", ".join(name for name in methods if name)
    return f"{listing} in {places}" if listing else f"for {places}"


def running(workflow) -> Iterable[str]:
    """The spec files of the jobs that run now."""
    jobs = list(getattr(workflow.scheduler, "running", ()))
    return [str(job.output.spec) for job in jobs if "spec" in job.output.keys()]  # noqa: SIM118 (not a dict)
