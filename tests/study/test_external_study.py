"""Logits from elsewhere in a study: what is planned, what is computed again, and what is refused."""

import shutil

import numpy as np
import pytest
from unlearning_audit.evaluation import opening
from unlearning_audit.evaluation.published import Published
from unlearning_audit.evaluation.rows import Failure
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError
from unlearning_audit.workflow import plan

from external_cases import CLASSES, GOOD, answers, config, memberships, number, planned, run, save, world
from plan_cases import changed, rebuilt


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("model", {"name": "mlp"}, r"audit\.model: has no effect"),
        ("data", {"name": "digits"}, r"audit\.data: has no effect"),
        ("vary", {"recipe.lr": [0.1, 0.2]}, r"audit\.vary\.recipe: has no effect"),
        ("methods", {"mine": {"lr": 0.1}}, r"methods\.mine: must have no options"),
        ("metrics", {"external": {}}, "there is no metric 'external'"),
        ("metrics", {"kernel": {}}, "needs one_forget_set"),
    ],
)
def test_what_a_folder_cannot_have_is_refused(workdir, field, value, problem):
    save("logits/target", **GOOD)
    with pytest.raises(StudyError, match=problem):
        reading.read(changed(config(), {f"scenarios/audit/{field}": value}))


def test_data_and_model_of_all_scenarios_are_not_those_of_a_folder(workdir):
    save("logits/target", **GOOD)
    (scenario,) = reading.read(config()).scenarios
    assert list(scenario.methods) == ["mine"]
    shared = {**config(), "defaults": {"model": {"name": "mlp"}, "data": {"name": "digits"}}}
    assert reading.read(shared).scenarios == (scenario,)


def test_a_metric_of_the_library_may_be_computed_twice_under_other_names(workdir):
    world(workdir / "logits")
    metrics = {"records": {"rate": 0.2}, "at_ten": {"name": "swap", "fpr": [0.1]}}
    study = changed(config(attacks=["correctness"]), {"scenarios/audit/metrics": metrics})
    rows = run(plan.make(reading.read(study)), "mine")["mine"]
    assert number(rows, "at_ten.auc", "correctness/unlearned") == number(rows, "auc", "correctness/unlearned")
    assert number(rows, "at_ten.tpr_at_fpr", "correctness/unlearned", "rate=0.1") >= 0
    assert any("at most" in row.note for row in rows if row.metric == "records_recognised")


def test_the_content_of_the_files_counts_and_their_place_does_not(workdir):
    world(workdir / "logits", methods=("one", "two"), trace=(0.0, 1.0))
    before = planned(("one", "two"))
    shutil.copytree("logits", "elsewhere")
    assert rebuilt(before, planned(("one", "two"), path="elsewhere")) == {}
    logits = np.load("logits/one/target/logits.npy")
    save("logits/one/target", logits=logits + 1)
    after = planned(("one", "two"))
    lost = {stage: {name.rsplit("-", 1)[0] for name in nodes.keys() - after.nodes[stage].keys()}
            for stage, nodes in before.nodes.items()}  # fmt: skip
    expected = {"external": {"external-one-target"}, "metrics": {"external-one"}, "comparisons": {"external"}}
    assert {stage: names for stage, names in lost.items() if names} == expected


def test_a_file_that_changed_since_it_was_planned_is_refused(workdir):
    world(workdir / "logits")
    whole = planned()
    save("logits", labels=np.zeros(200, int))
    with pytest.raises(ValueError, match=r"labels\.npy: this file has changed"):
        run(whole)


def test_shadow_models_of_other_samples_are_never_matched_by_column(workdir):
    arrays = world(workdir / "logits")
    y, masks = arrays["labels"], arrays["mine/target"][1:]
    targets = (masks[1] | (masks[0].any(0) & ~masks[0])).any(0)
    train, forget = memberships(np.random.default_rng(5), samples=200, high=90, pairs=16)
    shadow = answers(np.random.default_rng(6), y, train, forget, memory=3, trace=1)
    columns = {}
    for labels in (y, (y + 1) % CLASSES):
        save("logits/mine/shadow", logits=shadow, train=train, forget=forget, labels=labels)
        whole = planned(attacks=["kde"])
        run(whole, "mine")
        node = next(n for n in whole.nodes["metrics"].values() if "mine" in n.name)
        case = opening.imported_evaluation(node.settings["attacked"], node.inputs["attacked"])
        columns[bool((labels == y).all())] = dict(case.shadows(()))["unlearned"].y.shape[-1]
    shadow_columns = (forget | (train.any(0) & ~train)).any(0).sum()
    assert columns == {True: targets.sum(), False: shadow_columns}
    assert shadow_columns > targets.sum()


def test_attacks_are_not_asked_of_scores_that_result_files_hold(workdir):
    forget = np.arange(40)[None] < 20
    published = Published(
        forget=forget, heldout=~forget, retain=np.zeros_like(forget), test=np.zeros(40, bool),
        samples=np.arange(40).astype("U"), attacks=np.array(["loss"]), scores=np.arange(40.0)[None, None],
        readings=np.array([], "U"), values=np.zeros((0, 1, 40)), direction=np.zeros(0, np.int64),
        share=np.zeros(0, bool), comparable=np.array(["loss"]),
    )  # fmt: skip
    (workdir / "logits/target").mkdir(parents=True)
    published.write("logits/target/published.npz")
    rows = run(planned(attacks=["correctness"]))["mine"]
    assert not [row for row in rows if isinstance(row, Failure)]
    assert number(rows, "auc_loss") == 0.0, "what was forgotten scores least"
