"""The table of tuning: distances in margins, what tuning was worth on fresh pairs, and who is dominated."""

import json
import math

import pytest
from unlearning_audit.report.figures import _front, _tuning
from unlearning_audit.report.tables import standings, tuning

from display_cases import written


def distance(method, value, low, high, metric="advantage", deciding=1.0):
    return {"method": method, "metric": metric, "deciding": deciding, "distance": value, "ci_low": low,
            "ci_high": high, "margin_far": -0.1, "margin_near": 0.05}  # fmt: skip


AUDITED = [
    distance("salun", 0.10, 0.05, 0.15),
    distance("salun", -0.02, -0.05, 0.01, "auc"),
    distance("salun", 0.02, 0.0, 0.04, "accuracy", 0.0),
    distance("salun_published", -0.3, -0.4, -0.2),  # margins cut to what doing nothing leaves do not count
    distance("fisher", 0.01, -0.01, 0.02),
]
MARGINS = {"advantage": 0.05}


def campaigns(audited=AUDITED, fisher_seconds=1.0):
    """Of salun and fisher, whose second setting was chosen; that of fisher takes so many seconds."""
    options = [{"lr": lr, "epochs": 5} for lr in (0.0, 0.1)]
    chosen = {"options": options[1], "distance": 1.5, "error": 0.3, "flatness": 0.25, "trials": 2}
    trial = {"stage": 1, "pairs": 1, "metric": "advantage (kde/trained)", "margin": 0.05, "lost": 0.1, "note": ""}
    trials = [
        trial | {"trial": i, "chosen": i, "distance": far, "ci_low": far / 2, "ci_high": 2 * far,
                 "options": json.dumps(options[i])} for i, far in enumerate((4.0, 1.5))
    ]  # fmt: skip
    common = {"scenario": "digits", "setting": "", "chosen": chosen, "seconds": 40.0,
              "distances": tuning.distances(audited, MARGINS)}  # fmt: skip
    return [
        {**common, "method": method, "trials": [row | {"seconds": seconds} for row in trials]}
        for method, seconds in (("salun", 1.0), ("fisher", fisher_seconds))
    ]


def test_a_distance_is_read_in_margins_of_its_side():
    names = ("distance", "low", "high", "lost", "lost_low", "lost_high")
    read = tuning.distances(AUDITED, {**MARGINS, "auc": 0.1})
    assert read["salun"] == pytest.approx(dict(zip(names, (2.0, 1.0, 3.0, 0.4, 0.0, 0.8), strict=True)))
    assert read["salun_published"] == pytest.approx(dict(zip(names, (6.0, 4.0, 8.0, 0.0, 0.0, 0.0), strict=True)))
    assert tuning.distances(AUDITED, {"auc": 0.1})["salun"]["distance"] == pytest.approx(0.2)


def test_what_tuning_was_worth_on_fresh_pairs():
    row, _ = tuning.lines(campaigns())
    assert json.loads(row["changed"]) == {"lr": 0.1}
    assert [row[name] for name in ("closer", "closer_low", "closer_high", "regret")] == pytest.approx(
        [4.0, 4 - math.sqrt(5), 4 + math.sqrt(5), 0.5]
    )


@pytest.mark.parametrize(
    ("seconds", "lost", "by"),
    [(1.0, None, "fisher"), (9.0, None, ""), (1.0, (0.0, 0.02), "fisher"), (1.0, (0.0, 0.08), ""),
     (1.0, (0.08, 0.1), "")],
)  # fmt: skip
def test_who_is_dominated_with_confidence_by_one_that_is_not_slower_nor_may_lose_a_margin_more(seconds, lost, by):
    """Zou & Donner 2008; salun loses .4 margins of accuracy, with limits 0 and .8; ``lost``: the limits of fisher."""
    more = [distance("fisher", sum(lost) / 2, *lost, "accuracy", 0.0)] if lost else []
    salun, fisher = tuning.lines(campaigns([*AUDITED, *more], seconds))
    assert (salun["dominated_by"], fisher["dominated_by"]) == (by, "")


def test_the_table_and_the_figure_show_every_tuned_method(tmp_path):
    sheet = tuning.sheet(tuning.lines(campaigns()), "mine")
    assert "2.00 [1.00, 3.00] | 6.00 [4.00, 8.00]" in written([sheet], tmp_path)["md"].read_text()
    assert tuning.sheet(tuning.read(tmp_path / "t.csv"), "mine").lines == sheet.lines
    # The first round, on fewer pairs, says otherwise of the study's own setting.
    drawing = _tuning.draw([c | {"trials": [c["trials"][0] | {"distance": 0.5}, *c["trials"]]} for c in campaigns()])
    assert drawing.get_label() == "On the pairs of tuning, 2 of 2 methods came nearer to retraining"
    assert [axis.get_title(loc="left") for axis in drawing.axes][:2] == ["salun", "fisher"]


def test_corners_of_the_front_are_those_that_nobody_beats_at_once():
    points = {"slow": (1.0, 9.0), "fast": (4.0, 1.0), "beaten": (5.0, 2.0), "even": (1.0, 9.5), "broken": (0.1, 0.5)}
    rows = [
        {"scenario": "digits", "setting": "", "method": method, "tuned": far, "tuned_low": far, "tuned_high": far,
         "published": 5.0, "method_seconds": at, "published_seconds": 3.0, "lost": 3.0 if method == "broken" else 0.2}
        for method, (far, at) in points.items()
    ]  # fmt: skip
    assert [row["method"] for row in _front.undominated(rows)] == ["fast", "slow"]
    figure = _front.draw([*rows, {**rows[0], "tuned": math.nan, "scenario": "table"}])
    assert figure.get_label() == "No other method that keeps utility is nearer and as fast as fast or slow"
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["digits", "table"]
    assert {text.get_text() for text in figure.axes[0].texts} == {"fast", "slow"}


def test_a_method_stands_beside_its_published_setting(tmp_path):
    ranks = {"salun": (5.0, 2, 3), "salun_published": (4.0, 2, 3), "none": (8.0, 4, 4), "retrain": (0, 1, 1)}
    rows = [
        {"method": method, "metric": "advantage", "distance": far, "low": far - 1, "high": far + 1, "best": best,
         "worst": worst, "methods": 4}
        for method, (far, best, worst) in ranks.items()
    ]  # fmt: skip
    lines = standings.lines(rows, {("digits", ""): {"salun": "broken", "none": "distinguishable"}})
    assert [line["method"] for line in lines] == ["retrain", "salun", "none"]
    assert [line["published_distance"] for line in lines] == pytest.approx([math.nan, 4.0, math.nan], nan_ok=True)
    sheet = standings.sheet(lines, "mine")
    line = "| salun | 5.00 [4.00, 6.00] | 2 to 3 of 4 | 4.00 [3.00, 5.00] | 2 to 3 of 4 | digits |"
    assert line in written([sheet], tmp_path)["md"].read_text()
    assert (tmp_path / "t.csv").read_text().startswith("study,method,metric,distance")
    assert standings.sheet(standings.read(tmp_path / "t.csv"), "mine").lines == sheet.lines
