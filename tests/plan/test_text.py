"""What is made for a study of text, and what is rebuilt if its corpus, base or weights change."""

import json
from pathlib import Path

import pytest

from plan_cases import BASE, BELOW, changed, everything_from, labels, planned, rebuilt

TEXT = changed(
    BASE,
    {
        "defaults/data": {"name": "passages", "test_size": 20},
        "defaults/model": {"name": "gpt2", "base": {"optimiser": "adamw", "lr": 0.001, "epochs": 2}},
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


@pytest.fixture
def corpus(workdir):
    for name in ("texts", "moved"):
        (workdir / name).mkdir()
        (workdir / name / "a.jsonl").write_text(json.dumps({"text": "one"}))
    return workdir


FOLDER = {"defaults/data": {"name": "passages", "corpus": "folder", "path": "texts"}}
WEIGHTS = {"name": "gpt2", "weights": "some/weights"}


@pytest.mark.parametrize(
    ("first", "then", "stages"),
    [
        ({}, {"defaults/model/base/lr": 0.002}, ("pretrain", *BELOW["train"])),
        ({}, {"defaults/recipe/lr": 0.2}, BELOW["train"]),
        ({"defaults/model": WEIGHTS}, {"defaults/model/adapter": {"rank": 4}}, BELOW["train"]),
        (FOLDER, {"defaults/data/path": "moved"}, ()),
    ],
    ids=["recipe of the base", "recipe of the others", "adapter", "moved"],
)  # fmt: skip
def test_what_starts_from_a_base_or_weights_is_made_anew_with_them(corpus, first, then, stages):
    study = changed(TEXT, first)
    before = planned(study)
    anew = everything_from("data", before) | {"pretrain": (1, 0, 1)}
    assert rebuilt(before, planned(changed(study, then))) == {stage: anew[stage] for stage in stages}


@pytest.mark.parametrize(
    ("choice", "file", "stages"),
    [
        (FOLDER, "b.txt", {"data", "pretrain"}),
        ({"defaults/model": {"name": "gpt2", "weights": "texts"}}, "model.safetensors", set()),
    ],
)
def test_what_a_folder_of_text_or_weights_holds_counts(corpus, choice, file, stages):
    before = planned(changed(TEXT, choice))
    (corpus / "texts" / file).write_text("more")
    after = set(rebuilt(before, planned(changed(TEXT, choice))))
    assert after == stages | set(BELOW["splits" if stages else "train"])


def test_models_say_answers_where_a_metric_reads_them_and_tokens_where_an_attack_does():
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
