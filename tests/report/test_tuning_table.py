"""The table of tuning: distances in margins, what tuning was worth on fresh pairs, and who is dominated."""

import json
import math

import pytest
from unlearning_audit import ROOT
from unlearning_audit.report.figures import _front, _tuning
from unlearning_audit.report.tables import formats, standings, tuning
from unlearning_audit.store.files import ArtifactError


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


def trial(number, value, choice=0, seconds=1.0, stage=1):
    return {"stage": stage, "trial": number, "pairs": 1, "metric": "advantage (kde/trained)", "margin": 0.05,
            "distance": value, "ci_low": value / 2, "ci_high": 2 * value, "lost": 0.1, "seconds": seconds,
            "chosen": choice, "options": json.dumps({"lr": number / 10, "epochs": 5}), "note": ""}  # fmt: skip


def campaign(method, seconds=1.0):
    choice = {"options": {"lr": 0.1, "epochs": 5}, "distance": 1.5, "error": 0.3, "flatness": 0.25, "trials": 2}
    read = tuning.distances(AUDITED, MARGINS)
    return {"scenario": "digits", "setting": "", "method": method, "chosen": choice, "seconds": 40.0,
            "trials": [trial(0, 4.0), trial(1, 1.5, 1, seconds)], "distances": read}  # fmt: skip


def test_a_distance_is_read_in_margins_of_its_side():
    read = tuning.distances(AUDITED, {**MARGINS, "auc": 0.1})
    assert read["salun"] == pytest.approx(
        {"distance": 2.0, "low": 1.0, "high": 3.0, "lost": 0.4, "lost_low": 0.0, "lost_high": 0.8}
    )
    assert read["salun_published"] == pytest.approx(
        {"distance": 6.0, "low": 4.0, "high": 8.0, "lost": 0.0, "lost_low": 0.0, "lost_high": 0.0}
    )
    assert tuning.distances(AUDITED, {"auc": 0.1})["salun"]["distance"] == pytest.approx(0.2)


def test_what_tuning_was_worth_on_fresh_pairs():
    (row,) = tuning.lines([campaign("salun")])
    assert json.loads(row["changed"]) == {"lr": 0.1}
    assert (row["closer"], row["regret"]) == pytest.approx((4.0, 0.5))
    assert (row["closer_low"], row["closer_high"]) == pytest.approx((4 - math.sqrt(5), 4 + math.sqrt(5)))


def test_who_is_dominated_with_confidence():
    rows = {row["method"]: row for row in tuning.lines([campaign("salun"), campaign("fisher")])}
    assert (rows["salun"]["dominated_by"], rows["fisher"]["dominated_by"]) == ("fisher", "")
    slow = {row["method"]: row for row in tuning.lines([campaign("salun"), campaign("fisher", seconds=9.0)])}
    assert slow["salun"]["dominated_by"] == ""


@pytest.mark.parametrize(("low", "high", "by"), [(0.0, 0.02, "fisher"), (0.0, 0.08, ""), (0.08, 0.1, "")])
def test_nobody_is_dominated_by_what_may_lose_a_margin_more(low, high, by):
    """Zou & Donner 2008; the method before loses .4 margins of accuracy, with limits 0 and .8."""
    audited = [*AUDITED, distance("fisher", (low + high) / 2, low, high, "accuracy", 0.0)]
    campaigns = [{**campaign(name), "distances": tuning.distances(audited, MARGINS)} for name in ("salun", "fisher")]
    salun, fisher = tuning.lines(campaigns)
    assert salun["dominated_by"] == by
    more = fisher["lost"] - salun["lost"]
    assert (more + math.hypot(fisher["lost_high"] - fisher["lost"], 0.4) < 1) == bool(by)


