"""What is rebuilt if a field of a study changes: one row for every field that may be configured."""

import pytest
from unlearning_audit import ROOT
from unlearning_audit.study import schema
from unlearning_audit.study.schema import STAGES
from unlearning_audit.training import recipe
from unlearning_audit.workflow import parameters

from plan_cases import BASE, changed, everything_from, planned, rebuilt

MULTISTEP = {"defaults/recipe/schedule": "multistep", "defaults/recipe/milestones": [1]}
PART = {"scenarios/part": {"methods": ["none", "finetune"]}}
PRIVATE = {"defaults/recipe/dp": {"epsilon": 8.0}}
NOTHING = {}
TWO = {"scenarios/other": {"data": {"label_noise": 0}}}
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

#: (field, edits before, edits after, the first stage that is rebuilt, or the counts of `rebuilt`).
ROWS = [
    # the top level
    ("study", {}, {"study": "other"}, NOTHING),
    ("seed", {}, {"seed": 1}, "data"),
    ("batch", {}, {"batch": 4}, OTHER_BATCHES),
    ("bootstrap", {}, {"bootstrap": 500}, "metrics"),
    ("margins", {}, {"margins": {"advantage": 0.1}}, VERDICTS),
    ("retrain_spread", {}, {"retrain_spread": {"advantage": 0.01}}, VERDICTS),
    ("looks", {}, {"looks": [4, 8]}, VERDICTS),
    ("family", TWO, {"family": "study"}, {"comparisons": (2, 0, 2)}),
    *(
        (f"margins.{name}", {}, {f"margins/{name}": 1.3 if value > 1 else 0.12}, VERDICTS)
        for name, value in schema.Margins().model_dump().items()
    ),
    ("keep", {}, {"keep": "logits"}, NOTHING),
    ("memory", {}, {"memory": 9000}, NOTHING),
    ("limit", {}, {"limit": 1000}, NOTHING),
    ("only", PART, {"only": ["main"]}, {"comparisons": (1, 1, 0)}),
    ("defaults", {}, {"defaults/recipe": {}, "scenarios/main/recipe": {"epochs": 3, "lr": 0.1}}, NOTHING),
    ("scenarios", {}, {"scenarios/more": {"data": {"label_noise": 0.1}}}, TWICE),
    ("scenarios", {}, PART, {"comparisons": (0, 1, 1)}),
    ("scenarios", {}, {"scenarios": {"renamed": {}}, "tables": {}, "figures": {}}, NOTHING),
    ("tables", {}, {"tables": {}}, NOTHING),
    ("tables.title", {}, {"tables/quality/title": "Other"}, NOTHING),
    ("tables.metric", {}, {"tables/quality/metric": "auc"}, NOTHING),
    ("tables.scenarios", PART, {"tables/quality/scenarios": ["part"]}, NOTHING),
    ("tables.columns", {"scenarios/main/vary": {"recipe.lr": [0.1]}}, {"tables/quality/columns": "lr"}, NOTHING),
    ("tables.attack", {}, {"tables/quality/attack": "extended"}, NOTHING),
    ("tables.where", {}, {"tables/quality/where": {"pair": 1}}, NOTHING),
    ("tables.layout", {}, {"tables/quality/layout": "long"}, NOTHING),
    ("tables.footer", {}, {"tables/quality/footer": ["accuracy"]}, NOTHING),
    ("tables.published", {}, {"tables/quality/published": "swap/table_1"}, NOTHING),
    ("figures", {}, {"figures": {}}, NOTHING),
    ("figures.kind", {}, {"figures/quality/kind": "roc"}, NOTHING),
    ("figures.title", {}, {"figures/quality/title": "Other"}, NOTHING),
    ("figures.scenarios", PART, {"figures/quality/scenarios": ["part"]}, NOTHING),
    (
        "figures.axis",
        {"scenarios/main/vary": {"recipe.lr": [0.1]}, "figures/quality/kind": "relation"},
        {"figures/quality/axis": "lr"},
        NOTHING,
    ),
    ("figures.attack", {"figures/quality/kind": "roc"}, {"figures/quality/attack": "kde/trained"}, NOTHING),
    # a scenario
    ("scenario.data", {}, {"defaults/data": {"name": "cifar10"}}, "data"),
    ("scenario.model", {}, {"defaults/model": {"name": "linear"}}, "train"),
    ("scenario.recipe", {}, {"defaults/recipe": {}}, "train"),
    ("scenario.protocol", {}, {"defaults/protocol/name": "random_splits"}, "splits"),
    ("scenario.protocol", {}, {"defaults/protocol/pairs": 6}, TWO_PAIRS_MORE),
    ("scenario.methods", {}, {"defaults/methods/ssd": {}}, ONE_METHOD_MORE),
    ("scenario.methods", {}, {"defaults/methods": dict(reversed(BASE["defaults"]["methods"].items()))}, NOTHING),
    ("scenario.attacks", {}, {"defaults/attacks/loss": {}}, "metrics"),
    ("scenario.attacks", {}, {"defaults/attacks": dict(reversed(BASE["defaults"]["attacks"].items()))}, NOTHING),
    ("scenario.metrics", COMPETITION, {"defaults/metrics": {"competition": {"delta": 1e-6}}}, "metrics"),
    ("scenario.controls", {}, {"defaults/controls": False}, ONE_CONTROL_LESS),
    ("scenario.tune", {}, {"defaults/tune": {"trials": 4}}, TWO_TUNED),
    ("scenario.tune", {"defaults/tune": {}}, {"defaults/tune/trials": 4}, OTHER_TRIALS),
    ("scenario.tune", {"defaults/tune": {}}, {"defaults/tune/space": {"lr": [0.1, 0.2]}}, OTHER_TRIALS),
    ("scenario.vary", {}, {"scenarios/main/vary": {"recipe.lr": [0.1]}}, NOTHING),
    ("scenario.vary", {}, {"scenarios/main/vary": {"seedless": {"a": {}, "b": {"data": {"label_noise": 0}}}}}, TWICE),
    # how the data are used
    ("data.size", {}, {"defaults/data/size": 800}, "data"),
    ("data.per_class", {}, {"defaults/data/per_class": 50}, "data"),
    ("data.test_size", {}, {"defaults/data/test_size": 100}, "data"),
    ("data.label_noise", {}, {"defaults/data/label_noise": 0.1}, "data"),
    ("data.label_noise_seed", {}, {"defaults/data/label_noise_seed": 1}, "data"),
    ("data.label_noise_kind", {}, {"defaults/data/label_noise_kind": "other"}, "data"),
    ("data.greyscale", {}, {"defaults/data/greyscale": True}, "data"),
    # how models are trained
    ("recipe.optimiser", {}, {"defaults/recipe/optimiser": "adam"}, "train"),
    ("recipe.lr", {}, {"defaults/recipe/lr": 0.2}, "train"),
    ("recipe.momentum", {}, {"defaults/recipe/momentum": 0.9}, "train"),
    ("recipe.weight_decay", {}, {"defaults/recipe/weight_decay": 0.1}, "train"),
    ("recipe.batch_size", {}, {"defaults/recipe/batch_size": 32}, "train"),
    ("recipe.schedule", {}, {"defaults/recipe/schedule": "cosine"}, "train"),
    ("recipe.milestones", MULTISTEP, {"defaults/recipe/milestones": [2]}, "train"),
    ("recipe.lr_decay", MULTISTEP, {"defaults/recipe/lr_decay": 0.5}, "train"),
    ("recipe.epochs", {}, {"defaults/recipe/epochs": 4}, "train"),
    ("recipe.augment", {}, {"defaults/recipe/augment": "crop_flip"}, "train"),
    ("recipe.record_updates", {}, {"defaults/recipe/record_updates": True}, "train"),
    ("recipe.precision", {}, {"defaults/recipe/precision": "bfloat16"}, "train"),
    ("recipe.class_weights", {}, {"defaults/recipe/class_weights": "balanced"}, "train"),
    ("recipe.dp", {}, PRIVATE, "train"),
    ("recipe.dp", {}, {"defaults/recipe/dp": {"epsilon": float("inf")}}, NOTHING),
    ("recipe.dp.epsilon", PRIVATE, {"defaults/recipe/dp/epsilon": 4.0}, "train"),
    ("recipe.dp.delta", PRIVATE, {"defaults/recipe/dp/delta": 1e-6}, "train"),
    ("recipe.dp.max_grad_norm", PRIVATE, {"defaults/recipe/dp/max_grad_norm": 2.0}, "train"),
]


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
        "": schema.StudyFile,
        "margins.": schema.Margins,
        "tables.": schema.Table,
        "figures.": schema.Figure,
        "scenario.": schema.ScenarioFile,
        "data.": schema.DataChoice,
        "recipe.": recipe.Recipe,
        "recipe.dp.": recipe.Privacy,
    }
    names = {prefix + name for prefix, model in fields.items() for name in model.model_fields}
    assert {row[0] for row in ROWS} == names | {"scenario.vary"}


