"""Score one method in one scenario by attacks; turn scores and logits into numbers with intervals, and a list of
records."""

from job import script

from unlearning_audit.stages.metrics import metrics

script(metrics)
