"""A logger of Snakemake that says how far a run is, in one line; `profiles/default` selects it.

Snakemake's own output comes back with ``--verbose``, ``--printshellcmds``, ``--debug-dag`` and in dry runs.
"""

import contextlib
import logging
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

if TYPE_CHECKING:
    from unlearning_audit.workflow.progress import Progress

#: Seconds between two lines on a terminal; elsewhere there is one for every tenth of the run.
REDRAWN = 0.5

#: How Snakemake says that there is nothing to do, that a script ended with a sentence, that a run was interrupted, and
#: that it ends.
NOTHING = "Nothing to be done"
EXPLAINED = "CalledProcessError", "returned non-zero exit status 1."
INTERRUPTED = "Terminating processes on user request"
ENDINGS = ("Shutting down", "Exiting because a job execution failed", "At least one job did not complete")


class LogHandler(LogHandlerBase):
    """Draws the line, and hands errors, warnings and answers to Snakemake's own handler."""

    writes_to_stream = has_filter = has_formatter = True
    writes_to_file = needs_rulegraph = False

    def __post_init__(self) -> None:
        common = self.common_settings
        self.own = ColorizingTextHandler(nocolor=common.nocolor, stream=sys.stderr)
        self.own.addFilter(
            DefaultFilter(common.quiet, common.debug_dag, common.verbose, common.dryrun, common.printshellcmds)
        )
        self.own.setFormatter(DefaultFormatter(common.quiet, common.show_failed_logs))
        self.brief = not (common.verbose or common.printshellcmds or common.debug_dag or common.dryrun)
        self.live = sys.stderr is not None and sys.stderr.isatty()
        self.cores, self.tenth = 1, 0
        self.progress: Progress | None = None
        self.drawn = self.failed = self.explained = self.interrupted = False
        self.turn = threading.RLock()

    def emit(self, record: logging.LogRecord) -> None:
        """Take up what ``record`` tells, and print what a reader needs."""
        with self.turn:
            if not self.brief:
                self.own.handle(record)
                return
            if self.interrupted:  # what follows tells of jobs that ended by it
                return
            self._follow(record)
            if self._told(record):
                self._clear()
                self.own.handle(record)
            elif self.progress is not None and not self.live:
                self._tenths()

    def _follow(self, record: Any) -> None:
        """Count the jobs that start and end."""
        event, now = getattr(record, "event", None), record.created
        if event == LogEvent.RESOURCES_INFO:
            self.cores = getattr(record, "cores", self.cores)
        elif event == LogEvent.RUN_INFO and self.progress is None:
            self._start(dict(record.stats), now)
        elif self.progress is None:
            return
        elif hasattr(record, "small"):
            self.progress.small = record.small
        elif event == LogEvent.JOB_INFO:
            node = dict(record.wildcards).get("node", "")
            self.progress.begin(record.jobid, record.rule_name, node.rpartition("-")[0], now)
        elif event == LogEvent.JOB_FINISHED:
            self.progress.end(record.job_id, now)
        elif event in (LogEvent.JOB_ERROR, LogEvent.ERROR):
            self.failed = True

    def _start(self, counts: dict[str, int], now: float) -> None:
        from unlearning_audit.workflow import progress

        counts.pop("total", None)
        self.progress = progress.Progress(counts, self.cores, started=now)
        if self.live:
            threading.Thread(target=self._redraw, daemon=True).start()

    def _told(self, record: logging.LogRecord) -> bool:
        """Whether a reader needs a record: errors, warnings, and what the workflow says itself. Of a job that has said
        in a sentence why it failed, and of the end of the run that follows, Snakemake's account adds nothing."""
        text = str(record.msg)
        if getattr(record, "rule_name", "") == "failures" or (EXPLAINED[0] in text and EXPLAINED[1] in text):
            self.explained = True
            return False
        if INTERRUPTED in text:
            self.failed = self.interrupted = True
            record.msg = "interrupted; the same command goes on"
            return True
        if self.explained and any(words in text for words in ENDINGS):
            return False
        return record.levelno >= logging.WARNING or hasattr(record, "small") or NOTHING in text

    def _tenths(self) -> None:
        assert self.progress is not None
        now = time.time()
        tenth = int(10 * self.progress.share(now))
        if tenth > self.tenth:
            self.tenth = tenth
            _print(f"{self.progress.line(now)}\n")

    def _redraw(self) -> None:
        """Draw the line again and again, until the run has ended."""
        assert self.progress is not None
        while self.progress.ended < self.progress.jobs and not self.failed:
            with self.turn:
                line = self.progress.line(time.time(), shutil.get_terminal_size().columns)
                _print(f"\r\x1b[K{line}")
                self.drawn = True
            time.sleep(REDRAWN)
        with self.turn:
            self._clear()

    def _clear(self) -> None:
        if self.drawn:
            _print("\r\x1b[K")
            self.drawn = False


def _print(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody listens any more
        print(text, end="", file=sys.stderr, flush=True)
