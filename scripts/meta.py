"""Measure the metrics: one table and one figure of what every metric of the study is worth."""

from job import script

from unlearning_audit.stages.meta import meta

script(meta)
