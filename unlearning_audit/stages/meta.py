"""Evaluate the metrics themselves: one table and one figure of their separation, power, agreement and cost."""

from typing import Any

from unlearning_audit.comparisons import meta as evaluation
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.rows import read_study
from unlearning_audit.report import naming, style
from unlearning_audit.report.figures import _meta
from unlearning_audit.report.tables import formats
from unlearning_audit.report.tables import meta as meta_table


def meta(metrics: str, csv: str, md: str, tex: str, svg: str, png: str, settings: dict[str, Any]) -> None:
    """Write the table and the figure that show whether each metric can be trusted (power, separation, agreement, …).

    Parameters
    ----------
    metrics
        The file with the numbers of all evaluations.
    csv, md, tex
        The files of the table.
    svg, png
        The files of the figure.
    settings
        "scenarios": for each scenario, its protocol and the files of memberships, from which its models are counted.
        "own_metrics": what `workflow.parameters.own_metrics` returns. "broken": the loss of test accuracy above which
        a model counts as broken.
    """
    members = {}  # scenario → its protocol and the memberships of all its models
    for name, scenario in settings["scenarios"].items():
        batches = [Membership.read(path) for path in scenario["splits"]]
        members[name] = scenario["protocol"], Membership.concatenate(batches)
    naming.set_aliases(settings["own_metrics"])  # the next line returns the quantities of the study's own metrics too
    quantities = naming.quantities().values()
    rows = evaluation.evaluate(read_study(metrics), quantities, breaking_loss=settings["broken"], members=members)
    formats.write(meta_table.sheets(rows), csv=csv, md=md, tex=tex, columns=meta_table.COLUMNS)
    style.save(_meta.draw(rows), svg=svg, png=png)
