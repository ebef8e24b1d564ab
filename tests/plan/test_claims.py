"""The numbers on the page of evidence are those that were measured."""

import re

import pandas
import pytest
from scipy.stats import binomtest

from printed_numbers import MEASURED, ROOT

PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
METHODS = ("none", "neggrad", "retrfinal", "ftfinal", "fisher", "salun", "ssd")


def lines(name):
    return pandas.read_csv(MEASURED / name, dtype=str, keep_default_na=False).to_dict("records")


#: Intervals of the page that are rounded otherwise.
ROUNDED = {("6.2", "3.2", "18"), (".00029", ".00028", ".00031")}


def test_every_interval_of_the_page_was_measured():
    """Numbers are quoted as .87 [.85, .90]."""
    quoted = set(re.findall(r"(-?\d*\.?\d+) \[(-?\d*\.?\d+), (-?\d*\.?\d+)\]", PAGE))
    assert len(quoted) > 80
    measured = set()
    for path in MEASURED.rglob("*.csv"):
        for line in lines(path):
            numbers = [line[c] for c in ("value", "ci_low", "ci_high") if line.get(c)]
            for places in range(5) if len(numbers) == 3 else ():
                measured.add(tuple(re.sub(r"^(-?)0\.", r"\1.", f"{float(x):.{places}f}") for x in numbers))
    assert quoted - measured == ROUNDED


def test_every_method_is_distinguishable_from_retraining_on_every_target_set():
    verdicts = {(line["scenario"], line["method"]): line["verdict"] for line in lines("ruli_airbench/verdicts.csv")}
    assert len({scenario for scenario, _ in verdicts}) == 5
    assert {verdict for (_, method), verdict in verdicts.items() if method != "retrain"} == {"distinguishable"}


@pytest.mark.parametrize(
    ("name", "words"),
    [("swap_dp/table4_cifar10.csv", "CIFAR-10 (ResNet-20), ∞: "), ("swap_inf/table4.csv", "at the paper's size ")],
)
def test_the_mia_scores_on_photographs_are_those_measured(name, words):
    scores = {line["method"]: float(line["value"]) for line in lines(name) if line["metric"] == "mia_score"}
    others = [scores[method] for method in METHODS if method != "salun"]
    span = [f"{value:.2f}".removeprefix("0") for value in (min(others), max(others), scores["salun"])]
    assert words + "from {} to {} but for SalUn ({})".format(*span) in PAGE


def test_what_unlearning_costs_beside_training_and_what_kept_vulnerable_samples_lose_are_as_the_page_says():
    """§6.3 and §6.4 of Naderloui et al. 2025."""
    costs = {line["method"]: float(line["per_model"]) for line in lines("ruli_airbench/cost.csv")
             if (line["what"], line["scenario"]) == ("unlearn", "mixed")}  # fmt: skip
    (training,) = (line for line in lines("ruli_airbench/cost.csv") if line["what"] == "train")
    ratio = 1 + costs["scrub"] * float(training["models"]) / float(training["seconds"])
    assert f"| {ratio:.2f} times, as unlearning by SCRUB" in PAGE
    assert f"thirty of them cost {30 * ratio:.0f} trainings" in PAGE
    kept = {line["method"]: float(line["value"]) for line in lines("ruli_airbench/table3.csv")
            if (line["role"], line["target"]) == ("retain", "vulnerable")}  # fmt: skip
    mean = sum(kept[method] for method in ("l1_sparse", "scrub", "ga_plus", "neggrad_plus")) / 4
    assert f"on them .{100 * mean:.0f} beside .{100 * kept['retrain']:.0f} of retraining" in PAGE


# ---------------------------------------------------------------- error rates


def percent(share):
    return f"{100 * share:.1f} %"


def worlds():
    """The simulated worlds, with counts of audits in place of shares."""
    return [
        {"world": line["world"], "audits": int(line["audits"])}
        | {word: round(float(line[word]) * int(line["audits"])) for word in ("distinguishable", "equivalent")}
        for line in lines("verdicts/worlds.csv")
    ]


def test_error_rates_are_claimed_as_simulated_worlds_show_them():
    """Both pages quote the largest rates; the page of results says how sure they are."""
    (keeping,) = (cell for cell in worlds() if "keeps" in cell["world"])  # there the method is not retraining
    cells = [cell for cell in worlds() if cell != keeping]
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/evidence.md")]
    worst = max(cells, key=lambda cell: cell["distinguishable"] / cell["audits"])
    margin = max(float(line["false_equivalent"]) for line in lines("verdicts/rates.csv"))
    for page in (re.sub(r"\s+", " ", page) for page in pages):
        assert f"{percent(worst['distinguishable'] / worst['audits'])} of the audits of a world" in page
        assert f"at the margin in {percent(margin)}" in page
    measured = re.sub(r"\s+", " ", pages[1])
    wrong, audits = (sum(cell[name] for cell in cells) for name in ("distinguishable", "audits"))
    little = [cell for cell in cells if cell["world"].endswith("remembered")]
    interval = binomtest(worst["distinguishable"], worst["audits"]).proportion_ci()
    assert f"{wrong} of {audits:,} audits" in measured
    assert f"keeps 3 % is called equivalent in {keeping['equivalent']} of {keeping['audits']} audits" in measured
    bounds = f"{percent(interval.low)[:-2]} to {percent(interval.high)}"
    assert f"*{worst['world']}*, {bounds} with 95 % confidence" in measured
    equivalent, audits = (sum(cell[name] for cell in little) for name in ("equivalent", "audits"))
    assert f"equivalent in {equivalent} of {audits}" in measured


def test_no_shape_is_distinguishable_more_often_than_promised():
    assert max(float(line["false_distinguishable"]) for line in lines("verdicts/rates.csv")) <= 0.05
