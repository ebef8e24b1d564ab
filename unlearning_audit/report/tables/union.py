"""Gather all numbers of a study in one table with a row for each number."""

from dataclasses import replace
from typing import Any

from unlearning_audit.evaluation import rows as files
from unlearning_audit.evaluation.rows import Failure, Record, Row
from unlearning_audit.store.files import by_hand


def records(cases: list[dict[str, Any]]) -> list[Record]:
    """Return the rows of all cases, read from their files in the order of ``cases``, which list scenario, protocol,
    method, axes and paths (see `workflow.parameters.collect`).

    The row "unchanged" of the method none is left out, because none is meant to change nothing. A case whose file of
    numbers somebody edited gets a row "doubt". If models diverged, the row names the user's file that made them.
    """
    return [
        Record(case["scenario"], case["protocol"], case["method"], case["axes"], _of_file(row, case.get("file")))
        for case in cases
        for row in (
            *files.read(case["metrics"]),
            *(Row("doubt", note=note) for note in filter(None, [by_hand(case["metrics"])])),
        )
        if not (isinstance(row, Row) and row.metric == "unchanged" and case["plugin"] == "none")
    ]


def _of_file(row: Row | Failure, file: str | None) -> Row | Failure:
    """Return ``row``; if it says that models diverged and a user's ``file`` made them, its sentence begins with that
    file."""
    if isinstance(row, Failure) and row.kind == "diverged" and file:
        return replace(row, sentence=f"{file}: its models answer NaN or infinite logits; {row.sentence}", file=file)
    return row
