"""Gradient norms: known distributions of them, and the attack from a study's text to its scores."""

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit import stats
from unlearning_audit.attacks import gradient_norm
from unlearning_audit.evaluation import rows as rows_of
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.readings import Gradients, read
from unlearning_audit.evaluation.reference import Reference
from unlearning_audit.plugins import registry, source, syntax
from unlearning_audit.store import tables
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

from attack_cases import advantage
from row_places import about
from stage_runs import run

CLASSES = 3


def population(rng, shift, models=4, samples=600):
    """−log of the norm is N(0, 1) for non-members and higher by ``shift`` for members; the logits say nothing."""
    y, member = rng.integers(CLASSES, size=samples), rng.random((models, samples)) < 0.5
    small = rng.normal(size=(models, samples)) + shift * member
    return np.zeros((models, samples, CLASSES), np.float32), y, member, np.exp(-2 * small)


def attacked(shift, seed=0, **options):
    rng = np.random.default_rng(seed)
    logits, y, member, norms = population(rng, shift)
    reference = Reference(logits, y, member, ~member, signals={"squared_norms": norms})
    logits, y, member, norms = population(rng, shift)
    result = gradient_norm.score(logits, y, reference, gradient_norm.Options(**options), rng, norms)
    return *result, member, norms


@pytest.mark.parametrize("per_class", [True, False])
@pytest.mark.parametrize("shift", [1.5, -1.5])
def test_members_are_found_on_whichever_side_the_reference_shows_them(shift, per_class):
    score, decision, member, norms = attacked(shift, per_class=per_class)
    # 1,200 on either side: standard errors of .01
    assert stats.auc(score=score.ravel(), positive=member.ravel()).value == pytest.approx(
        ndtr(1.5 / np.sqrt(2)), abs=0.04
    )
    assert advantage(decision, member) == pytest.approx(2 * ndtr(0.75) - 1, abs=0.08)
    np.testing.assert_allclose(score, -np.sign(shift) * 0.5 * np.log(norms))


def test_one_side_by_itself_misses_what_ascent_leaves():
    score, decision, member, _ = attacked(-1.5, members="small")
    assert stats.auc(score=score.ravel(), positive=member.ravel()).value < 0.2
    assert abs(advantage(decision, member)) < 0.05


def test_a_gradient_of_zero_is_the_strongest_sign_of_a_member():
    score, _, _, norms = attacked(1.5)
    assert gradient_norm.small(np.zeros(1)) > score.max()
    assert np.isfinite(gradient_norm.small(np.zeros(1))).all()
    assert gradient_norm.small(np.ones(1)) == 0
    assert norms.min() > 0


# ---------------------------------------------------------------- from a study


STUDY = {
    "study": "tiny",
    "bootstrap": 100,
    "defaults": {
        "data": {"name": "digits", "size": 400, "test_size": 50, "label_noise": 0.3},
        "model": {"name": "mlp", "hidden": [32]},
        "recipe": {"epochs": 40, "lr": 0.2, "batch_size": 32, "momentum": 0.9},
        "protocol": {"name": "swap", "alpha": 0.25, "pairs": 2, "models_per_split": 2},
        "methods": {"none": {}, "retrain": {}, "neggrad": {"lr": 0.01, "epochs": 3}},
        "attacks": {"gradient_norm": {}, "confidence": {}},
        "controls": False,
    },
    "scenarios": {"white": {}, "black": {"attacks": ["confidence"]}},
}


def planned():
    return plan.make(reading.read(STUDY, "study.yaml"))


def test_models_are_the_same_whether_or_not_their_gradients_are_asked_for():
    whole = planned()
    of = {"white": [], "black": []}
    for case in whole.cases:
        of[case.scenario.name] += [*case.unlearned, *case.originals]
    assert of["white"] == of["black"]
    assert {node.settings["rows"] for node in whole.nodes["signals"].values()} == {"all"}
    assert syntax.constant(registry.source_file("attacks", "gradient_norm"), "NEEDS") == "squared_norms"
    assert syntax.constant(registry.source_file("attacks", "confidence"), "NEEDS") is None


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """method → (case, folder) of the scenario that asks the attack, all made."""
    folder = tmp_path_factory.mktemp("run")
    whole = planned()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(whole)
    return {(c.scenario.name, c.method): (c, folder) for c in whole.cases}


def test_scores_are_the_norms_that_came_with_the_logits(cases):
    case, folder = cases["white", "none"]
    member = Membership.read(folder / case.splits[0])
    targets = np.flatnonzero(~member.shadow)
    norms = readings(folder, case).squared_norms
    assert norms.shape == member.train.shape
    for form in ("trained", "unlearned"):
        columns = tables.read_scores(folder / case.scores)["gradient_norm", form]
        of_target = norms[targets[columns["model"]], columns["index"]]
        np.testing.assert_allclose(columns["score"], -0.5 * np.log(of_target))


def readings(folder, case) -> Gradients:
    """Those of the only batch of a case, found by the models that they are of."""
    models = case.unlearned[0].replace("logits.npz", "models.safetensors")
    (node,) = (node for node in planned().nodes["signals"].values() if node.inputs["models"] == [models])
    memberships = Membership.read(folder / case.splits[0])
    return read(folder / node.outputs["signals"], *memberships.train.shape)


def test_what_was_memorised_has_small_gradients_until_it_is_forgotten(cases):
    by_method = {}
    for method in ("none", "retrain", "neggrad"):
        case, folder = cases["white", method]
        rows = {(r.attack, r.metric, about(r)): r for r in rows_of.read(folder / case.metrics)}
        by_method[method] = rows
    auc = {method: rows["gradient_norm/unlearned", "auc", ""] for method, rows in by_method.items()}
    assert auc["none"].ci_low > 0.6
    assert auc["retrain"].ci_low < 0.5 < auc["retrain"].ci_high
    assert auc["neggrad"].value < auc["none"].value
    assert by_method["none"]["extended", "q", ""].value <= by_method["none"]["paper", "q", ""].value


def test_a_need_that_nobody_can_meet_is_refused(tmp_path):
    path = tmp_path / "mine.py"
    text = (source.LIBRARY / "unlearning_audit" / "attacks" / "confidence.py").read_text()
    path.write_text(text + '\nNEEDS = "tea leaves"\n')
    wish = {**STUDY, "defaults": {**STUDY["defaults"], "attacks": {"confidence": {}, "mine": {"file": str(path)}}},
            "scenarios": {"white": {}}}  # fmt: skip
    with pytest.raises(ValueError, match=r"attacks\.mine: has NEEDS = 'tea leaves'; protocols offer"):
        reading.read(wish, "study.yaml")


@pytest.mark.parametrize("attack", ["lira", "rmia"])
def test_an_attack_with_a_model_for_each_sample_is_refused_where_shadow_models_have_other_samples(attack):
    wish = {**STUDY, "defaults": {**STUDY["defaults"], "attacks": [attack, "confidence"]},
            "scenarios": {"white": {}}}  # fmt: skip
    with pytest.raises(ValueError, match=rf"attacks\.{attack}: needs same_samples \(.*\), which the protocol swap"):
        reading.read(wish, "study.yaml")
