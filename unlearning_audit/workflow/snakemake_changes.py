"""How Snakemake itself is changed while it runs jobs: each change with its reason.

All change parts of Snakemake that are not its public interface. They are made for the versions in `CHECKED`; with any
other version, Snakemake is left as it is, which costs time and changes no result, and the run says so once.

Changes of its planning are in `workflow.snakemake_plan_changes`, and one that has to be made before Snakemake reads a
study in `snakemake_logger_plugin_unlearning`.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from unlearning_audit.plugins import descendants
from unlearning_audit.workflow import forks, forkserver, interruption, results_lock

#: Minor versions of Snakemake for which the changes have been checked.
CHECKED = ("9.27",)


def apply(workflow, folder: str | None, kinds: Collection[str]) -> None:
    """Make the changes for the run that ``workflow`` starts; ``folder``: that of `start_servers`; there are jobs for
    the servers of ``kinds``."""
    installed = version("snakemake")
    if not checked():
        print(
            f"Snakemake {installed} is not one of {', '.join(CHECKED)}, so jobs start without a fork server and under "
            "Snakemake's default limit of 100 jobs per second: slower for small studies, with the same results.",
            file=sys.stderr,
        )
        return
    lift_default_job_rate(workflow)
    interruption.leave()  # a signal may have come where Python lets no exception pass
    remember_checksums()
    ask_for_sizes_once()
    answer_signals_from_a_thread(workflow)
    if not folder and workflow.local_exec and _runs_here(workflow):
        folder = forkserver.start()
    if folder and workflow.local_exec:
        forkserver.announce(folder, sorted({server for kind in kinds for server in forks.line(kind)}))
        run_scripts_in_forks(folder)
    elif folder:
        forkserver.stop(folder)


def checked() -> bool:
    """Whether the changes are known to be right for this version of Snakemake."""
    return ".".join(version("snakemake").split(".")[:2]) in CHECKED


def lift_default_job_rate(workflow) -> None:
    """Remove the default limit of 100 jobs per second; a limit that the user chose is kept.

    Reason: under a limit, every pass of the scheduler's loop starts a timer that causes another pass a second later,
    and every finished job adds such a chain, so after n jobs the queue is evaluated n times a second
    (docs/upstream_job_rate.md).
    """
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if limit and (limit.max_jobs, limit.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


def remember_checksums() -> None:
    """Let Snakemake read a file once for its checksum, as long as the file stays what it is.

    Reason: when a job has ended, it reads all inputs of the job anew for each of its outputs, while no other job can
    start. The logits of a study are inputs of hundreds of jobs (docs/upstream_checksums.md).
    """
    from snakemake.io import _IOFile

    by_itself, checksums = _IOFile.checksum, {}

    async def checksum(self, *arguments, **options):
        try:
            now = os.stat(self.file)
        except OSError:
            return await by_itself(self, *arguments, **options)
        key = (self.file, now.st_ino, now.st_size, now.st_mtime_ns, arguments, *options.items())
        if key not in checksums:
            checksums[key] = await by_itself(self, *arguments, **options)
        return checksums[key]

    _IOFile.checksum = checksum


def ask_for_sizes_once() -> None:
    """Let Snakemake ask for the size of an input once.

    Reason: whenever a job ends it asks for those of all inputs of all jobs that could start, to choose among them, a
    quarter of its own time in a run. They are there by then, and stay as they are.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler

    async def update_input_sizes(self, jobs) -> None:
        for path in {path for job in jobs for path in job.input if path not in self._input_sizes}:
            self._input_sizes[path] = await path.size() if await path.exists() else None

    JobScheduler.update_input_sizes = update_input_sizes


def answer_signals_from_a_thread(workflow) -> None:
    """Let a thread answer SIGINT (Ctrl-C), SIGTERM and SIGHUP, which end the run at once, with its jobs; further ones
    change nothing.

    Reason: Snakemake's own handlers do it in the main thread, between any two of its steps. There the one of SIGTERM
    may wait for the scheduler's lock, which this very thread holds, and KeyboardInterrupt may come when a semaphore's
    lock has just been taken, so that nobody ever leaves it: the run waits for ever for jobs that have ended. After
    SIGTERM it waits for the jobs that run, for hours where they train, and SIGHUP leaves them alone.
    """
    scheduler = workflow.scheduler
    finish_jobs = scheduler._finish_jobs

    def finish_jobs_or_end() -> None:
        if interruption.noticed():  # here the scheduler holds nothing that it does not leave
            raise KeyboardInterrupt
        finish_jobs()

    scheduler._finish_jobs = finish_jobs_or_end
    read, write = os.pipe()

    def answer() -> None:
        interruption.begin(os.read(read, 1)[0])
        scheduler._open_jobs.release()
        while True:  # a job may be about to start
            end_jobs(workflow)
            time.sleep(0.1)

    threading.Thread(target=answer, daemon=True).start()
    for number in interruption.answered():
        signal.signal(number, lambda number, frame: os.write(write, bytes([number])))
    if scheduler._user_kill:  # SIGTERM came while its own handler was there
        signal.raise_signal(signal.SIGTERM)


