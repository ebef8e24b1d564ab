"""What is rebuilt if a field of a study changes: one row for every field that may be configured."""

import pytest
from unlearning_audit import ROOT
from unlearning_audit.study import schema
from unlearning_audit.training import recipe
from unlearning_audit.workflow import parameters

from plan_cases import BASE, changed, everything_from, planned, rebuilt

MULTISTEP = {"defaults/recipe/schedule": "multistep", "defaults/recipe/milestones": [1]}
PART = {"scenarios/part": {"methods": ["none", "finetune"]}}
PRIVATE = {"defaults/recipe/dp": {"epsilon": 8.0}}
AXIS = {"scenarios/main/vary": {"recipe.lr": [0.1]}}
NOTHING = {}
VERDICTS = {"comparisons": (1, 0, 1)}

#: One more method in two batches, one more attack, one more scenario that shares nothing.
ONE_METHOD_MORE = {"unlearn": (0, 8, 2), "metrics": (0, 5, 1), "comparisons": (1, 0, 1)}
ONE_CONTROL_LESS = {"unlearn": (2, 6, 0), "metrics": (1, 4, 0), "comparisons": (1, 0, 1)}
TWICE = {"data": (0, 1, 1), "splits": (0, 2, 2), "train": (0, 2, 2), "unlearn": (0, 8, 8),
         "metrics": (0, 5, 5), "comparisons": (0, 1, 1)}  # fmt: skip
TWO_PAIRS_MORE = {"splits": (0, 2, 1), "train": (0, 2, 1), "unlearn": (0, 8, 4), "metrics": (5, 0, 5),
                  "comparisons": (1, 0, 1)}  # fmt: skip
OTHER_BATCHES = {"splits": (2, 0, 1), "train": (2, 0, 1), "unlearn": (8, 0, 4), "metrics": (5, 0, 5),
                 "comparisons": (1, 0, 1)}  # fmt: skip

#: Both methods that declare a space, beside themselves at the study's own setting.
TWO_TUNED = {"splits": (0, 2, 1), "train": (0, 2, 1), "tune": (0, 0, 2), "unlearn": (0, 8, 5),
             "metrics": (0, 5, 2), "comparisons": (1, 0, 1)}  # fmt: skip
OTHER_TRIALS = {"tune": (2, 0, 2), "unlearn": (4, 9, 4), "metrics": (2, 5, 2),
                "comparisons": (1, 0, 1)}  # fmt: skip

COMPETITION = {"defaults/protocol": {"name": "competition"}, "defaults/attacks": {}, "tables": {}, "figures": {}}


def rows(prefix, place, expected, first=NOTHING, **values):
    """One row for each field below a ``place``, by its value."""
    return [(prefix + name, first, {place + name: value}, expected) for name, value in values.items()]