def test_the_table_and_the_figure_show_every_tuned_method(tmp_path):
    campaigns = [campaign("salun"), campaign("fisher")]
    names = {kind: tmp_path / f"tuning.{kind}" for kind in ("csv", "md", "tex")}
    formats.write([tuning.sheet(tuning.lines(campaigns), "mine")], **names)
    assert "2.00 [1.00, 3.00] | 6.00 [4.00, 8.00]" in names["md"].read_text()
    assert _tuning.draw(campaigns).get_label() == "On the pairs of tuning, 2 of 2 methods came nearer to retraining"
    assert [axis.get_title(loc="left") for axis in _tuning.draw(campaigns).axes][:2] == ["salun", "fisher"]
    again = tuning.sheet(tuning.read(names["csv"]), "mine")
    assert again.lines == tuning.sheet(tuning.lines(campaigns), "mine").lines


def audited(method, distance, seconds, worth=0.2):
    return {"scenario": "digits", "setting": "", "method": method, "tuned": distance, "tuned_low": distance - 0.5,
            "tuned_high": distance + 0.5, "published": distance + 1, "method_seconds": seconds,
            "published_seconds": 3 * seconds, "lost": worth}  # fmt: skip


def test_corners_of_the_front_are_those_that_nobody_beats_at_once():
    rows = [audited("slow", 1.0, 9.0), audited("fast", 4.0, 1.0), audited("beaten", 5.0, 2.0),
            audited("even", 1.0, 9.5), audited("broken", 0.1, 0.5, worth=3.0)]  # fmt: skip
    assert [row["method"] for row in _front.undominated(rows)] == ["fast", "slow"]
    figure = _front.draw([*rows, {**audited("slow", math.nan, 1.0), "scenario": "table"}])
    assert figure.get_label() == "No other method is nearer and as fast as fast or slow"
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["digits", "table"]
    assert {text.get_text() for text in figure.axes[0].texts} == {"fast", "slow"}


def test_a_method_stands_beside_its_published_setting(tmp_path):
    def row(method, distance, best, worst):
        return {"method": method, "metric": "advantage", "distance": distance, "low": distance - 1,
                "high": distance + 1, "best": best, "worst": worst, "methods": 4}  # fmt: skip

    rows = [row("salun", 5.0, 2, 3), row("salun_published", 4.0, 2, 3), row("none", 8.0, 4, 4), row("retrain", 0, 1, 1)]
    lines = standings.lines(rows, {("digits", ""): {"salun": "broken", "none": "distinguishable"}})
    assert [line["method"] for line in lines] == ["retrain", "salun", "none"]
    assert [line["published_distance"] for line in lines] == pytest.approx([math.nan, 4.0, math.nan], nan_ok=True)
    names = {kind: tmp_path / f"standings.{kind}" for kind in ("csv", "md", "tex")}
    formats.write([standings.sheet(lines, "mine")], **names)
    text = names["md"].read_text()
    assert "| salun | 5.00 [4.00, 6.00] | 2 to 3 of 4 | 4.00 [3.00, 5.00] | 2 to 3 of 4 | digits |" in text
    assert names["csv"].read_text().startswith("study,method,metric,distance")
    assert standings.sheet(standings.read(names["csv"]), "mine").lines == standings.sheet(lines, "mine").lines


def test_what_was_measured_worse_after_tuning_had_lost_too_much_before():
    """The leaderboard's regret: further away than published beyond the interval only where that was passed over."""
    rows = tuning.read(ROOT / "resources/measured/leaderboard/tuning.csv")
    strayed = [row for row in rows if row["closer_high"] < 0]
    assert {row["method"] for row in strayed} == {"bad_teacher", "competition_first", "unsir"}
    assert all(row["published_lost"] > 1 >= row["lost"] for row in strayed)


@pytest.mark.parametrize("module", [tuning, standings])
def test_a_damaged_file_is_named(tmp_path, module):
    path = tmp_path / "table.csv"
    path.write_text("method,distance\nmine,nearby\n")
    with pytest.raises(ArtifactError, match=r"table\.csv: this file is damaged .*'nearby'.*; delete it and run again"):
        module.read(path)
