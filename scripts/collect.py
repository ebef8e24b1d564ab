"""Gather the numbers of every method in every scenario, and which forgotten records are still recognised."""

from job import script

from unlearning_audit.stages.collect import collect

script(collect)
