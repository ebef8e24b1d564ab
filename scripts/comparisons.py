"""Compare all methods of one scenario and come to verdicts."""

from job import script

from unlearning_audit.stages.comparisons import comparisons

script(comparisons)
