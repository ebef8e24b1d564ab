"""What each node is called, is told and reads, written out for small studies."""

import re
from pathlib import Path

import pytest
from unlearning_audit.study.schema import STAGES
from unlearning_audit.workflow import nodes

from plan_cases import BASE, case, changed, inputs, label, labels, metrics, planned, read

STUDY = changed(BASE, {
    "defaults/protocol/pairs": 3, "defaults/data/size": 400, "defaults/attacks": {"random": {}},
    "defaults/methods": {"none": {}, "finetune": {"epochs": 1}, "retrain": {}}, "defaults/metrics": {"relearn": {}},
})  # fmt: skip
DATA, SWAP, MLP = "digits-noise0.2-size400", "digits-noise0.2-size400-swap", "digits-noise0.2-size400-swap-mlp"
PARTS = ("pairs0to1", "pairs2")


@pytest.fixture(scope="module")
def plan():
    return planned(STUDY)


def test_labels_say_data_protocol_model_blocks_and_method(plan):
    assert labels(plan, "data") == [DATA]
    assert labels(plan, "splits") == [f"{SWAP}-{part}" for part in PARTS]
    assert labels(plan, "train") == [f"{MLP}-{part}" for part in PARTS]
    unlearned = [f"{MLP}-{part}-{method}" for method in ("finetune", "retrain", "retrain") for part in PARTS]
    assert labels(plan, "unlearn") == unlearned
    assert labels(plan, "metrics") == [f"{MLP}-{method}" for method in ("none", "finetune", "retrain", "retrain")]
    assert labels(plan, "comparisons") == [MLP]
    assert sorted(labels(plan, "signals")) == sorted(
        f"{name}-relearned" for name in [*labels(plan, "train"), *unlearned]
    )
    assert len(plan.specs()) == 24
    assert plan.models == 3 * 2 * (3 + 1) * 4  # pairs, splits, models of either half; as trained and by three methods
    assert [path.split("/")[1] for path in plan.specs()] == [s for s in STAGES for _ in plan.nodes[s]]
    plain = planned(changed(BASE, {"defaults/data/label_noise": 0.0}))
    assert labels(plain, "data") == ["digits"]


def test_settings_are_what_a_stage_is_told(plan):
    (data,), (first, last), (train, _) = (list(plan.nodes[stage].values()) for stage in ("data", "splits", "train"))
    assert data.settings["source"] == "digits"
    assert set(data.settings) == {"source", "options", "use", "seed"}
    assert (data.settings["use"]["size"], data.settings["use"]["label_noise"]) == (400, 0.2)
    assert (first.settings["blocks"], last.settings["blocks"]) == ([0, 1], [2])
    assert (first.settings["population"], first.settings["protocol"]) == ("pairs", "swap")
    assert set(first.settings) == {"protocol", "options", "population", "blocks", "seed"}
    assert not {"pairs", "select_from", "requests"} & set(first.settings["options"])
    assert set(train.settings) == {"model", "options", "recipe"}
    settings_of_unlearn = [node.settings for node in plan.nodes["unlearn"].values()]
    assert [settings["method"] for settings in settings_of_unlearn] == ["finetune"] * 2 + ["retrain"] * 4
    assert [settings["method_options"].get("draw") for settings in settings_of_unlearn] == [None, None, 0, 0, 1, 1]
    assert all(
        {**train.settings, "method": settings["method"], "method_options": settings["method_options"]} == settings
        for settings in settings_of_unlearn
    )
    steps = metrics(plan, "none").settings["metrics"]["relearn"]["options"]["steps"]
    for node in plan.nodes["signals"].values():
        assert node.settings == {
            **{k: train.settings[k] for k in ("model", "options", "recipe")},
            "signal": "relearned",
            "steps": steps,
        }
    judging = metrics(plan, "none").settings
    assert judging["attacks"] == {"random": {"name": "random", "options": {}}}
    assert (judging["bootstrap"], judging["seed"], judging["paper_set"]) == (
        1000,
        0,
        [],
    )
    compared = next(iter(plan.nodes["comparisons"].values())).settings
    assert compared["methods"] == ["finetune", "none", "retrain", "retrain_control"]
    assert (compared["draws"], compared["seed"], set(compared)) == (1000, 0, {"methods", "margins", "draws", "seed"})


