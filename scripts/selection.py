"""Find the samples that the models of one scenario memorise; other scenarios select their target samples among them."""

from job import script

from unlearning_audit.stages.selection import select

script(select)
