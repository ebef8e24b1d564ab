"""Write the verdicts, the ranks and the resolution of a study as tables, and draw the figures that go with them."""

from unlearning_audit.display import decisions, naming, style
from unlearning_audit.display.figures import _resolution, _verdicts
from unlearning_audit.display.tables import cost, formats
from unlearning_audit.display.tables import verdicts as display


def verdicts(ledger: str, tables: list[str], drawings: list[str], settings: dict) -> None:
    """``tables`` and ``drawings`` in the order of the rule: verdicts, ranks and resolution as csv, md and tex; verdicts
    and resolution as svg and png."""
    naming.know(settings["own_metrics"])
    # The tables are the same on every run, so the hours that the ledger has go into the drawing alone.
    verdict = decisions.read(settings["comparisons"])
    for i, make in enumerate((display.verdicts, display.ranks, display.resolution)):
        csv, md, tex = tables[3 * i : 3 * i + 3]
        formats.write([make(verdict, settings["study"])], csv=csv, md=md, tex=tex)
    verdict = decisions.read(settings["comparisons"], cost.read(ledger))
    for i, figure in enumerate((_verdicts, _resolution)):
        svg, png = drawings[2 * i : 2 * i + 2]
        style.save(figure.draw(verdict), svg=svg, png=png)
