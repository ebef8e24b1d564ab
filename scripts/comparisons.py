"""Compare all methods of one scenario and reach verdicts."""

from job import script

from unlearning_audit.stages.comparisons import comparisons

script(comparisons)
