"""Show in one line how far a run of Snakemake is; `profiles/default` selects this logger.

With ``--verbose``, ``--printshellcmds``, ``--debug-dag`` and in dry runs, Snakemake's own output is shown.
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

#: Seconds between two drawings of the line on a terminal. Elsewhere, it is printed for every tenth of the run.
REDRAW_SECONDS = 0.5

#: Words by which Snakemake answers where it runs no job, says that a script failed with a sentence, that a run was
#: interrupted, and that it ends.
ANSWERS = "Nothing to be done", "Report created", "Unlocked"
EXPLAINED = "CalledProcessError", "returned non-zero exit status 1."
INTERRUPTED = "Terminating processes on user request"
ENDINGS = ("Shutting down", "Exiting because a job execution failed", "At least one job did not complete")


class LogHandler(LogHandlerBase):
    """A handler that draws the line of progress, and passes errors, warnings and answers to Snakemake's own handler."""

    # What Snakemake asks of a logger plug-in.
    writes_to_stream = has_filter = has_formatter = True
    writes_to_file = needs_rulegraph = False

    def __post_init__(self) -> None:
        """Prepare Snakemake's own handler (``snakemakes``), and find out whether the line is shown at all (``brief``)
        and on a terminal (``live``). At first, the line is not on the terminal (``drawn``), nothing has ``failed``, no
        job has ``explained`` why, and no tenth of the run is printed (``tenth``)."""
        common = self.common_settings
        self.snakemakes = ColorizingTextHandler(nocolor=common.nocolor, stream=sys.stderr)
        self.snakemakes.addFilter(
            DefaultFilter(common.quiet, common.debug_dag, common.verbose, common.dryrun, common.printshellcmds)
        )
        self.snakemakes.setFormatter(DefaultFormatter(common.quiet, common.show_failed_logs))
        self.brief = not (common.verbose or common.printshellcmds or common.debug_dag or common.dryrun)
        self.live = sys.stderr is not None and sys.stderr.isatty()
        self.cores, self.tenth = 1, 0
        self.progress: Progress | None = None
        self.drawn = self.failed = self.explained = self.interrupted = False
        self.turn = threading.RLock()

    def emit(self, record: logging.LogRecord) -> None:
        """Update the progress by ``record``, and print the record if a reader needs it. Without the line (not
        ``brief``), only let Snakemake's own handler print it."""
        with self.turn:
            if not self.brief:
                self.snakemakes.handle(record)
                return
            if self.interrupted:  # later records are about jobs that the interruption ended
                return
            self._follow(record)
            if self._is_shown(record):
                self._clear()
                self.snakemakes.handle(record)
            elif self.progress is not None and not self.live:
                self._print_tenths(self.progress)

    def _follow(self, record: Any) -> None:
        """Follow the run by its records: count the jobs that start and end, and note when one has failed.

        The first record with the run's jobs starts the progress; of the records before it, only the number of cores is
        used. Messages of the workflow itself have ``small``: the first says by it whether the shipped rates hold for
        the models; in the last, after the run, it says nothing.
        """
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
            node = dict(record.wildcards).get("node", "")  # label and key, with a hyphen between them
            self.progress.begin(record.jobid, record.rule_name, node.rpartition("-")[0], now)
        elif event == LogEvent.JOB_FINISHED:
            self.progress.end(record.job_id, now)
        elif event in (LogEvent.JOB_ERROR, LogEvent.ERROR):
            self.failed = True

    def _start(self, counts: dict[str, int], now: float) -> None:
        """Begin to count: ``counts`` is rule → number of jobs. On a terminal, start the thread that draws the line."""
        from unlearning_audit.workflow import progress

        counts.pop("total", None)
        self.progress = progress.Progress(counts, self.cores, started=now)
        if self.live:
            threading.Thread(target=self._redraw, args=[self.progress], daemon=True).start()

    def _is_shown(self, record: logging.LogRecord) -> bool:
        """Return whether a reader needs to see a record: an error, a warning, or a message of the workflow itself.

        Snakemake's account of a failure is hidden and noted (``explained``), because the job has said in a sentence why
        it failed. All records about the rule "failures" count as such an account. Then Snakemake's account of the end
        of the run is hidden too. An interruption is noted, and its message replaced by a shorter one.
        """
        text = str(record.msg)
        if getattr(record, "rule_name", "") == "failures" or all(words in text for words in EXPLAINED):
            self.explained = True
            return False
        if INTERRUPTED in text:
            self.failed = self.interrupted = True
            record.msg = "interrupted; the same command continues"
            return True
        if self.explained and any(words in text for words in ENDINGS):
            return False
        return record.levelno >= logging.WARNING or hasattr(record, "small") or text.startswith(ANSWERS)

    def _print_tenths(self, progress: "Progress") -> None:
        """Print the line once for each tenth of the run."""
        now = time.time()
        tenth = int(10 * progress.share(now))
        if tenth > self.tenth:
            self.tenth = tenth
            _print(f"{progress.line(now)}\n")

    def _redraw(self, progress: "Progress") -> None:
        """Draw the line every `REDRAW_SECONDS`, until all jobs have ended or one has failed."""
        while progress.ended < progress.jobs and not self.failed:
            with self.turn:
                line = progress.line(time.time(), shutil.get_terminal_size().columns)
                _print(f"\r\x1b[K{line}")
                self.drawn = True
            time.sleep(REDRAW_SECONDS)
        with self.turn:
            self._clear()

    def _clear(self) -> None:
        """Remove the line from the terminal, if it is there, so that something else can be printed."""
        if self.drawn:
            _print("\r\x1b[K")
            self.drawn = False


def _print(text: str) -> None:
    """Print ``text`` on the terminal, as it is and at once."""
    with contextlib.suppress(OSError, ValueError):  # the terminal may be closed
        print(text, end="", file=sys.stderr, flush=True)