def test_two_studies_share_the_nodes_of_their_equal_parts():
    first = planned(changed(BASE, {"study": "one", "scenarios/own": {"data": {"label_noise": 0.0}}}))
    second = planned(changed(BASE, {"study": "two", "scenarios/other": {"data": {"label_noise": 0.4}}}))
    shared = planned(BASE)
    for stage in STAGES:
        assert first.nodes[stage].keys() & second.nodes[stage].keys() == shared.nodes[stage].keys()
        for name, node in shared.nodes[stage].items():
            assert first.nodes[stage][name] == second.nodes[stage][name] == node


def attacks(plan) -> list[str]:
    return list(plan.study.scenarios[0].attacks)


def test_a_metric_that_compares_with_nothing_needs_no_retrained_models():
    lone = changed(BASE, {"scenarios/main": {"metrics": {"one_run": {}}, "methods": ["none"]}})
    (node,) = planned(lone).nodes["metrics"].values()
    assert "one_run" in node.settings["metrics"]
    assert not {"retrained", "control"} & set(node.inputs)


def test_a_metric_that_compares_needs_retrained_models():
    lone = changed(BASE, {"scenarios/main": {"metrics": {"ruli_on_pairs": {}}, "methods": ["none"]}})
    with pytest.raises(ValueError, match=r"metrics\.ruli_on_pairs: compares with retrained models; add retrain to"):
        planned(lone)
    wrong = changed(BASE, {"scenarios/main": {"metrics": {"rulli_on_pairs": {}}}})
    with pytest.raises(ValueError, match=r"did you mean 'ruli_on_pairs'"):
        planned(wrong)


