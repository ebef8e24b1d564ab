"""Write the cost ledger: seconds and memory of every job, by stage and method."""

from job import script

from unlearning_audit.stages.cost import cost

script(cost)
