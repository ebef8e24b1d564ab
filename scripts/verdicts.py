"""Write the verdicts, the ranks and the resolution of a study as tables, and draw the verdicts."""

from job import script

from unlearning_audit.stages.verdicts import verdicts

script(verdicts)
