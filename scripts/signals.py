"""What one batch of models says beyond logits."""

from job import script

from unlearning_audit.workflow.signals import signals

script(signals)
