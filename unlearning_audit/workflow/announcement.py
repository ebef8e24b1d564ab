"""The first line of a run: what it computes, on which data, and about how long it takes."""

from collections import Counter
from collections.abc import Mapping

from unlearning_audit.plugins import registry
from unlearning_audit.study.schema import DISPLAYS
from unlearning_audit.workflow.nodes import Node, Plan
from unlearning_audit.workflow.progress import Progress, in_words


def small(plan: Plan) -> bool:
    """Return whether the shipped rates (seconds per job) hold for all models that a plan trains: their files have
    ``SMALL = True``. Imported models are not considered, because no job trains them."""
    models = {scenario.model.name for scenario in plan.study.scenarios if not scenario.imported}
    return models <= set(registry.defining("models", "SMALL"))


def jobs(plan: Plan, nodes: list[Node]) -> dict[str, int]:
    """Return rule of Snakemake → number of its jobs, of all jobs that make these ``nodes`` of a plan and then all that
    shows the study: its tables, figures and report. The table of tuning is made only if the plan tunes a method."""
    makers = Counter(node.stage for node in nodes if not node.within)  # a node within another has no job of its own
    shown = Counter(rule for rule in DISPLAYS if rule != "tuning" or plan.nodes["tune"])
    # Every study has one table, headline, besides those that it lists.
    shown += Counter(table=1 + len(plan.study.tables), figure=len(plan.study.figures), report=1, failures=1, all=1)
    return {**makers, **shown}


def line(plan: Plan, counts: Mapping[str, int], cores: int, small: bool) -> str:
    """Return the first line of a run, such as "unlearning-audit · quickstart: 8 methods on digits, 62 jobs, about 1 min
    on 2 cores".

    Retraining, its control and "none" are not counted as methods. The data of imported models are not named. The number
    of scenarios is stated if there are several. If models are not ``small``, the line has no time, because the time is
    unknown until some are trained.

    Parameters
    ----------
    counts
        Rule → number of the jobs that it has in this run, as Snakemake or `jobs` counts them.
    """
    scenarios = plan.study.scenarios
    methods = {case.method for case in plan.cases} - {"none", "retrain", "retrain_control"}
    data = dict.fromkeys(scenario.data.name for scenario in scenarios if not scenario.imported)
    word = "method" if len(methods) == 1 else "methods"
    parts = [f"{len(methods)} {word}" + (f" on {', '.join(data)}" if data else "")]
    names = {scenario.name for scenario in scenarios}
    if len(names) > 1:
        parts.append(f"{len(names)} scenarios")
    jobs = {rule: count for rule, count in counts.items() if rule != "total"}  # Snakemake's sum over all rules
    parts.append(f"{sum(jobs.values())} jobs")
    if small:
        # At time 0 no job has ended, so that the seconds left are those of the whole run.
        seconds = Progress(jobs, slots=cores or 1).seconds_left(now=0.0)
        parts.append(f"{in_words(seconds)} on {cores} {'core' if cores == 1 else 'cores'}")
    return f"unlearning-audit · {plan.study.name}: {', '.join(parts)}"