#: (field, edits before, edits after, the first stage that is rebuilt, or the counts of `rebuilt`).
ROWS = [
    *rows("", "", NOTHING, study="other", keep="logits", memory=9000, tables={}, figures={}),
    *rows("", "", VERDICTS, margins={"advantage": 0.1}, retrain_spread={"advantage": 0.01}, looks=[4, 8]),
    *rows("", "", "data", seed=1),
    *rows("", "", "metrics", bootstrap=500),
    *rows("", "", OTHER_BATCHES, batch=4),
    *rows("", "", {"comparisons": (2, 0, 2)}, {"scenarios/other": {"data": {"label_noise": 0}}}, family="study"),
    *rows("", "", {"comparisons": (1, 1, 0)}, PART, only=["main"]),
    ("defaults", {}, {"defaults/recipe": {}, "scenarios/main/recipe": {"epochs": 3, "lr": 0.1}}, NOTHING),
    ("scenarios", {}, {"scenarios/more": {"data": {"label_noise": 0.1}}}, TWICE),
    ("scenarios", {}, PART, {"comparisons": (0, 1, 1)}),
    ("scenarios", {}, {"scenarios": {"renamed": {}}, "tables": {}, "figures": {}}, NOTHING),
    *((f"margins.{name}", {}, {f"margins/{name}": 1.3 if value > 1 else 0.12}, VERDICTS)
      for name, value in schema.Margins().model_dump().items()),
    *rows("tables.", "tables/quality/", NOTHING, title="Other", metric="auc", attack="extended", where={"pair": 1},
          layout="long", footer=["accuracy"], published="swap/table_1"),
    *rows("tables.", "tables/quality/", NOTHING, PART, scenarios=["part"]),
    *rows("tables.", "tables/quality/", NOTHING, AXIS, columns="lr"),
    *rows("figures.", "figures/quality/", NOTHING, kind="roc", title="Other"),
    *rows("figures.", "figures/quality/", NOTHING, PART, scenarios=["part"]),
    *rows("figures.", "figures/quality/", NOTHING, AXIS | {"figures/quality/kind": "relation"}, axis="lr"),
    *rows("figures.", "figures/quality/", NOTHING, {"figures/quality/kind": "roc"}, attack="kde/trained"),
    ("scenario.data", {}, {"defaults/data": {"name": "cifar10"}}, "data"),
    ("scenario.model", {}, {"defaults/model": {"name": "linear"}}, "train"),
    ("scenario.recipe", {}, {"defaults/recipe": {}}, "train"),
    ("scenario.protocol", {}, {"defaults/protocol/name": "random_splits"}, "splits"),
    ("scenario.protocol", {}, {"defaults/protocol/pairs": 6}, TWO_PAIRS_MORE),
    ("scenario.methods", {}, {"defaults/methods/ssd": {}}, ONE_METHOD_MORE),
    ("scenario.attacks", {}, {"defaults/attacks/loss": {}}, "metrics"),
    ("scenario.attacks", {}, {"defaults/attacks": dict(reversed(BASE["defaults"]["attacks"].items()))}, NOTHING),
    ("scenario.metrics", COMPETITION, {"defaults/metrics": {"competition": {"delta": 1e-6}}}, "metrics"),
    ("scenario.controls", {}, {"defaults/controls": False}, ONE_CONTROL_LESS),
    ("scenario.tune", {}, {"defaults/tune": {"trials": 4}}, TWO_TUNED),
    ("scenario.tune", {"defaults/tune": {}}, {"defaults/tune/trials": 4}, OTHER_TRIALS),
    ("scenario.vary", {}, AXIS, NOTHING),
    ("scenario.vary", {}, {"scenarios/main/vary": {"seedless": {"a": {}, "b": {"data": {"label_noise": 0}}}}}, TWICE),
    *rows("data.", "defaults/data/", "data", size=800, per_class=50, test_size=100, label_noise=0.1,
          label_noise_seed=1, label_noise_kind="other", greyscale=True),
    *rows("recipe.", "defaults/recipe/", "train", optimiser="adam", lr=0.2, momentum=0.9, weight_decay=0.1,
          batch_size=32, schedule="cosine", epochs=4, augment="crop_flip", record_updates=True, precision="bfloat16",
          class_weights="balanced", dp={"epsilon": 8.0}),
    *rows("recipe.", "defaults/recipe/", "train", MULTISTEP, milestones=[2], lr_decay=0.5),
    *rows("recipe.", "defaults/recipe/", NOTHING, dp={"epsilon": float("inf")}),
    *rows("recipe.dp.", "defaults/recipe/dp/", "train", PRIVATE, epsilon=4.0, delta=1e-6, max_grad_norm=2.0),
]  # fmt: skip