def test_places_say_where_own_files_lie_and_where_a_choice_was_made(plan):
    by_stage = {stage: next(iter(plan.nodes[stage].values())).place for stage in STAGES if plan.nodes[stage]}
    judging = by_stage.pop("metrics")
    assert judging["attacks"].keys() == judging["metrics"].keys() == {"files", "terms", "keys"}
    assert judging["attacks"]["files"] == judging["metrics"]["files"] == {}
    without = ("parts", "inputs")  # what is made and read beside the files of a job
    assert {stage: {k: v for k, v in place.items() if k not in without} for stage, place in by_stage.items()} == {
        "data": {"file": None, "where": "scenarios.main.data"},
        "splits": {"file": None, "where": "scenarios.main.protocol"},
        "train": {"file": None}, "unlearn": {"file": None, "method_file": None}, "signals": {"file": None},
        "comparisons": {},
    }  # fmt: skip


def test_outputs_lie_in_the_folder_of_the_node(plan):
    files = {
        "data": ["data.npz"], "splits": ["membership.npz"], "train": ["models.safetensors", "logits.npz"],
        "unlearn": ["models.safetensors", "logits.npz"], "signals": ["signals.npz"],
        "metrics": ["scores.parquet", "metrics.csv", "contributions.npz", "records.csv"],
        "comparisons": ["verdicts.csv", "distances.csv", "ranks.csv", "resolution.csv"],
    }  # fmt: skip
    for stage, expected in files.items():
        for name, node in plan.nodes[stage].items():
            assert (node.stage, node.name) == (stage, name)
            assert node.outputs == {f.split(".")[0]: f"results/{stage}/{name}/{f}" for f in (*expected, "spec.json")}


def test_every_stage_reads_the_data_and_what_comes_before_it(plan):
    data = [f"data/{DATA}/data.npz"]
    splits = [f"splits/{SWAP}-{part}/membership.npz" for part in PARTS]
    trained = [f"train/{MLP}-{part}" for part in PARTS]
    assert [inputs(node) for node in plan.nodes["train"].values()] == [{"data": data, "splits": [s]} for s in splits]
    first = next(iter(plan.nodes["unlearn"].values()))
    assert inputs(first) == {"data": data, "splits": splits[:1], "trained": [f"{trained[0]}/models.safetensors"]}
    assert isinstance(first.inputs["data"], str)
    logits = [f"{folder}/logits.npz" for folder in trained]
    tuned = [f"unlearn/{MLP}-{part}-finetune/logits.npz" for part in PARTS]
    read_by = {"data": data, "splits": splits, "originals": logits, "unlearned": tuned}
    retrained = [f"unlearn/{MLP}-{part}-retrain/logits.npz" for part in PARTS]
    assert inputs(metrics(plan, "finetune")) == {
        **read_by, "retrained": retrained, "control": retrained,
        "relearned": [f"signals/{MLP}-{part}-finetune-relearned/signals.npz" for part in PARTS],
        "compared_relearned": [f"signals/{MLP}-{part}-retrain-relearned/signals.npz" for part in PARTS],
    }  # fmt: skip
    (compared,) = plan.nodes["comparisons"].values()
    order = ("finetune", "none", "retrain", "retrain_control")
    assert compared.inputs["metrics"] == [case(plan, method).metrics for method in order]
    assert compared.inputs["contributions"] == [case(plan, method).contributions for method in order]
    relearned = next(iter(plan.nodes["signals"].values()))
    assert inputs(relearned) == {"data": data, "splits": splits[:1], "models": [f"{trained[0]}/models.safetensors"]}


def test_methods_are_compared_with_retraining_and_retraining_with_its_control(plan):
    retrained, control = case(plan, "retrain").unlearned, case(plan, "retrain_control").unlearned
    assert set(retrained).isdisjoint(control)
    for method in ("none", "finetune", "retrain", "retrain_control"):
        node = metrics(plan, method)
        assert (node.inputs["retrained"], node.inputs["control"]) == (retrained, control)
        reference = "retrain_control" if method == "retrain" else "retrain"
        assert node.inputs["compared_relearned"] == metrics(plan, reference).inputs["relearned"]


