"""Write the cost ledger: seconds and memory of every job, by stage and method."""

from pathlib import Path

from unlearning_audit.artifacts import tables
from unlearning_audit.display.tables import cost as book
from unlearning_audit.display.tables import forecast, formats


def cost(ledger: str, csv: str, md: str, tex: str, settings: dict) -> None:
    """Everything that was timed goes here, so that all other tables are the same on every machine.

    A forecast that was made before the run is no input: it may come, go and be made again, and nothing follows.
    """
    rows = book.rows(settings["nodes"])
    tables.write_rows(ledger, rows, book.COLUMNS)
    estimates = Path(ledger).with_name("forecast.csv")
    truth = forecast.compared(forecast.read(estimates), rows) if estimates.exists() else None
    formats.write([*book.sheets(rows, settings), *([truth] if truth else [])], csv=csv, md=md, tex=tex)
