"""Write down what every job took, and what that means for each stage and method."""

from job import script
from unlearning import tables
from unlearning.display import formats
from unlearning.display import ledger as book


@script
def cost(ledger: str, csv: str, md: str, tex: str, settings: dict) -> None:
    """Everything that was timed goes here, so that all other tables are the same on every machine."""
    rows = book.rows(settings["nodes"])
    tables.write_rows(ledger, rows, book.COLUMNS)
    formats.write(book.sheets(rows, settings), csv=csv, md=md, tex=tex)