@pytest.mark.parametrize(("field", "first", "then", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_a_changed_field_rebuilds_what_reads_it_and_nothing_else(field, first, then, expected):
    base = changed(BASE, first)
    before, after = planned(base), planned(changed(base, then))
    if isinstance(expected, str):
        expected = everything_from(expected, before)
    assert rebuilt(before, after) == expected
    assert rebuilt(before, planned(base)) == NOTHING


def test_every_field_of_the_schema_has_its_row():
    fields = {
        "": schema.StudyFile, "margins.": schema.Margins, "tables.": schema.Table, "figures.": schema.Figure,
        "scenario.": schema.ScenarioFile, "data.": schema.DataChoice, "recipe.": recipe.Recipe,
        "recipe.dp.": recipe.Privacy,
    }  # fmt: skip
    names = {prefix + name for prefix, model in fields.items() for name in model.model_fields}
    assert {row[0] for row in ROWS} == names | {"scenario.vary"}


def test_in_a_whole_study_the_levels_add_up_to_five_per_cent_however_few_scenarios_are_run():
    def levels(**edits):
        study = changed(BASE, {f"scenarios/part{k}": {"data": {"label_noise": k / 10}} for k in range(2)} | edits)
        nodes = planned(study).nodes["comparisons"]
        return {name: node.settings.get("alpha", 0.05) for name, node in nodes.items()}

    whole, (part,) = levels(family="study"), levels(family="study", only=["main"]).items()
    assert list(levels().values()) == [0.05] * 3
    assert sum(whole.values()) == pytest.approx(0.05)
    assert part in whole.items()
    assert 0 < sum(levels(family="study", looks=[2, 4]).values()) < 0.05


# ---------------------------------------------------------------- metrics and their models


def test_a_metric_needs_retrained_models_if_it_compares_with_them():
    def study(metric):
        return changed(BASE, {"scenarios/main": {"metrics": {metric: {}}, "methods": ["none"]}})

    (node,) = planned(study("one_run")).nodes["metrics"].values()
    assert "one_run" in node.settings["metrics"]
    assert not {"retrained", "control"} & set(node.inputs)
    with pytest.raises(ValueError, match=r"metrics\.ruli_on_pairs: compares with retrained models; add retrain to"):
        planned(study("ruli_on_pairs"))


@pytest.mark.parametrize(
    ("protocol", "metrics", "problem"),
    [
        ({"name": "ruli", "target_size": 30, "shadow_blocks": 2}, {},
         r"shadow_blocks: must be at least 3 for the metric 'ruli' \(minimum: 3\), found 2"),
        ({"name": "swap", "models_per_split": 2}, {"ruli_on_pairs": {}},
         r"models_per_split: must be at least 3 for the metric 'ruli_on_pairs' \(minimum: 2, and 1 more\), found 2"),
        ({"name": "swap", "models_per_split": 1}, {"competition_on_pairs": {}},
         "models_per_split: must be at least 2 for the metric 'competition_on_pairs', found 1"),
        ({"name": "lira_selection", "pairs": 3}, {}, "pairs: must be at least 4 for the metric 'vulnerability'"),
    ],
    ids=str,
)  # fmt: skip
def test_fewer_models_than_a_metric_can_score_are_refused_before_they_are_trained(protocol, metrics, problem):
    def study(protocol):
        edits = {"defaults/protocol": protocol, "scenarios/main": {"metrics": metrics}, "tables": {}, "figures": {}}
        edits |= {} if protocol["name"] == "swap" else {"defaults/attacks": {}}
        edits |= {"defaults/methods": {"none": {}}} if protocol["name"] == "lira_selection" else {}
        return changed(BASE, edits)

    with pytest.raises(ValueError, match=problem):
        planned(study(protocol))
    *_, (option, number) = protocol.items()
    assert planned(study(protocol | {option: number + 1})).nodes["metrics"]


def test_what_papers_call_a_model_counts_from_a_file_outside_the_library_too(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text((ROOT / "unlearning_audit/models/mlp.py").read_text() + "\nPRINTED = 'net of {hidden[0]}'\n")
    plan = planned(changed(BASE, {"scenarios/main": {"model": {"name": "mine", "file": str(path), "hidden": [8]}}}))
    assert {entry["facts"]["model"] for entry in parameters.collect(plan)["cases"]} == {"net of 8"}
