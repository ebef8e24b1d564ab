"""The studies of text at small size: files in the form of the published ones, tiny checkpoints, every table.

Their scenarios are put into one study, so that one run makes all of them.
"""

from pathlib import Path

import pytest
import text_files
import yaml
from unlearning_audit.evaluation import rows
from unlearning_audit.study.expand import override

from workplace import ROOT, Workplace

#: The scenario of every run; the others are slow.
FIRST = ("forget10",)

FAST = {"optimiser": "adamw", "lr": 0.01, "batch_size": 16}


def ruli(folder, shared: dict, scenarios: dict) -> None:
    text_files.wikitext(folder / "data/wikitext-103", 60)
    shared["data"] |= {"length": 16, "shortest": 12, "public": 0.1, "tokenizer": "gpt2", "size": 240, "test_size": 30}
    shared["recipe"] |= {**FAST, "lr": 0.02, "batch_size": 30, "epochs": 10}
    shared["protocol"] |= {"target_size": 90, "attack_size": 60, "shadow_blocks": 3}
    shared["controls"] = False
    for options in (shared["methods"]["graddiff"], shared["methods"]["npo"]):
        options |= {**FAST, "lr": 0.002, "epochs": 3}
    scenarios["compat"]["methods"]["graddiff"] |= {**FAST, "lr": 0.002, "epochs": 3}
    scenarios["compat"]["model"]["weights"] = "gpt2"
    for scenario, kind in (("gpt2", "gpt2"), ("pythia", "gpt_neox")):
        text_files.checkpoint(folder / kind, kind)
        scenarios[scenario]["model"]["weights"] = kind
    for scenario in ("gpt2", "compat"):
        scenarios[scenario]["recipe"] = {"precision": "float32"}  # faster here; Pythia trains in half precision
    scenarios["pythia"]["data"]["tokenizer"] = "gpt_neox"


def tofu(folder, shared: dict, scenarios: dict) -> None:
    text_files.checkpoint(folder / "llama", "llama")
    text_files.tofu(folder / "locuslab/TOFU", 64)
    shared["model"]["weights"] = shared["data"]["tokenizer"] = "llama"
    shared["data"]["length"] = 16
    shared["recipe"] |= {**FAST, "precision": "float32", "epochs": 24}
    shared["protocol"] |= {"alpha": 0.25, "pairs": 1}
    options = {"npo": {"epochs": 5}, "idk_dpo": {"epochs": 2}, "rmu": {"epochs": 2}}
    quick = {name: shared["methods"][name] | {**FAST, "lr": 0.002} | edits for name, edits in options.items()}
    shared["methods"] = {"none": {}, "retrain": {}, **quick}


def made(tree: Path, folder: Path, first: bool) -> tuple[Path, dict]:
    """(the results, the study) after one run of the scenarios of `FIRST`, or of the others."""
    folder.mkdir()
    whole = {"study": "small", "bootstrap": 100, "batch": 8, "scenarios": {}, "tables": {}, "figures": {}}
    for name, shrink in {"ruli_text": ruli, "tofu": tofu}.items():
        study = yaml.safe_load((ROOT / f"studies/{name}.yaml").read_text())
        shared, scenarios = study["defaults"], study["scenarios"]
        shrink(folder, shared, scenarios)
        chosen = [scenario for scenario in scenarios if (scenario in FIRST) == first]
        whole["scenarios"] |= {scenario: override(shared, scenarios[scenario]) for scenario in chosen}
        for kind in ("tables", "figures"):
            for wish, how in study.get(kind, {}).items():
                if present := [scenario for scenario in how["scenarios"] if scenario in chosen]:
                    whole[kind][f"{name}_{wish}"] = {**how, "scenarios": present}
    place = Workplace(tree, folder)
    place.write(whole)
    place.run()
    return folder / "results/small", whole


@pytest.fixture(scope="module")
def small_run(tree, tmp_path_factory):
    """(the results, the study) of what every run makes."""
    return made(tree, tmp_path_factory.mktemp("text") / "work", first=True)


@pytest.fixture(scope="module")
def row_of(small_run):
    return rows_of(small_run[0])


def rows_of(results: Path) -> dict:
    """(scenario, method, attack, metric, role) → the row that is about nothing else; failures by their kind."""
    numbers = {}
    for record in rows.read_study(results / "metrics.csv"):
        row = record.row
        if isinstance(row, rows.Failure):
            numbers[record.scenario, record.method, "failed"] = row
        elif row.place in ((), (("role", row.role),)):
            numbers[record.scenario, record.method, row.attack, row.metric, row.role] = row
    return numbers


def near(row: rows.Row, value: float) -> bool:
    """Whether an interval of twice the width holds a value: another processor trains other models, and one interval in
    twenty does not hold the truth."""
    low, high = (row.value + 2 * (end - row.value) for end in (row.ci_low, row.ci_high))
    return low <= value <= high


def is_whole(results: Path, study: dict, row_of: dict) -> None:
    assert not [row for key, row in row_of.items() if "failed" in key]
    assert (results / "report.html").stat().st_size > 10_000
    for name in study["tables"]:
        text = (results / f"tables/{name}.csv").read_text()
        assert all(method in text for method in ("none", "retrain")), name
    for name in study["figures"]:
        assert (results / f"figures/{name}.svg").stat().st_size > 1000


def test_every_table_and_the_report_are_there_and_nothing_failed(small_run, row_of):
    is_whole(*small_run, row_of)


@pytest.mark.slow
def test_the_others_are_whole_and_ruli_finds_what_language_models_remember(tree, tmp_path):
    results, study = made(tree, tmp_path / "work", first=False)
    rows = rows_of(results)
    is_whole(results, study, rows)
    for scenario in ("gpt2", "pythia"):
        auc = {method: rows[scenario, method, "ruli", "privacy_auc", ""] for method in ("none", "retrain")}
        assert auc["none"].ci_low > 0.8
        assert near(auc["retrain"], 0.5)
        assert rows[scenario, "none", "", "privleak", ""].ci_high < -50


def test_tofu_compares_with_retrained_models(row_of, small_run):
    def of(method, metric, role=""):
        return row_of["forget10", method, "", metric, role]

    assert of("none", "exact_memorisation", "forget").ci_low > 0.5
    assert of("none", "rouge_recall", "forget").value > of("retrain", "rouge_recall", "forget").value
    assert near(of("retrain", "privleak"), 0)
    assert near(of("retrain", "nll_gap", "forget"), 0)
    for method in small_run[1]["scenarios"]["forget10"]["methods"]:
        assert 0 < of(method, "forget_quality", "forget").value <= 1
        assert 0 <= of(method, "model_utility").value < 1
    refused = of("idk_dpo", "nll", "forget").value
    assert refused > of("none", "nll", "forget").value, "answers are less likely once refusals are taught"
