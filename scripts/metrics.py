"""Turn the scores and logits of one method in one scenario into numbers with intervals, and a list of records."""

from job import script

from unlearning_audit.stages.metrics import metrics

script(metrics)
