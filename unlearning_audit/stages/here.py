"""Run a study of imported models in this process, without Snakemake and without torch."""

from pathlib import Path

from rich.console import Console
from rich.progress import track

from unlearning_audit.stages import collect, cost, figure, meta, report, table, verdicts
from unlearning_audit.store.files import seal, write_spec
from unlearning_audit.study.schema import DISPLAYS
from unlearning_audit.workflow import jobs, parameters
from unlearning_audit.workflow.nodes import ROOT, Node, Plan

#: The stages of a study of imported models. Each reads files of those before it.
STAGES = ("external", "selection", "metrics", "comparisons")


def make(plan: Plan, file: str, *, progress: bool) -> Path:
    """Compute and write, in the working directory, everything that the workflow would write for a study; return the
    path of the report.

    Parameters
    ----------
    file
        The study's file, which the report names.
    """
    judge(plan, progress=progress)
    return show(plan, file)


def judge(plan: Plan, *, progress: bool = False) -> None:
    """Run, in this process, the jobs of a plan of imported models that are not done: imports, attacks, metrics and
    comparisons.

    Parameters
    ----------
    progress
        Show a progress bar on a terminal or in a notebook.
    """
    nodes = [node for stage in STAGES for node in plan.nodes[stage].values()]
    screen = Console(stderr=True)
    shown = progress and (screen.is_terminal or screen.is_jupyter)
    for node in track(nodes, "scoring", console=screen, disable=not shown):
        if not Path(node.outputs["spec"]).exists():  # a job writes it last, so that it is done if this file exists
            run(node)


def run(node: Node) -> None:
    """Run one node by the function of its stage, and write its spec.json, as a job of the workflow does."""
    write_spec(node.outputs["spec"], jobs.run_and_record(node.task, jobs.process_time()))


def show(plan: Plan, file: str) -> Path:
    """Write, in this process, the tables, the figures and the report of a study whose jobs have been run; return the
    path of the report.

    Parameters
    ----------
    file
        The study's file, for the commands that the report shows.
    """
    import matplotlib

    folder = f"{ROOT}/{plan.study.name}"
    union, lists, ledger = (f"{folder}/{name}" for name in ("metrics.csv", "records.csv", "cost.csv"))
    # ``names``: of the tables and of the figures that a rule of Snakemake makes.
    shown_by = {rule: parameters.output_paths(*names, folder) for rule, names in DISPLAYS.items()}
    with matplotlib.rc_context():  # restores at the end what figures change in matplotlib's settings
        collect.collect(union, lists, **shown_by["collect"], settings=parameters.collect(plan))
        cost.cost(ledger, **shown_by["cost"], settings=parameters.cost(plan))
        verdicts.verdicts(settings=parameters.verdicts(plan), **shown_by["verdicts"])
        for name in ("headline", *plan.study.tables):
            table.table(union, **parameters.output_paths([name], (), folder), settings=parameters.table(plan, name))
        for name in plan.study.figures:
            figure.figure(union, **parameters.output_paths((), [name], folder), settings=parameters.figure(plan, name))
        meta.meta(union, **shown_by["meta"], settings=parameters.meta(plan))
    html, summary = f"{folder}/report.html", f"{folder}/summary.json"
    # Files whose names begin with a point, such as seals of an earlier call, are no results.
    files = {kind: sorted(map(str, Path(folder).glob(f"{kind}/[!.]*"))) for kind in ("tables", "figures")}
    report.report(union, ledger, lists, plan.specs(), html, summary, parameters.report(plan, [file]), **files)
    for path in Path(folder).rglob("[!.]*.*"):
        seal(path)  # writes its checksum beside it, as each job of the workflow does
    return Path(html)