def test_cases_say_where_the_files_of_a_method_lie(plan):
    files = case(plan, "none")
    assert [entry.method for entry in plan.cases] == ["none", "finetune", "retrain", "retrain_control"]
    assert files.unlearned == files.originals == [node.outputs["logits"] for node in plan.nodes["train"].values()]
    assert files.splits == [node.outputs["membership"] for node in plan.nodes["splits"].values()]
    assert read(files.data) == [f"data/{DATA}/data.npz"]
    assert read([files.scores, files.metrics, files.contributions]) == [
        f"metrics/{MLP}-none/{file}" for file in ("scores.parquet", "metrics.csv", "contributions.npz")
    ]
    (compared,) = plan.comparisons
    assert read(compared.outputs["verdicts"]) == [f"comparisons/{MLP}/verdicts.csv"]
    assert compared.scenario is files.scenario


def test_a_study_without_verdicts_compares_nothing():
    plain = planned(changed(BASE, {
        "defaults/protocol": {"name": "lira_selection", "pairs": 4}, "defaults/methods": {"none": {}},
        "defaults/attacks": {}, "tables": {}, "figures": {},
    }))  # fmt: skip
    assert not plain.nodes["comparisons"]
    assert not plain.comparisons
    assert {files.scores for files in plain.cases} == {None}
    assert {"retrained", "control"}.isdisjoint(*(node.inputs for node in plain.nodes["metrics"].values()))


@pytest.mark.parametrize(
    ("edits", "rows"),
    [
        ({}, set()),
        ({"defaults/attacks": {"gradient_norm": {}}}, {"all"}),
        ({"defaults/metrics": {"efficacy_on_pairs": {}}}, {"forgotten"}),
        ({"defaults/metrics": {"representation": {}}}, {"drawn"}),
        ({"defaults/metrics": {"efficacy_on_pairs": {}, "representation": {}}}, {"forgotten", "drawn"}),
        ({"defaults/metrics": {"efficacy_on_pairs": {}}, "defaults/protocol/requests": 2}, {"forgotten"}),
        ({"defaults/attacks": {"gradient_norm": {}}, "defaults/metrics": {"efficacy_on_pairs": {}}},
         {"all", "forgotten"}),
        ({"defaults/protocol/requests": 2}, set()),
        ({"defaults/protocol": {"name": "efficacy"}, "defaults/attacks": {}, "tables": {}, "figures": {}},
         {"forgotten"}),
    ],
)  # fmt: skip
def test_gradients_are_read_where_somebody_asks(edits, rows):
    whole = planned(changed(BASE, edits))
    assert {node.settings["rows"] for node in whole.nodes["signals"].values()} == rows


def test_readings_are_of_the_models_beside_them_and_of_the_same_batch(plan):
    whole = planned(changed(BASE, {"defaults/attacks": {"gradient_norm": {}}}))
    maker = {path: node for stage in ("train", "unlearn", "signals") for node in whole.nodes[stage].values()
             for path in node.outputs.values()}  # fmt: skip
    for node in whole.nodes["metrics"].values():
        for models in ("original", "unlearned"):
            logits = node.inputs["originals" if models == "original" else models]
            for path, readings, splits in zip(logits, node.inputs[f"{models}_signals"], node.inputs["splits"],
                                              strict=True):  # fmt: skip
                reading = maker[readings]
                assert reading.inputs["models"] == [maker[path].outputs["models"]]
                assert reading.inputs["splits"] == [splits]


def test_hidden_layers_are_read_of_every_population_that_is_compared():
    whole = planned(changed(BASE, {"defaults/metrics": {"efficacy_on_pairs": {}, "representation": {}}}))
    maker = {path: node for nodes in whole.nodes.values() for node in nodes.values() for path in node.outputs.values()}
    logits = {"original": "originals"}
    for node in whole.nodes["metrics"].values():
        for of in ("original", "unlearned", "retrained", "control"):
            layers = [maker[path] for path in node.inputs[f"{of}_features"]]
            of_models = [maker[path].outputs["models"] for path in node.inputs[logits.get(of, of)]]
            assert [layer.inputs["models"][0] for layer in layers] == of_models
            assert {layer.settings["signal"] for layer in layers} == {"features"}
        assert "original_readings" not in node.inputs


