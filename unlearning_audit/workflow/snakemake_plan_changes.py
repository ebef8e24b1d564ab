"""How Snakemake itself is changed while it plans: the same plan, sooner and in less memory.

As those of `workflow.snakemake_changes`, all are made for the versions that have been checked, and each has its reason.
"""

from unlearning_audit.workflow.snakemake_changes import checked


def plan_quickly() -> None:
    """Make all changes; to be called before Snakemake plans."""
    if checked():
        word_only_what_is_said()
        name_environments_alone()
        look_for_scripts_once()
        name_inputs_once()
        guard_names_once()
        keep_edges_once()


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
        rules = vars(self).setdefault("seen", set())
        if job.rule.name not in rules or "{" in str(job.rule.script):  # a path with wildcards is another for each job
            by_itself(self, job)
            rules.add(job.rule.name)

    ScriptProcessor.process_job = process_job


def name_inputs_once() -> None:
    """Let jobs of one rule share what Snakemake knows of a file that they share.

    Reason: every input of every job takes more than a kilobyte by itself, a fifth of the memory of a large plan.
    """
    from snakemake import rules
    from snakemake.io import _IOFile

    by_itself, again, files = _IOFile.apply_wildcards, rules.IOFile, {}

    def apply_wildcards(self, wildcards):
        if type(self._file) is not str or "{" in self._file:  # with flags, or another file for each job
            return by_itself(self, wildcards)
        key = self.rule, self._file
        if key not in files:
            files[key] = by_itself(self, wildcards)
        return files[key]

    def io_file(file, rule=None):
        shared = type(file) is _IOFile and files.get((rule, file._file)) is file
        return file if shared else again(file, rule=rule)

    _IOFile.apply_wildcards, rules.IOFile = apply_wildcards, io_file


def guard_names_once() -> None:
    """Let Snakemake keep one object for each name that lists of files must not have, instead of two in every list.

    Reason: a job has a dozen of these lists, and so they take a tenth of the memory of a large plan.
    """
    from snakemake.iocontainers import AttributeGuard

    guards: dict[str, AttributeGuard] = {}

    def new(cls, name=None):  # a copy gets its name later
        guard = guards.get(name) or object.__new__(cls)
        return guard if name is None else guards.setdefault(name, guard)

    AttributeGuard.__new__ = new


def keep_edges_once() -> None:
    """Let Snakemake keep one set of the files that a job reads of another, not two.

    Reason: it keeps the same from both ends, and these sets take a tenth of the memory of a large plan.
    """
    from snakemake.dag import DAG

    by_itself = DAG.update_

    async def update_(self, job, *how, **options) -> None:
        new = job not in self._dependencies
        await by_itself(self, job, *how, **options)
        for before, files in self._dependencies[job].items() if new and job in self._dependencies else ():
            self.depending[before][job] = files

    DAG.update_ = update_
