"""Everything that changes how Snakemake itself behaves: eight changes, each with its reason.

All change parts of Snakemake that are not its public interface. They are made for the versions in `CHECKED`; with any
other version, Snakemake is left as it is, which costs time and changes no result, and the run says so once.

One more change has to be made before Snakemake reads a study: `snakemake_logger_plugin_unlearning`.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path

from unlearning.workflow import forkserver

#: Minor versions of Snakemake for which the changes have been checked.
CHECKED = ("9.27",)


def apply(workflow, kinds: Collection[str]) -> None:
    """Make the changes for the run that ``workflow`` starts; ``kinds``: see `forkserver.start`."""
    found = version("snakemake")
    if not checked():
        print(
            f"Snakemake {found} is not one of {', '.join(CHECKED)}, so jobs start without a fork server and under "
            "Snakemake's default limit of 100 jobs per second: slower for small studies, with the same results.",
            file=sys.stderr,
        )
        return
    lift_default_job_rate(workflow)
    remember_checksums()
    end_gracefully_from_a_thread(workflow)
    interrupt_once()
    if workflow.local_exec:
        run_scripts_in_forks(kinds)


def checked() -> bool:
    """Whether the changes are known to be right for this version of Snakemake."""
    return ".".join(version("snakemake").split(".")[:2]) in CHECKED


def plan_quickly() -> None:
    """Make the three changes that have to be made before Snakemake plans."""
    if checked():
        look_for_scripts_once()
        word_only_what_is_said()
        name_environments_alone()


def word_only_what_is_said() -> None:
    """Let Snakemake describe a job only where somebody reads it.

    Reason: with ``--quiet rules``, which is the default of this workflow, it words for every job what it then does not
    print, a seventh of the time of a dry run.
    """
    from snakemake.jobs import Job
    from snakemake.settings.enums import Quietness

    by_itself = Job.log_info

    def log_info(self, *how, **options) -> None:
        output = self.dag.workflow.output_settings
        quiet = output.quiet or ()  # None in a job on a cluster, which reads no profile
        if Quietness.RULES not in quiet or output.log_handler_settings or self.rule.is_checkpoint:
            by_itself(self, *how, **options)

    Job.log_info = log_info


def name_environments_alone() -> None:
    """Let Snakemake name the conda environment of a job without the parameters of the job.

    Reason: only an environment that a function chooses depends on them, and computing and keeping those of every job
    takes a twelfth of the time of a large plan.
    """
    from snakemake.jobs import Job

    by_itself = Job.conda_env_spec.fget

    def conda_env_spec(self):
        if self._conda_env_spec is None and not callable(self.rule._conda_env):
            self._conda_env_spec = self.rule.expand_conda_env(self.wildcards_dict)
        return by_itself(self)

    Job.conda_env_spec = property(conda_env_spec)


def look_for_scripts_once() -> None:
    """Let Snakemake look for the script of a rule once, not for each of its jobs.

    Reason: it reads the file anew for every job to see that it is there, a seventh of the time of a large plan.
    """
    from snakemake.dag import ScriptProcessor

    by_itself = ScriptProcessor.process_job

    def process_job(self, job) -> None:
        seen = vars(self).setdefault("seen", set())
        if job.rule.name not in seen or "{" in str(job.rule.script):  # a path with wildcards is another for each job
            by_itself(self, job)
            seen.add(job.rule.name)

    ScriptProcessor.process_job = process_job


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

    by_itself, known = _IOFile.checksum, {}

    async def checksum(self, *asked, **options):
        try:
            now = os.stat(self.file)
        except OSError:
            return await by_itself(self, *asked, **options)
        key = (self.file, now.st_ino, now.st_size, now.st_mtime_ns, asked, *options.items())
        if key not in known:
            known[key] = await by_itself(self, *asked, **options)
        return known[key]

    _IOFile.checksum = checksum


def end_gracefully_from_a_thread(workflow) -> None:
    """Let the signal SIGTERM stop the scheduler from a thread of its own.

    Reason: Snakemake's handler takes the scheduler's lock, in the main thread. If a signal comes while the scheduler
    itself holds that lock, which it does whenever it looks after finished jobs, the thread waits for itself for ever.
    """
    stop = workflow.scheduler.exit_gracefully
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=stop, daemon=True).start())


def interrupt_once() -> None:
    """Let the first SIGINT (Ctrl-C) end the run, and further ones change nothing.

    Reason: Snakemake stops its jobs while it handles the first KeyboardInterrupt; a second one that is raised meanwhile
    ends in a traceback instead.
    """

    def once(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, once)


def run_scripts_in_forks(kinds: Collection[str]) -> None:
    """Run the Python scripts of this run in forks of a server, where a fork can replace a process.

    Reason: Snakemake starts a shell and an interpreter for every script. There is no setting for this, so a method is
    replaced. Jobs with a GPU, several threads, another environment or a container start as before.
    """
    folder = forkserver.start(kinds)
    if folder is not None:
        lead_scripts_to(folder)


def lead_scripts_to(folder: str) -> None:
    """Replace the method that runs a Python script by one that asks the server in ``folder`` for a fork first."""
    from snakemake.script import PythonScript

    by_itself = PythonScript.execute_script

    def execute_script(self, fname: str, edit: bool = False) -> None:
        elsewhere = self.conda_env or self.container_img or self.env_modules or self.shadow_dir or self.bench_record
        code = None
        if not (edit or elsewhere or self.resources.get("gpu")) and self.threads == 1:
            temporary = self.resources.get("tmpdir")
            stage = Path(fname).stem.rpartition(".")[2]  # tmp….train.py
            door = forkserver.door_for(stage, self.params.get("settings", {}))
            added = {"TMPDIR": temporary} if temporary else {}
            code = forkserver.run(folder, door, [fname], {**forkserver.ONE_THREAD, **added})
        if code is None:
            by_itself(self, fname, edit)
        elif code:
            raise subprocess.CalledProcessError(code, f"{sys.executable} {fname}")

    PythonScript.execute_script = execute_script
