"""Gather the numbers of every method in every scenario, and which forgotten records are still recognised."""

from dataclasses import replace
from typing import Any

from unlearning_audit.evaluation import records as record_lists
from unlearning_audit.evaluation import rows
from unlearning_audit.evaluation.rows import Failure, Record, Row
from unlearning_audit.report import naming
from unlearning_audit.report.tables import formats
from unlearning_audit.report.tables import records as records_table
from unlearning_audit.store import tables


def collect(union: str, lists: str, csv: str, md: str, tex: str, settings: dict[str, Any]) -> None:
    """Write the numbers of all evaluations to the file ``union``, all their lists of recognised records to ``lists``,
    and a table of these records.

    Parameters
    ----------
    csv, md, tex
        The files of the table.
    settings
        "cases": one entry for each method in each scenario, with the paths of its numbers and of its recognised records
        (samples to be forgotten that an attack still recognises).
    """
    rows.write_study(union, settings["study"], gathered(settings["cases"]))
    naming.set_aliases(settings["own_metrics"])  # what is shown below names the study's own metrics too
    lines = []
    for case in settings["cases"]:
        place = {"study": settings["study"], **{name: case[name] for name in ("scenario", "setting", "method")}}
        lines += [{**place, **line} for line in record_lists.read(case["records"])]
    tables.write_rows(lists, lines, record_lists.UNION)
    exposed = record_lists.summaries(lines)
    formats.write([records_table.sheet(exposed, settings["study"])], csv=csv, md=md, tex=tex)


def gathered(cases: list[dict[str, Any]]) -> list[Record]:
    """Return the rows of all cases, read from their files in the order of ``cases``, which list scenario, protocol,
    method, axes and paths (see `workflow.parameters.collect`).

    The row "unchanged" of the method none is left out, because none is meant to change nothing. If models diverged and
    a user's file made them, the row names the file.
    """
    records = []
    for case in cases:
        file = case.get("file")
        for row in rows.read(case["metrics"]):
            if isinstance(row, Row) and row.metric == "unchanged" and case["plugin"] == "none":
                continue
            if isinstance(row, Failure) and row.kind == "diverged" and file:
                sentence = f"{file}: its models answer NaN or infinite logits; {row.sentence}"
                row = replace(row, sentence=sentence, file=file)
            records.append(Record(case["scenario"], case["protocol"], case["method"], case["axes"], row))
    return records
