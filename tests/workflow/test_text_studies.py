"""The studies of text at small size: files in the form of the published ones, tiny checkpoints, every table."""

import math

import pytest
import yaml

import text_files
from unlearning.artifacts import tables as tables_of
from workplace import ROOT, Workplace

FAST = {"optimiser": "adamw", "lr": 0.01, "batch_size": 16}


def shipped(name: str) -> dict:
    """A study of studies/ with few replicates."""
    study = yaml.safe_load((ROOT / f"studies/{name}.yaml").read_text())
    return study | {"bootstrap": 100, "batch": 8}


def ran(tree, folder, study: dict) -> dict[tuple[str, ...], dict]:
    """Run it. (scenario, method, attack, metric, setting) → row, once every table and the report are there."""
    place = Workplace(tree, folder)
    place.write(study)
    place.run()
    results = folder / "results" / study["study"]
    rows = tables_of.read_rows(results / "metrics.csv", tables_of.UNION_COLUMNS)
    failed = [row for row in rows if row["metric"] == "failed"]
    assert not failed, failed
    assert (results / "report.html").stat().st_size > 10_000
    for name in study["tables"]:
        text = (results / f"tables/{name}.csv").read_text()
        assert all(method in text for method in ("none", "retrain")), name
    names = ("scenario", "method", "attack", "metric", "setting")
    return {tuple(row[name] for name in names): row for row in rows}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def holds(row: dict, value: float) -> bool:
    return row["ci_low"] <= value <= row["ci_high"]


def test_ruli_on_text(tree, folder):
    text_files.wikitext(folder / "data/wikitext-103", 60)
    study = shipped("ruli_text")
    shared = study["defaults"]
    shared["data"] |= {"length": 16, "shortest": 12, "public": 0.1, "tokenizer": "gpt2", "size": 240, "test_size": 30}
    shared["recipe"] |= {**FAST, "epochs": 12}
    shared["protocol"] |= {"target_size": 90, "attack_size": 60, "shadow_blocks": 4}
    for options in (shared["methods"]["graddiff"], shared["methods"]["npo"]):
        options |= {**FAST, "lr": 0.002, "epochs": 3}
    for scenario, kind in (("gpt2", "gpt2"), ("pythia", "gpt_neox")):
        text_files.checkpoint(folder / kind, kind)
        study["scenarios"][scenario]["model"]["weights"] = kind
    study["scenarios"]["pythia"]["data"]["tokenizer"] = "gpt_neox"
    found = ran(tree, folder, study)
    for scenario in study["scenarios"]:
        auc = {method: found[scenario, method, "ruli", "privacy_auc", ""] for method in ("none", "retrain")}
        assert auc["none"]["ci_low"] > 0.8
        assert holds(auc["retrain"], 0.5)


def test_tofu(tree, folder):
    text_files.checkpoint(folder / "llama", "llama")
    text_files.tofu(folder / "locuslab/TOFU", 80)
    study = shipped("tofu")
    shared = study["defaults"]
    shared["model"]["weights"] = shared["data"]["tokenizer"] = "llama"
    shared["data"]["length"] = 24
    shared["recipe"] |= {**FAST, "epochs": 40}
    shared["protocol"] |= {"alpha": 0.25, "pairs": 1}
    for options in shared["methods"].values():
        options |= {"lr": 0.002, "batch_size": 16}
    for name in ("none", "retrain"):
        shared["methods"][name] = {}
    found = ran(tree, folder, study)

    def of(method, metric, setting=""):
        return found["forget10", method, "", metric, setting]

    assert of("none", "exact_memorisation", "role=forget")["ci_low"] > 0.5
    assert holds(of("retrain", "privleak"), 0)
    assert holds(of("retrain", "nll_gap", "role=forget"), 0)
    for method in shared["methods"]:
        assert 0 < of(method, "forget_quality", "role=forget")["value"] <= 1
        assert 0 <= of(method, "model_utility")["value"] < 1


def test_muse(tree, folder):
    text_files.checkpoint(folder / "llama", "llama")
    text_files.news(folder / "muse-bench/MUSE-News", 80)
    study = shipped("muse")
    shared = study["defaults"]
    shared["model"]["weights"] = shared["data"]["tokenizer"] = "llama"
    shared["data"] |= {"length": 12, "public": 0.1, "size": 160, "test_size": 40}
    shared["recipe"] |= {**FAST, "epochs": 20}
    shared["protocol"]["pairs"] = 1
    for name, options in shared["methods"].items():
        if name not in ("none", "retrain"):
            options |= {"lr": 0.002, "batch_size": 16, "epochs": 2}
    found = ran(tree, folder, study)
    assert found["news", "none", "", "privleak", ""]["ci_high"] < -50
    assert holds(found["news", "retrain", "", "privleak", ""], 0)


def test_swap_on_sentences(tree, folder):
    text_files.sst5(folder / "data/sst5")
    study = shipped("swap_sst5")
    study["defaults"]["data"] |= {"size": 400, "test_size": 100}
    study["defaults"]["model"] |= {"width": 16}
    study["defaults"]["protocol"] |= {"alpha": 0.25, "pairs": 2, "models_per_split": 1}
    found = ran(tree, folder, study)
    quality = {method: found["sst5", method, "paper", "q", ""] for method in study["defaults"]["methods"]}
    assert quality["retrain"]["value"] > quality["none"]["value"]
    assert not [m for m, row in quality.items() if math.isnan(row["value"])]
