"""Draw one figure of the study as svg and png."""

from job import script

from unlearning_audit.stages.figures import figures

script(figures)
