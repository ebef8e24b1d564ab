"""Compute the curves that open behind the verdicts of the page."""

from unlearning_audit.display import decisions
from unlearning_audit.display.page import curves as display


def curves(curves: str, settings: dict) -> None:
    """Each case under the attack that speaks in its verdict; `display.page.curves.compute` says what is written."""
    judgements = decisions.read(settings["comparisons"])
    cases = []
    for case in settings["cases"]:
        row = judgements.main_distance((case["scenario"], case["setting"]), case["method"])
        cases.append({**case, "attack": row["attack"] if row else ""})
    display.write(curves, cases)
