"""Read signals other than logits from one batch of models."""

from job import script

from unlearning_audit.workflow.signals import signals

script(signals)
