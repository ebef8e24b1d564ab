"""What metrics of language models bring to verdicts adds up to their rows, and tells retraining no more than it may."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.comparisons import distances
from unlearning_audit.metrics import memorisation, multiple_choice, privleak, rouge, truth_ratio, utility

import metric_calls as call
from comparison_cases import membership
from passage_cases import member, two
from row_places import about

SETTINGS = {"metrics": {"privleak": {"share": 0.4}}}


class Case(SimpleNamespace):
    """What these metrics read of a case; every model is a target model."""

    unlearned_files = ("own",)
    compared = None

    def signal(self, name, files, models, rows):
        return self.tokens[models][:, rows]


def of(masks, tokens=None, logits=None, **data):
    return Case(
        membership=masks, target=np.ones(len(masks.seed), bool), tokens=tokens, unlearned=logits,
        data=SimpleNamespace(part=np.zeros(masks.forget.shape[1], np.uint8), y=np.zeros(masks.forget.shape[1], int),
                             group=None, **data),
    )  # fmt: skip


def value_of(rows, metric, setting="role=forget"):
    (value,) = [row.value for row in rows if (row.metric, about(row)) == (metric, setting)]
    return value


@pytest.fixture
def tokens():
    """Log p, mean, sd and rank of five tokens; the first two samples are not asked of anybody."""
    rng = np.random.default_rng(0)
    values = np.stack([-rng.exponential(size=(3, 20, 5)), *np.zeros((2, 3, 20, 5)), rng.integers(0, 3, (3, 20, 5))], -1)
    values[:, 8:] = np.nan
    return values


def test_memorisation_and_min_k_add_up(tokens):
    case = of(member(), tokens)
    (exact,) = call.parts(memorisation, case, SETTINGS).values()
    assert exact.value[0].mean() == pytest.approx(
        value_of(call.rows(memorisation, case, SETTINGS), "exact_memorisation")
    )
    assert exact.index.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(exact.value[0], (tokens[:, :4, :, 3] == 0).mean((1, 2)), atol=1e-12)
    (auc,) = call.parts(privleak, case, SETTINGS).values()
    low = np.sort(tokens[..., 0], -1)[..., :2].mean(-1)
    pairs = (low[:, :4, None] > low[:, None, 4:8]).mean((1, 2))
    np.testing.assert_allclose(auc.value[0], pairs, atol=1e-12)
    assert auc.index.tolist() == list(range(8))
    assert [np.isnan(part.standard.ideal) for part in (exact, auc)] == [True, True]


def test_choices_and_truth_ratio_add_up():
    rng = np.random.default_rng(1)
    wrong = np.full((20, 2), -1)
    wrong[:6] = [[16, 17]]
    case = of(member(), logits=two(-rng.exponential(size=(3, 20))), views=lambda kind: wrong[:, : 2 * (kind[1] == "e")])
    (choice,) = call.parts(multiple_choice, case, SETTINGS).values()
    assert choice.value[0].mean() == pytest.approx(
        value_of(call.rows(multiple_choice, case, SETTINGS), "choice_accuracy")
    )
    (ratio,) = call.parts(truth_ratio, case, SETTINGS).values()
    assert ratio.value[0].mean() == pytest.approx(
        value_of(call.rows(truth_ratio, case, SETTINGS), "truth_ratio_probability")
    )
    assert (choice.standard.direction, ratio.standard.direction) == (1, 1)
    wrong[:4] = -1
    assert call.parts(multiple_choice, case, SETTINGS) == call.parts(truth_ratio, case, SETTINGS) == {}


def test_a_destroyed_model_does_not_read_as_one_that_knows_the_answer():
    """Without knowledge R lies anywhere, so that min(R, 1/R) is as small as where the right answer is certain."""
    rng, wrong = np.random.default_rng(3), np.arange(20, 40)[:, None]
    views, read, near = lambda kind: wrong[:, : kind[1] == "e"], {}, {}
    for name, right in (("knows", -0.1), ("destroyed", rng.normal(-40, 20, (3, 20)))):
        answers = -rng.uniform(10, 20, (3, 20)) if name == "knows" else rng.normal(-40, 20, (3, 20))
        values = np.minimum(np.concatenate([np.broadcast_to(right, (3, 20)), answers], axis=1), -1e-3)
        case = of(member(), logits=two(values), views=views)
        (part,) = call.parts(truth_ratio, case, SETTINGS).values()
        read[name] = part.value[0].mean()
        near[name] = np.nanmean(truth_ratio.closeness(truth_ratio.log_ratio(case.unlearned, wrong, wrong[:, :0])))
    assert abs(near["knows"] - near["destroyed"]) < 0.1
    assert read["knows"] > 0.99
    assert 0.25 < read["destroyed"] < 0.75


def test_rouge_and_utility_add_up(monkeypatch):
    rng = np.random.default_rng(2)
    overlaps = np.stack([rng.random((3, 20))] * 2, -1)
    overlaps[0, 0] = np.nan
    monkeypatch.setattr("unlearning_audit.metrics._answers.overlap", lambda case, files: overlaps)
    wrong = np.roll(np.arange(20), 1)[:, None]
    case = of(member(), logits=two(-rng.exponential(size=(3, 20)) - 0.1), views=lambda kind: wrong[:, : kind[1] == "e"])
    case.generated_files, case.compared_generated_files = ["own"], None
    (part,) = call.parts(rouge, case, SETTINGS).values()
    assert part.value[0] == pytest.approx(np.nanmean(overlaps[:, :4, 0], 1))
    case.data.part = (np.arange(20) >= 16).astype(np.uint8)
    (worth,) = call.parts(utility, case, SETTINGS).values()
    assert worth.value[0].mean() == pytest.approx(value_of(call.rows(utility, case, SETTINGS), "model_utility", ""))
    assert not worth.standard.deciding
    overlaps[0] = 0
    assert call.parts(utility, case, SETTINGS) == {}, "a harmonic mean has no slope at 0"


def world(rng, more: float):
    """Contributions of models whose tokens are guessed with a chance of their sample and model, ``more`` of what was
    forgotten."""
    masks = membership(np.random.default_rng(0), pairs=2, models=3, samples=80, k=40)
    chance = np.clip(world.samples + rng.normal(0, 0.03, (12, 1)) + more * masks.forget, 0, 1)[..., None]
    hit = rng.random((12, 80, 6)) < chance
    logp = np.log(np.clip(chance + 0.1 * rng.standard_normal((12, 80, 6)), 0.01, 1))
    nothing = np.zeros_like(logp)
    case = of(masks, np.stack([logp, nothing, nothing, np.where(hit, 0.0, 1.0)], -1))
    return call.parts(memorisation, case, SETTINGS) | call.parts(privleak, case, SETTINGS)


def test_retraining_is_told_as_seldom_as_promised_and_doing_nothing_always():
    """150 studies of a method that retrains and one that remembers, against retrained models, on common samples."""
    hits, studies = {name: np.zeros(2) for name in ("none", "method")}, 150
    for study in range(studies):
        rng = np.random.default_rng(study)
        world.samples = rng.uniform(0.2, 0.5, (1, 80))
        parts = {name: world(rng, 0.2 * (name == "none")) for name in ("none", "retrain", "method")}
        for name, count in hits.items():
            sides = [distances.against(name, metric, parts) for metric in parts[name]]
            count += [distances.distances_of(side).p_values()[0] <= 0.05 for side in sides]
    # A binomial with .05 of 150: four standard errors are .071.
    assert (hits["method"] / studies <= 0.05 + 0.071).all()
    assert (hits["none"] / studies >= 0.95).all()