def test_fewer_shadow_models_than_a_metric_needs_are_refused_before_they_are_trained():
    def ruli(**metrics):
        edits = {"name": "ruli", "target_size": 30, "shadow_blocks": 2}
        return changed(
            BASE,
            {"defaults/protocol": edits, "scenarios/main": {"metrics": metrics, "attacks": []}, "tables": {},
             "figures": {}},
        )  # fmt: skip

    with pytest.raises(
        ValueError, match=r"shadow_blocks: must be at least 3 for the metric 'ruli' \(minimum: 3\), fou"
    ):
        planned(ruli())
    assert planned(ruli(ruli={"minimum": 2})).nodes["metrics"]


@pytest.mark.parametrize(
    ("protocol", "metrics", "problem"),
    [
        ({"name": "swap", "models_per_split": 2}, {"ruli_on_pairs": {}},
         r"models_per_split: must be at least 3 for the metric 'ruli_on_pairs' \(minimum: 2, and 1 more\), found 2"),
        ({"name": "swap", "models_per_split": 3}, {"ruli_on_pairs": {"minimum": 3}}, "must be at least 4"),
        ({"name": "swap", "models_per_split": 1}, {"competition_on_pairs": {}},
         "models_per_split: must be at least 2 for the metric 'competition_on_pairs', found 1"),
        ({"name": "lira_selection", "pairs": 3}, {}, "pairs: must be at least 4 for the metric 'vulnerability'"),
    ],
    ids=["ruli_on_pairs", "ruli_on_pairs of more", "competition_on_pairs", "vulnerability"],
)  # fmt: skip
def test_fewer_models_than_a_metric_can_score_are_refused_before_they_are_trained(protocol, metrics, problem):
    def study(protocol):
        edits = {"defaults/protocol": protocol, "scenarios/main": {"metrics": metrics}}
        if protocol["name"] != "swap":
            edits |= {"defaults/methods": {"none": {}}, "defaults/attacks": {}, "tables": {}, "figures": {}}
        return changed(BASE, edits)

    with pytest.raises(ValueError, match=problem):
        planned(study(protocol))
    more = {name: value + 1 for name, value in protocol.items() if name != "name"}
    assert planned(study(protocol | more)).nodes["metrics"]


def test_a_minimum_may_be_an_option_of_the_metric(tmp_path):
    path = tmp_path / "mine.py"
    head = "from unlearning_audit.plugins.settings import Settings\nclass Options(Settings):\n    least: int = 9\n"
    for declared, problem in (
        (
            "{'pairs': ('least', 2)}",
            r"protocol\.pairs: must be at least 11 for the metric 'mine' \(least: 9, and 2 more",
        ),
        ("{'pairs': 'least'}", r"protocol\.pairs: must be at least 9 for the metric 'mine' \(least: 9\), found"),
    ):
        path.write_text(f"{head}PROTOCOL_MINIMUM = {declared}\ndef rows(case, options, rng):\n    return []\n")
        with pytest.raises(ValueError, match=problem):
            planned(changed(BASE, {"scenarios/main": {"metrics": {"mine": {"file": str(path)}}}}))


def test_what_papers_call_a_model_counts_from_a_file_outside_the_library_too(tmp_path):
    path = tmp_path / "mine.py"
    model = (ROOT / "unlearning_audit" / "models" / "mlp.py").read_text()

    def study(printed: str):
        path.write_text(f"{model}\nPRINTED = {printed}\n")
        return planned(changed(BASE, {"scenarios/main": {"model": {"name": "mine", "file": str(path), "hidden": [8]}}}))

    facts = [entry["facts"]["model"] for entry in parameters.collect(study("'net of {hidden[0]}'"))["cases"]]
    assert set(facts) == {"net of 8"}
