"""What stands beside a verdict where one model is retrained: terminal, page and table."""

import pytest
from unlearning_audit.comparisons import distances, sensitivity
from unlearning_audit.report import answer, ending
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import sentences
from unlearning_audit.report.tables import verdicts

from decision_cases import GOOD, decisions_on, rows
from display_cases import case

CHANCE = sensitivity.spread_that_explains(0.2)
GIVEN = f"{distances.GIVEN} 0.02"
LONE = f"cannot tell: 0.20 [0.18, 0.22] from this retrained model, {CHANCE}"


@pytest.mark.parametrize(
    ("verdict", "note", "line"),
    [("no_yardstick", f"{sensitivity.UNREPEATED}; {CHANCE}", LONE),
     ("distinguishable", GIVEN, f"traces remain: {GIVEN}"),
     ("inconclusive", GIVEN, f"cannot tell: too few models, {GIVEN}")],
)  # fmt: skip
def test_a_line_says_what_its_verdict_hangs_on(verdict, note, line):
    cases = [case("main", name) for name in ("none", "retrain", "retrain_control", "mine")]
    mine = rows("mine", verdict, 0.2, note=note)
    mine[1][0]["note"] = note
    judged = decisions_on(("main", ""), *GOOD, mine)
    numbers = Numbers([], cases)
    (place,) = answer.answers(numbers, judged)
    assert f"{place.lines[0].state.word}: {place.lines[0].why}" == line
    lines = ending.text(ending.summary(numbers, judged, "mine"), "r.html", 100).splitlines()
    assert max(map(len, lines)) <= 100
    assert line in " ".join(" ".join(lines).split())
    (cell,) = [row.cells[0].text for row in verdicts.verdicts(judged, "mine").lines if row.label == "mine"]
    assert cell == line.replace("too few models, ", "")
    (spoken,) = sentences.methods(numbers, judged)
    assert (CHANCE if verdict == "no_yardstick" else GIVEN) in spoken.text
