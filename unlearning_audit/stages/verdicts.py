"""Write the verdicts, the ranks and the resolution of a study as tables, and draw the figures that go with them."""

from typing import Any

from unlearning_audit.report import decisions, naming, style
from unlearning_audit.report.figures import _resolution, _verdicts
from unlearning_audit.report.tables import cost, formats
from unlearning_audit.report.tables import verdicts as display


def verdicts(ledger: str, settings: dict[str, Any], **shown: str) -> None:
    """``shown``: the files of tables and figures, as `workflow.parameters.shown` names them."""
    naming.know(settings["own_metrics"])
    # The tables are the same on every run, so the hours that the ledger has go into the drawing alone.
    verdict = decisions.read(settings["comparisons"])
    for name, make in (("", display.verdicts), ("ranks_", display.ranks), ("resolution_", display.resolution)):
        csv, md, tex = (shown[name + ending] for ending in ("csv", "md", "tex"))
        formats.write([make(verdict, settings["study"])], csv=csv, md=md, tex=tex)
    verdict = decisions.read(settings["comparisons"], cost.read(ledger))
    for name, figure in (("", _verdicts), ("resolution_", _resolution)):
        style.save(figure.draw(verdict), svg=shown[f"{name}svg"], png=shown[f"{name}png"])
