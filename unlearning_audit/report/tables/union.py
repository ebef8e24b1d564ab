"""Gather all numbers of a study in one table with a row for each number."""

from dataclasses import replace
from typing import Any

from unlearning_audit.evaluation import rows as files
from unlearning_audit.evaluation.rows import Failure, Record, Row


def records(cases: list[dict[str, Any]]) -> list[Record]:
    """Return the rows of all cases, read from their files in the order of ``cases``, which list scenario, protocol,
    method, axes and paths (see `workflow.parameters.collect`).

    The row "unchanged" of the method none is left out, because none is meant to change nothing. If models diverged, the
    row names the user's file that made them.
    """
    found = []
    for case in cases:
        for row in files.read(case["metrics"]):
            if isinstance(row, Failure) and row.kind == "diverged" and (file := case.get("file")):
                sentence = f"{file}: its models answer NaN or infinite logits; {row.sentence}"
                row = replace(row, sentence=sentence, file=file)
            if not (isinstance(row, Row) and row.metric == "unchanged" and case["plugin"] == "none"):
                found.append(Record(case["scenario"], case["protocol"], case["method"], case["axes"], row))
    return found
