"""Score every target sample of every target model with every attack in each of its forms."""

from job import script

from unlearning_audit.stages.attack import attack

script(attack)
