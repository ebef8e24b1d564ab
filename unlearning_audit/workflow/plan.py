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
    """Plan a study: return all jobs that it needs, the files of every method's results and the comparisons. Raises
    ValueError if it has more jobs or models than its limit."""
    plan = Plan(study)
    todo = [_of(plan, scenario) for scenario in study.scenarios]
    plan.models = _models(study, todo)
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


def _models(study: Study, todo: list[Judged]) -> int:
    """Return an upper bound on the models that the study trains or unlearns. ``todo``: the planners of its scenarios.

    Raises ValueError, before anything is planned, if there may be more jobs or models than the study's limit.
    """
    counts = {part.scenario.name: (0, 0) for part in todo}
    for part in todo:
        (models, jobs), before = part.count(), counts[part.scenario.name]
        counts[part.scenario.name] = before[0] + models, before[1] + jobs
    models, jobs = (sum(count[i] for count in counts.values()) for i in (0, 1))
    if max(models, jobs) > study.limit:
        most = max(counts, key=lambda name: max(counts[name]))
        raise ValueError(
            f"scenarios.{most}: the study would have up to {jobs:,} jobs and {models:,} models trained or unlearned, "
            f"most of them for this scenario. This is more than limit ({study.limit:,}); make the study smaller, or "
            f"set limit to {max(models, jobs)} at its top"
        )
    return models
