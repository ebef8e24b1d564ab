"""Evaluate the metrics themselves: one table and one figure of their separation, power, agreement and cost."""

from job import script

from unlearning_audit.stages.meta import meta

script(meta)
