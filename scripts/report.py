"""Write the study's page, and what is printed when a run ends."""

from job import script

from unlearning_audit.stages.report import report

script(report)
