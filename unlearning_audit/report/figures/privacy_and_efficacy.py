"""Draw both questions of RULI: do outputs differ from those for samples never seen, and from those of retrained
models?"""

from typing import Any

from unlearning_audit.report.figures import Numbers, _attacks, style

#: (question, attack) → its name, mark and colour.
ATTACKS = {
    ("efficacy", "ruli"): ("retrained or not, each sample", "D", style.INK),
    ("privacy", "ruli"): ("seen or not, each sample", "o", style.FORGET),
    ("privacy", "u_lira"): ("seen or not, U-LiRA", "^", style.MUTED),
    ("privacy", "population"): ("seen or not, all samples alike", "s", style.HELDOUT),
}


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw the accuracy and the TPR at 1 % FPR of the attacks that ask whether samples were seen and whether models
    were retrained: two panels for each scenario, a row for each method, and a mark with its 95 % interval for each
    attack."""
    return _attacks.draw(numbers, ATTACKS)
