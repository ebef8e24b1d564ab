"""Write the cost ledger: seconds and memory of every job, by stage and method."""

from typing import Any

from unlearning_audit.report.tables import cost as book
from unlearning_audit.report.tables import formats
from unlearning_audit.store import tables


def cost(ledger: str, csv: str, md: str, tex: str, settings: dict[str, Any]) -> None:
    """Write the ledger of seconds and memory, and tables of its sums.

    Everything that was timed is in these files, so that all other tables are the same on every machine.
    """
    rows = book.rows(settings["nodes"])
    tables.write_rows(ledger, rows, book.COLUMNS)
    formats.write(book.sheets(rows, settings), csv=csv, md=md, tex=tex)
