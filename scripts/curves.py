"""Compute the curves that open behind the verdicts of the page."""

from job import script

from unlearning_audit.stages.curves import curves

script(curves)