def test_a_sequence_draws_each_request_and_names_it():
    whole = planned(changed(STUDY, {"defaults/protocol/requests": 2, "defaults/protocol/pairs": 1,
                                    "defaults/metrics": {}}))  # fmt: skip
    assert labels(whole, "splits") == [f"{SWAP}-pairs0-request{i}" for i in (1, 2)]
    assert [node.settings["request"] for node in whole.nodes["splits"].values()] == [1, 2]
    assert all(node.settings["options"]["requests"] == 2 for node in whole.nodes["splits"].values())
    (train,) = whole.nodes["train"].values()
    assert read(train.inputs["splits"]) == [f"splits/{SWAP}-pairs0-request1/membership.npz"]
    tuned = [name for name in labels(whole, "unlearn") if name.endswith("finetune")]
    assert tuned == [f"{MLP}-pairs0-request{i}-finetune" for i in (1, 2, 2)]
    assert {f"{MLP}-request{i}-none" for i in (1, 2)} < set(labels(whole, "metrics"))
    assert {tuple(read(node.inputs["splits"])) for node in whole.nodes["metrics"].values()} == {
        (f"splits/{SWAP}-pairs0-request{i}/membership.npz",) for i in (1, 2)
    }


def test_a_selection_reads_all_models_that_it_selects_by():
    whole = planned(changed(BASE, {
        "defaults/attacks": {}, "defaults/methods": {"none": {}}, "tables": {}, "figures": {}, "batch": 8,
        "scenarios": {"halves": {"protocol": {"name": "lira_selection", "pairs": 8}},
                      "audit": {"protocol": {
                          "name": "ruli", "target_set": "vulnerable", "target_size": 30, "select_from": "halves"}}},
    }))  # fmt: skip
    ((name, selection),) = whole.nodes["selection"].items()
    assert label(name) == "digits-noise0.2-lira_selection-mlp"
    halves = [node for node in whole.nodes["train"].values() if "lira_selection" in node.name]
    assert selection.inputs["originals"] == [node.outputs["logits"] for node in halves]
    assert len(halves) == 1
    assert selection.inputs["splits"] == [path for node in halves for path in node.inputs["splits"]]
    assert set(selection.settings) == {"metric", "options"}
    assert selection.outputs == {
        f.split(".")[0]: f"results/selection/{name}/{f}" for f in ("selection.npz", "spec.json")
    }
    (audit,) = [node for n, node in whole.nodes["metrics"].items() if "-ruli-" in n and label(n).endswith("-none")]
    assert audit.inputs["selection"] == [selection.outputs["selection"]]


def test_a_node_that_was_not_asked_for_is_none(plan):
    with pytest.raises(KeyError):
        plan.node("data", "other")


def test_folders_that_lie_here_are_listed_once_by_their_label(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("some-swap-aa", "some-swap-bb", "other-cc"):
        Path("results", "train", name).mkdir(parents=True)
    whole = planned(STUDY)
    assert whole.folders("train") == {"other": ["other-cc"], "some-swap": ["some-swap-aa", "some-swap-bb"]}
    Path("results", "train", "late-dd").mkdir()
    assert "late" not in whole.folders("train")
    draft = whole.draft()
    assert (draft.study, draft.models, len(draft.all())) == (whole.study, 0, 0)
    assert draft.folders("train") == whole.folders("train")


def test_the_key_tells_settings_parents_and_code_apart():
    settings, parents = {"a": 1}, {"data": ["d-1"], "splits": ["s-2", "s-3"]}
    keys = [
        nodes.key("code", settings, parents), nodes.key("other", settings, parents),
        *(nodes.key("code", a, parents) for a in ({"a": 2}, {"a": "1"}, {"a": True}, {"a": {"b": 1}}, {"b": 1})),
        nodes.key("code", settings, {**parents, "data": ["d-4"]}), nodes.key("code", settings, {"data": ["d-1"]}),
        nodes.key("code", settings, {**parents, "splits": ["s-3", "s-2"]}),
        nodes.key("code", settings, {"splits": ["d-1"], "data": ["s-2", "s-3"]}),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch("[0-9a-f]{10}", key) for key in keys)
    same = nodes.key("code", {"a": 1}, {"splits": ["s-2", "s-3"], "none": [], "data": ["d-1"]})
    assert same == keys[0], "the order of roles, and roles without a parent, say nothing"
