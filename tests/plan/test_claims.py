"""The numbers on the page of claims are those that were measured."""

import csv
import re

import pytest
from scipy.stats import kendalltau

from printed_numbers import MEASURED, ROOT

PAGE = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
METHODS = ("none", "neggrad", "retrfinal", "ftfinal", "fisher", "salun", "ssd")
PRINTED = METHODS[:5]


def lines(name):
    with (MEASURED / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shown(line, places=2):
    """A number with its interval as the page has it: .87 [.85, .90]."""
    value, low, high = (re.sub(r"^0\.", ".", f"{float(line[c]):.{places}f}") for c in ("value", "ci_low", "ci_high"))
    return f"{value} [{low}, {high}]"


def only(name, **wanted):
    (line,) = [line for line in lines(name) if all(line[column] == value for column, value in wanted.items())]
    return line


@pytest.mark.parametrize(
    ("name", "wanted", "places"),
    [
        *(("swap_dp/q.csv", {"setting": f"epsilon={e}", "method": m, "attack": "paper", "scenario": "mnist"}, 3)
          for m in ("none", "retrain") for e in ("50", "150", "600", "inf")),
        ("swap_dp/q.csv", {"setting": "epsilon=inf", "method": "salun", "attack": "paper", "scenario": "mnist"}, 3),
        ("swap_dp/q.csv", {"setting": "epsilon=inf", "method": "salun", "attack": "adaptive", "scenario": "mnist"}, 3),
        ("swap_dp/q.csv", {"setting": "epsilon=inf", "method": "ssd", "attack": "paper", "scenario": "mnist"}, 3),
        ("swap_dp/q.csv", {"setting": "epsilon=50", "method": "ssd", "attack": "paper", "scenario": "mnist"}, 3),
        ("swap_dp/table2.csv", {"scenario": "mnist", "method": "neggrad"}, 3),
        ("swap_dp/table2.csv", {"scenario": "mnist_random", "method": "neggrad"}, 3),
        *(("swap_dp/table3.csv", {"setting": f"epsilon={e}", "method": "none", "metric": "ic_score"}, 2)
          for e in ("50", "150", "600", "inf")),
        ("cifar10/privacy.csv", {"method": "scrub"}, 2),
        ("cifar10/privacy.csv", {"method": "l1_sparse"}, 2),
        ("cifar10/efficacy.csv", {"method": "scrub"}, 2),
        ("cifar10/efficacy.csv", {"method": "l1_sparse"}, 2),
        ("text/ruli_efficacy.csv", {"method": "npo"}, 2),
        ("text/ruli_efficacy.csv", {"method": "graddiff"}, 2),
    ],
)  # fmt: skip
def test_a_claim_quotes_what_was_measured(name, wanted, places):
    assert shown(only(name, **wanted), places) in PAGE


def quality(scenario, setting):
    """Q over the paper's adversaries of every method at one place."""
    rows = [
        r for r in lines("swap_dp/q.csv") if (r["scenario"], r["setting"], r["attack"]) == (scenario, setting, "paper")
    ]
    return {row["method"]: float(row["value"]) for row in rows}


def agreement(one, other, methods):
    return kendalltau([one[m] for m in methods], [other[m] for m in methods]).statistic


def test_rankings_hold_over_sizes_and_not_over_budgets_as_the_page_says():
    sizes = [quality("mnist_size", f"size={size};epsilon=inf") for size in (800, 1600, 2400, 3200, 4000)]
    budgets = [quality("mnist", f"epsilon={epsilon}") for epsilon in ("50", "150", "600", "inf")]
    spans = [
        sorted(agreement(a, b, methods) for i, a in enumerate(places) for b in places[:i])
        for places, methods in ((sizes, METHODS), (budgets, METHODS), (budgets, PRINTED))
    ]
    assert [(f"{low:.2f}", f"{high:.2f}") for low, *_, high in spans] == [
        ("0.81", "1.00"), ("0.05", "0.68"), ("0.20", "0.95"),
    ]  # fmt: skip
    for words in ("τ from .81 to 1.00", "τ from .05 (50 against ∞) to .68", "from .20 to .95"):
        assert words in PAGE


def test_q_of_retraining_is_one_within_its_interval_at_every_budget():
    for epsilon in ("50", "150", "600", "inf"):
        line = only("swap_dp/q.csv", setting=f"epsilon={epsilon}", method="retrain", attack="paper", scenario="mnist")
        assert float(line["ci_high"]) == 1.0


def test_ssd_is_not_the_best_anywhere_on_mnist():
    for epsilon in ("50", "150", "600", "inf"):
        found = quality("mnist", f"epsilon={epsilon}")
        assert max(found[m] for m in METHODS if m != "ssd") > found["ssd"]
