"""Draw both questions of RULI: do outputs differ from those for samples never seen, and from those of retrained
models?"""

from typing import Any

from unlearning_audit.report import style
from unlearning_audit.report.figures import _attacks
from unlearning_audit.report.lookup import Numbers

ATTACKS = {
    ("efficacy", "ruli"): ("retrained or not, each sample", "D", style.INK),
    ("privacy", "ruli"): ("seen or not, each sample", "o", style.FORGET),
    ("privacy", "u_lira"): ("seen or not, U-LiRA", "^", style.MUTED),
    ("privacy", "population"): ("seen or not, all samples alike", "s", style.HELDOUT),
}
LOOK = _attacks.Look(panel=0.95, line=0.36, step=0.18, interval=1.2, mark=3.5, edge=1.0)


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw two panels for each scenario: a line for each method, and a mark with its 95 % interval for each attack."""
    return _attacks.draw(numbers, ATTACKS, LOOK)