def end_jobs(workflow) -> None:
    """End the jobs that run on this machine; those on a cluster are Snakemake's to cancel."""
    forkserver.end_jobs()
    if workflow.local_exec:
        for child in descendants.children(os.getpid()) - {forkserver.process_id()}:
            descendants.kill(child)


def take_over_locks(files: Collection[Path]) -> None:
    """Let a run go on where one that was killed has left Snakemake's lock; ``files``: of the study, none if it is the
    default study.

    Reason: Snakemake's lock is a list of files that says nothing of its owner, so that somebody has to know whether
    that is alive. Our runs hold a lock of the system's beside it, which ends with them. Where a run in this folder on
    this machine has signed that one and never freed it, but no process holds it, that run has left both.
    """
    from snakemake.exceptions import ApiError  # of a WorkflowError, Snakemake would print the calls that led there
    from snakemake.persistence import PersistenceBase

    by_itself = PersistenceBase.lock

    @contextmanager
    def lock(self) -> Iterator[None]:
        try:
            beside = results_lock.take(".", ".snakemake/.lock")
        except ValueError as error:
            raise ApiError(str(error)) from None
        if self.locked and beside and beside.is_left_here():
            for path in Path(".snakemake/locks").glob("*.lock"):
                path.unlink(missing_ok=True)
        if self.locked:
            typed = " ".join(str(path.name if path.parent == Path.cwd() else path) for path in files)
            raise ApiError(
                f"{Path.cwd()}: this folder was locked by a run that was killed, or that goes on elsewhere; if none "
                f"goes on: {f'audit unlock {typed}'.rstrip()}"
            )
        if beside:
            beside.sign()
        try:
            with by_itself(self):
                yield
        finally:
            if beside:
                beside.free()

    PersistenceBase.lock = lock


def start_servers(workflow) -> str | None:
    """Start the fork server (see `forkserver.start`) if ``workflow`` is read to run jobs on this machine, so that
    libraries are imported while Snakemake plans. Returns the folder of its sockets, or None.

    Where a study has a report already there may be nothing to do, so `apply` starts the server once jobs are known.
    """
    first = not any(Path("results").glob("*/report.html"))
    return forkserver.start() if first and checked() and _runs_here(workflow) else None


def begins_runs(workflow) -> bool:
    """Whether ``workflow`` is read by the Snakemake that a user started, of a version for which this is checked, and
    not by one of its jobs."""
    from snakemake.settings.types import ExecMode

    in_charge = threading.current_thread() is threading.main_thread()
    return checked() and in_charge and workflow.exec_mode == ExecMode.DEFAULT


def _runs_here(workflow) -> bool:
    """Whether ``workflow`` is read to run jobs on this machine."""
    from snakemake.settings.types import ExecMode

    runs = workflow.exec_mode == ExecMode.DEFAULT and not workflow.output_settings.dryrun
    return runs and workflow.resource_settings.cores is not None  # for jobs elsewhere, their number is given instead


def run_scripts_in_forks(folder: str) -> None:
    """Run the Python scripts of this run in forks of the server in ``folder``, where a fork can replace a process.

    Reason: Snakemake starts a shell and an interpreter for every script. There is no setting for this, so a method is
    replaced. Jobs with a GPU, several threads, another environment or a container start as before.
    """
    from snakemake.script import PythonScript

    by_itself = PythonScript.execute_script

    def execute_script(self, fname: str, edit: bool = False) -> None:
        elsewhere = self.conda_env or self.container_img or self.env_modules or self.shadow_dir or self.bench_record
        code = None
        if interruption.noticed():
            raise subprocess.CalledProcessError(forks.INTERRUPTED, fname)
        if not (edit or elsewhere or self.resources.get("gpu")) and self.threads == 1:
            temporary = self.resources.get("tmpdir")
            stage = Path(fname).stem.rpartition(".")[2]  # tmp….train.py
            door = forkserver.door_for(stage, self.params.get("settings", {}))
            added = {"TMPDIR": temporary} if temporary else {}
            name = str(Path(self.log[0]).parent) if self.log else ""
            code = forkserver.run(folder, door, [fname], {**forkserver.ONE_THREAD, **added}, name)
        try:
            if code is None:
                by_itself(self, fname, edit)
            elif code:
                raise subprocess.CalledProcessError(code, f"{sys.executable} {fname}")
        except subprocess.CalledProcessError as error:
            if error.returncode in interruption.STATUSES:
                interruption.noticed(interruption.GRACE)
            raise

    PythonScript.execute_script = execute_script
