"""Gradient norms: known distributions of them, and the attack from a study's text to its scores."""

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit import stats
from unlearning_audit.attacks import gradient_norm
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.readings import read
from unlearning_audit.evaluation.reference import Reference
from unlearning_audit.store import tables
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

from attack_cases import advantage
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
    assert np.inf > gradient_norm.small(np.zeros(1))[0] > score.max(), "no gradient is the strongest sign of a member"


def test_small_norms_alone_miss_what_ascent_leaves():
    score, decision, member, _ = attacked(-1.5, members="small")
    assert stats.auc(score=score.ravel(), positive=member.ravel()).value < 0.2
    assert abs(advantage(decision, member)) < 0.05


# ---------------------------------------------------------------- from a study


STUDY = {
    "study": "tiny",
    "bootstrap": 100,
    "defaults": {
        "data": {"name": "digits", "size": 200, "test_size": 50},
        "model": {"name": "mlp", "hidden": [16]},
        "recipe": {"epochs": 4, "lr": 0.2, "batch_size": 32},
        "protocol": {"name": "swap", "alpha": 0.25, "pairs": 2, "models_per_split": 1},
        "methods": {"none": {}, "neggrad": {"lr": 0.01, "epochs": 1}},
        "attacks": {"gradient_norm": {}, "confidence": {}},
        "controls": False,
    },
    "scenarios": {"white": {}, "black": {"attacks": ["confidence"]}},
}


def test_scores_are_the_norms_that_came_with_the_logits(workdir):
    whole = plan.make(reading.read(STUDY, "study.yaml"))
    of = {(case.scenario.name, case.method): case for case in whole.cases}
    case, unasked = of["white", "neggrad"], of["black", "neggrad"]
    assert (case.unlearned, case.originals) == (unasked.unlearned, unasked.originals), "models are the same"
    run(whole)
    member, targets = Membership.read(case.splits[0]), np.flatnonzero(~Membership.read(case.splits[0]).shadow)
    models = case.unlearned[0].replace("logits.npz", "models.safetensors")
    (node,) = (node for node in whole.nodes["signals"].values() if node.inputs["models"] == [models])
    norms = read(node.outputs["signals"], len(member.train)).squared_norms
    assert norms.shape == member.train.shape
    for form in ("trained", "unlearned"):
        columns = tables.read_scores(case.scores)["gradient_norm", form]
        of_target = norms[targets[columns["model"]], columns["index"]]
        np.testing.assert_allclose(columns["score"], -0.5 * np.log(of_target))


@pytest.mark.parametrize("attack", ["lira", "rmia"])
def test_an_attack_with_a_model_for_each_sample_is_refused_where_shadow_models_have_other_samples(attack):
    wish = {**STUDY, "defaults": {**STUDY["defaults"], "attacks": [attack]}, "scenarios": {"white": {}}}
    with pytest.raises(ValueError, match=rf"attacks\.{attack}: needs same_samples \(.*\), which the protocol swap"):
        reading.read(wish, "study.yaml")
