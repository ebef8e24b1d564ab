"""Write the table of all numbers as text, and what is printed when a run ends."""

from job import script

from unlearning_audit.artifacts.files import write_json, write_text
from unlearning_audit.artifacts.rows import read_union
from unlearning_audit.display import decisions, ending, failures, naming
from unlearning_audit.display.lookup import Numbers
from unlearning_audit.display.tables import headline as display


@script
def headline(metrics: str, text: str, summary: str, settings: dict) -> None:
    """Plain text, no line longer than 100 characters; the summary as `display.ending` reads it."""
    naming.know(settings["own_metrics"])
    records = read_union(metrics)
    numbers = Numbers(records, settings["cases"])
    write_text(text, display.text(numbers, settings))
    comparisons = settings.get("comparisons", [])
    judgements, lines = decisions.read(comparisons), failures.lines(records)
    write_json(summary, ending.summary(numbers, judgements, settings["study"], lines, comparisons))
