"""Write the cost ledger: seconds and memory of every job, by stage and method."""

from typing import Any

from unlearning_audit.report.tables import cost as cost_table
from unlearning_audit.report.tables import formats
from unlearning_audit.store import tables


def cost(ledger: str, csv: str, md: str, tex: str, settings: dict[str, Any]) -> None:
    """Write the file ``ledger``, with the seconds and memory of every job, and tables of its sums.

    Everything that was timed is in these files, so that all other tables are the same on every machine.
    ``settings["nodes"]``: stage, name and spec file of every job. ``settings["cases"]``: the specs behind each method.
    """
    rows = cost_table.rows(settings["nodes"])
    tables.write_rows(ledger, rows, cost_table.COLUMNS)
    formats.write(cost_table.sheets(rows, settings), csv=csv, md=md, tex=tex)
