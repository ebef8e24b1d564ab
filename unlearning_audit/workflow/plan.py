"""Plan a study: find out which nodes must be made, from which inputs and under which names (`workflow.nodes`).

Planning neither imports torch nor reads artifacts. If models or scores of a study with fewer blocks or attacks exist,
the plan reuses them, which changes no number.
"""

from dataclasses import replace

from unlearning_audit.plugins import registry
from unlearning_audit.study.schema import Scenario, Study
from unlearning_audit.workflow import extensions
from unlearning_audit.workflow.nodes import Plan
from unlearning_audit.workflow.plan_external import External
from unlearning_audit.workflow.plan_scenario import Judged


def make(study: Study) -> Plan:
    """Plan a study: return all jobs that it needs, the files of every method's results and the comparisons.

    A comparison says how it was extended without a plan, which can be told only when all jobs of the study are known.
    """
    plan = Plan(study)
    todo = [_of(plan, scenario) for scenario in study.scenarios]
    plan.models = sum(part.count() for part in todo)
    for part in todo:
        part.add()
    plan.comparisons = [
        replace(comparison, extended=extensions.unplanned(plan, comparison)) for comparison in plan.comparisons
    ]
    return plan


def _of(plan: Plan, scenario: Scenario) -> Judged:
    """Return the planner of a scenario: `External` if its protocol imports models, `Judged` otherwise."""
    protocol = registry.load("protocols", scenario.protocol.name, scenario.protocol.file)
    return (External if hasattr(protocol, "populations") else Judged)(plan, scenario)
