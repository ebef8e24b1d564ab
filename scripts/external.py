"""Check a user's own logits or checkpoints and their memberships, and write them in the layout that later stages
read."""

from job import script

from unlearning_audit.stages.external import external

script(external)
