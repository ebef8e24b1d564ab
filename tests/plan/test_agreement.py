"""When a measured number agrees with a printed one, differs from it, or says too little."""

import csv

import pytest

import printed_numbers
from printed_numbers import Beside

PRINTED = {"setting": "seeds=20", "note": "", "metric": "accuracy"}


def beside(printed, low, high, *, note="", places=3, metric="q"):
    value = (low + high) / 2 if low != "" else 0.5
    numbers = {"value": value, "ci_low": low, "ci_high": high, "published": printed}
    line = {"metric": metric, "note": ""} | {name: str(number) for name, number in numbers.items()}
    return Beside(PRINTED | {"note": note}, "paper", "t.csv", line, "published", places, "")


@pytest.mark.parametrize(
    ("number", "verdict"),
    [
        (beside(0.55, 0.5, 0.58), "agrees"),
        (beside(0.5804, 0.5, 0.58), "agrees"),  # printed for all that round to it
        (beside(0.5806, 0.5, 0.58), "differs"),
        (beside(0.55, 0.5, 0.61), "undecided"),  # wider than twice the margin of verdicts
        (beside(0.65, 0.2, 0.6), "differs"),  # however wide
        (beside(0.5, "", ""), "undecided"),
        (beside(0.5, 0.5, 0.5), "undecided"),  # without an interval over draws
        (beside(0.02, 0.03, 0.04, note="printed as at most"), "differs"),
        (beside(0.66, 0.7, 0.75, note="printed as at least, over three target sets"), "agrees"),
        (beside(0.66, 0.6, 0.65, note="printed as at least, over three target sets"), "differs"),
        (beside(0.008, 0.003, 0.02, metric="q_sd"), "undecided"),  # a limit nearly seven times the other
        (beside(0.008, 0.006, 0.012, metric="q_sd"), "agrees"),
    ],
)
def test_it_differs_outside_and_agrees_inside_an_interval_that_says_something(number, verdict):
    assert number.verdict == verdict


@pytest.mark.parametrize(
    ("sd", "samples", "printed", "verdict"),
    [
        (0.10, 900, 0.076, "agrees"),  # of 20 normal numbers: from .0760 to .146
        (0.10, 900, 0.07, "differs"),
        (0.10, 900, 0.15, "agrees"),
        (0.0, 900, 0.0, "undecided"),  # all models read the same
        (0.37, 1, 0.22, "undecided"),  # right or wrong on one sample
    ],
)
def test_a_standard_deviation_is_compared_by_an_interval_of_its_own(sd, samples, printed, verdict):
    line = {"metric": "accuracy", "sd": sd, "n": samples, "published_sd": printed, "note": ""}
    assert Beside(PRINTED, "paper", "t.csv", line, "published_sd", 2, "").verdict == verdict


def test_every_number_that_differs_has_a_reason_or_is_called_unknown():
    with printed_numbers.KEPT.open(newline="", encoding="utf-8") as file:
        lines = [line for line in csv.DictReader(file) if line["verdict"] == "differs"]
    reasons = {line["reason"] for line in lines}
    assert all(reason == "unknown" or "measured here for" in reason for reason in reasons), reasons
    # At the paper's size nothing of the experiment is known to differ.
    assert {line["reason"] for line in lines if line["state"] == "paper"} == {"unknown"}


def test_a_difference_that_nothing_is_said_of_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(printed_numbers, "MEASURED", tmp_path)
    (tmp_path / "printed.csv").write_text("file,printed,size,study,differs\nt.csv,swap/table_1,paper,s,\n")
    head = "scenario,setting,method,metric,value,ci_low,ci_high,published,note\n"
    (tmp_path / "t.csv").write_text(f"{head}s,epsilon=50,none,q,0.9,0.89,0.91,0.972,\n")
    with pytest.raises(ValueError, match=r"t\.csv: nothing says why unlearning_quality of none differs"):
        printed_numbers.agreement()
