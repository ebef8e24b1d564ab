"""Write the verdicts, the ranks and the resolution of a study as tables, and draw the verdicts."""

from typing import Any

from unlearning_audit.report import decisions, naming, style
from unlearning_audit.report.figures import _verdicts
from unlearning_audit.report.tables import formats
from unlearning_audit.report.tables import verdicts as tables


def verdicts(settings: dict[str, Any], **shown: str) -> None:
    """Write the tables of verdicts, ranks and resolution, and draw the figure of verdicts.

    Parameters
    ----------
    shown
        The output files of these tables and of the figure, named as by `workflow.parameters.output_paths`.
    """
    naming.set_aliases(settings["own_metrics"])  # what follows names the study's own metrics too
    decided = decisions.read(settings["comparisons"])
    for prefix, make in (("", tables.verdicts), ("ranks_", tables.ranks), ("resolution_", tables.resolution)):
        csv, md, tex = (shown[prefix + ending] for ending in ("csv", "md", "tex"))
        formats.write([make(decided, settings["study"])], csv=csv, md=md, tex=tex)
    style.save(_verdicts.draw(decided), svg=shown["svg"], png=shown["png"])
