"""What is made for a study of text, and what is rebuilt if its corpus, base or weights change."""

import json
from pathlib import Path

import pytest

from plan_cases import BASE, BELOW, changed, labels, planned, rebuilt

ADAM = {"optimiser": "adamw", "lr": 0.001, "epochs": 2}
TEXT = changed(
    BASE,
    {
        "defaults/data": {"name": "passages", "test_size": 20},
        "defaults/model": {"name": "gpt2", "base": ADAM},
        "defaults/methods": {"none": {}, "retrain": {}, "graddiff": {}},
        "defaults/attacks": {"confidence": {}, "min_k": {}},
    },
)


def test_one_base_is_made_before_all_models_and_all_of_them_start_from_it():
    plan = planned(TEXT)
    (base,) = plan.nodes["pretrain"].values()
    assert labels(plan, "pretrain") == ["passages-gpt2"]
    assert base.settings["recipe"]["lr"] == 0.001
    models = [*plan.nodes["train"].values(), *plan.nodes["unlearn"].values()]
    assert all(node.inputs["base"] == [base.outputs["models"]] for node in models)
    readings = plan.nodes["signals"].values()
    assert {(node.settings["signal"], node.settings["rows"]) for node in readings} == {("tokens", "candidates")}
    assert {path for node in readings for path in node.inputs["models"]} == {node.outputs["models"] for node in models}
    assert not planned(changed(TEXT, {"defaults/model": {"name": "gpt2"}})).nodes["pretrain"]


def test_tokens_are_read_only_where_an_attack_or_metric_asks():
    assert not planned(changed(TEXT, {"defaults/attacks": {"confidence": {}}})).nodes["signals"]


def test_another_recipe_of_the_base_makes_all_anew_but_data_and_splits():
    changes = rebuilt(planned(TEXT), planned(changed(TEXT, {"defaults/model/base/lr": 0.002})))
    assert set(changes) == {"pretrain", *BELOW["train"]}
    assert all(stay == 0 for _, stay, _ in changes.values())


def test_a_recipe_of_the_others_leaves_the_base_as_it_is():
    changes = rebuilt(planned(TEXT), planned(changed(TEXT, {"defaults/recipe/lr": 0.2})))
    assert set(changes) == set(BELOW["train"])


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("texts", "moved"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jsonl").write_text(json.dumps({"text": "one"}))
    return tmp_path


def test_what_a_folder_of_text_holds_counts_and_where_it_lies_does_not(corpus):
    data = {"name": "passages", "corpus": "folder", "path": "texts"}
    before = planned(changed(TEXT, {"defaults/data": data}))
    assert rebuilt(before, planned(changed(TEXT, {"defaults/data": {**data, "path": "moved"}}))) == {}
    (corpus / "texts" / "b.txt").write_text("more")
    assert "data" in rebuilt(before, planned(changed(TEXT, {"defaults/data": data})))


def test_what_a_folder_of_weights_holds_counts(corpus):
    study = changed(TEXT, {"defaults/model": {"name": "gpt2", "weights": "texts"}})
    before = planned(study)
    (corpus / "texts" / "model.safetensors").write_bytes(b"weights")
    assert set(rebuilt(before, planned(study))) == set(BELOW["train"])


def test_an_adapter_makes_all_models_anew(corpus):
    weights = {"name": "gpt2", "weights": "some/weights"}
    before = planned(changed(TEXT, {"defaults/model": weights}))
    after = planned(changed(TEXT, {"defaults/model": {**weights, "adapter": {"rank": 4}}}))
    assert set(before.nodes["data"]) == set(after.nodes["data"])
    assert not set(before.nodes["train"]) & set(after.nodes["train"])


def test_models_say_answers_where_a_metric_reads_them():
    text = changed(TEXT, {"defaults/attacks": {"confidence": {}}})
    base = planned(text)
    extended = planned(changed(text, {"scenarios/main": {"metrics": {"rouge": {"most": 7}}}}))
    assert set(rebuilt(base, extended)) == {"signals", "metrics", "comparisons"}
    assert not base.nodes["signals"]
    by_method = {case.method: extended.nodes["metrics"][Path(case.metrics).parent.name] for case in extended.cases}
    assert len(extended.nodes["signals"]) == len(extended.nodes["train"]) * len(by_method)
    for method, node in by_method.items():
        reference = "retrain_control" if method == "retrain" else "retrain"
        assert node.inputs["compared_generated"] == by_method[reference].inputs["generated"]
    both = planned(changed(text, {"scenarios/main": {"metrics": {"rouge": {"most": 7}, "utility": {"most": 9}}}}))
    assert {node.settings["most"] for node in both.nodes["signals"].values()} == {9}
