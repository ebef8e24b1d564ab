"""Write the table that is printed when a run ends."""

from job import script
from unlearning.artifacts.files import replacing
from unlearning.artifacts.tables import UNION_COLUMNS, read_rows
from unlearning.display import naming
from unlearning.display.lookup import Numbers
from unlearning.display.tables import headline as display


@script
def headline(metrics: str, text: str, settings: dict) -> None:
    """Plain text, no line longer than 100 characters."""
    naming.know(settings["own_metrics"])
    numbers = Numbers(read_rows(metrics, UNION_COLUMNS), settings["cases"])
    with replacing(text) as part:
        part.write_text(display.text(numbers, settings), encoding="utf-8")
