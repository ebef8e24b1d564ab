"""Compare RULI's attack on single samples with one attack for all of them: accuracy, and TPR at a low FPR."""

from typing import Any

from unlearning_audit.report.figures import Numbers, _attacks, style

#: (question, attack) → its name, mark and colour.
ATTACKS = {
    ("privacy", "ruli"): ("one attack for each sample", "o", style.FORGET),
    ("privacy", "population"): ("one attack for all", "s", style.HELDOUT),
}


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw the accuracy and the TPR at 1 % FPR of RULI's attack on single samples and of one attack for all samples:
    two panels for each scenario, a row for each method, and a mark with its 95 % interval for each attack."""
    return _attacks.draw(numbers, ATTACKS)
