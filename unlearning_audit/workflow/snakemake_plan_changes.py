"""How Snakemake itself is changed while it plans: the same plan, sooner.

As those of `workflow.snakemake_changes`, all are made for the versions that have been checked, and each has its reason.
"""

from unlearning_audit.workflow.snakemake_changes import checked


def plan_quickly() -> None:
    """Make all changes; to be called before Snakemake plans."""
    if checked():
        word_only_what_is_said()
        look_for_scripts_once()


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
