"""Print which plug-ins of a study failed, one line each, and fail if there are any: the last job of a run."""

from job import script

from unlearning_audit.stages.failures import failures

script(failures)
