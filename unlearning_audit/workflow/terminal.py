"""What Snakemake prints: less of it under the command audit, and nothing more of an error that a sentence explains."""

import logging
import os
from collections.abc import Iterable

from unlearning_audit.workflow import compared, interruption, lossy
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

    lossy.standard()
    for handler in logger.handlers:
        if handler.name == HANDLER and not any(isinstance(present, Filter) for present in handler.filters):
            handler.addFilter(Filter(brief()))
            handler.stream = lossy.tolerant(handler.stream)


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
