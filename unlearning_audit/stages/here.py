"""Makes what a study of models from elsewhere asks for in this process, without Snakemake and without torch."""

import sys
from collections.abc import Callable
from pathlib import Path

import unlearning_audit
from unlearning_audit.artifacts.files import seal, write_spec
from unlearning_audit.plugins import isolation
from unlearning_audit.stages.collect import collect
from unlearning_audit.stages.comparisons import comparisons
from unlearning_audit.stages.cost import cost
from unlearning_audit.stages.curves import curves
from unlearning_audit.stages.external import external
from unlearning_audit.stages.figures import figures
from unlearning_audit.stages.meta import meta
from unlearning_audit.stages.metrics import metrics
from unlearning_audit.stages.report import report
from unlearning_audit.stages.selection import selection
from unlearning_audit.stages.tables import tables
from unlearning_audit.stages.verdicts import verdicts
from unlearning_audit.workflow import jobs, parameters
from unlearning_audit.workflow.nodes import ROOT, Node, Plan

#: What is computed node by node, in this order.
STAGES: dict[str, Callable] = {
    "external": external, "selection": selection, "metrics": metrics, "comparisons": comparisons,
}  # fmt: skip

RESOURCES = unlearning_audit.ROOT / "resources"


def tell(done: int, total: int) -> None:
    """Say how far an audit is, in one line that is written over."""
    print(f"\r[{done} of {total}]" if done < total else "\rdone        \n", end="", file=sys.stderr, flush=True)


def nobody(done: int, total: int) -> None:
    """Say nothing."""


def make(plan: Plan, file: str, tell: Callable[[int, int], None]) -> Path:
    """All that a run of the workflow would make of a study, whose ``file`` the page names, in the working directory.
    Returns the page."""
    judge(plan, tell)
    return show(plan, file)


def judge(plan: Plan, tell: Callable[[int, int], None] = nobody) -> None:
    """Make all nodes of a plan but those that are there; ``tell`` hears how many of them are done."""
    nodes = [node for stage in STAGES for node in plan.nodes[stage].values()]
    for done, node in enumerate(nodes):
        tell(done, len(nodes))
        if not Path(node.outputs["spec"]).exists():
            run(node, STAGES[node.stage])
    tell(len(nodes), len(nodes))


def run(node: Node, function: Callable) -> None:
    """Make one node by the function of its stage, as its job does."""
    isolation.REMARKS.clear()  # those of the node before
    spec = jobs.made(function, node.stage, node.settings, node.inputs, node.outputs, node.place, jobs.process_time())
    write_spec(node.outputs["spec"], spec)


def show(plan: Plan, file: str) -> Path:
    """Write tables, figures and the page of a study whose nodes are there."""
    import matplotlib

    folder = Path(ROOT, plan.study.name)
    published = str(RESOURCES / "published" / "published.csv")
    union, lists, ledger, curve = (
        str(folder / name) for name in ("metrics.csv", "records.csv", "cost.csv", "curves.json")
    )

    def table(name: str) -> dict[str, str]:
        return {ending: str(folder / "tables" / f"{name}.{ending}") for ending in ("csv", "md", "tex")}

    def figure(name: str) -> dict[str, str]:
        return {ending: str(folder / "figures" / f"{name}.{ending}") for ending in ("svg", "png")}

    with matplotlib.rc_context():
        collect(union, lists, **table("records"), **figure("records"), settings=parameters.collect(plan))
        cost(ledger, **table("cost"), settings=parameters.cost(plan))
        verdicts(
            ledger,
            [path for name in ("verdicts", "ranks", "resolution") for path in table(name).values()],
            [path for name in ("verdicts", "resolution") for path in figure(name).values()],
            parameters.verdicts(plan),
        )
        for name in ("headline", *plan.study.tables):
            tables(union, published, **table(name), settings=parameters.table(plan, name))
        for name in plan.study.figures:
            figures(union, **figure(name), settings=parameters.figure(plan, name))
        meta(union, **table("meta"), **figure("meta"), settings=parameters.meta(plan))
    curves(curve, parameters.curves(plan))
    html, text, summary = (folder / name for name in ("report.html", "headline.txt", "summary.json"))
    report(
        union, ledger, curve, lists, published, str(RESOURCES / "page"), plan.specs(), str(html), str(text),
        str(summary), parameters.report(plan, [file]),
        *(sorted(map(str, folder.glob(f"{kind}/[!.]*"))) for kind in ("tables", "figures")),
    )  # fmt: skip
    for path in folder.rglob("[!.]*.*"):
        seal(path)
    return html
