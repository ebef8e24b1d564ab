"""Plan a study: find out which nodes must be made, from which inputs and under which names (`workflow.nodes`).

Planning neither imports torch nor reads artifacts. If models or scores of a study with fewer blocks or attacks exist,
the plan reuses them, which changes no number.
"""

from dataclasses import replace

from unlearning_audit.study.schema import Study
from unlearning_audit.workflow import extensions
from unlearning_audit.workflow.nodes import Plan
from unlearning_audit.workflow.plan_external import ExternalPlanner
from unlearning_audit.workflow.plan_scenario import ScenarioPlanner


def make(study: Study) -> Plan:
    """Plan a study: return all jobs that it needs, the files of every method's results and the comparisons.

    At the end, each comparison is told whether and how it was extended without a plan: this depends on which results
    belong to no job of the study, so that all of its jobs must be known.
    """
    plan = Plan(study)
    # A protocol that imports models has ``populations``.
    kinds = [ExternalPlanner if each.protocol.defines("populations") else ScenarioPlanner for each in study.scenarios]
    planners = [planner(plan, scenario) for planner, scenario in zip(kinds, study.scenarios, strict=True)]
    plan.models = sum(planner.most_models() for planner in planners)
    for planner in planners:
        planner.add()
    plan.comparisons = [
        replace(comparison, extended=extensions.unplanned(plan, comparison)) for comparison in plan.comparisons
    ]
    return plan
