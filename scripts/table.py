"""Write one table of the study as csv, Markdown and LaTeX."""

from job import script

from unlearning_audit.stages.tables import tables

script(tables)
