"""What metrics of language models bring to verdicts, and how often it tells retraining and doing nothing."""

from types import SimpleNamespace

import numpy as np
from unlearning_audit.comparisons import distances
from unlearning_audit.metrics import memorisation, privleak, truth_ratio

import metric_calls as call
from comparison_cases import membership
from passage_cases import member, two
from stat_cases import at_least, at_most

SETTINGS = {"metrics": {"privleak": {"share": 0.4}}}


class Case(SimpleNamespace):
    """What these metrics read of a case; every model is a target model."""

    unlearned_files, compared = ("own",), None

    def signal(self, name, files, models, rows):
        return self.tokens[models][:, rows]


def of(masks, tokens=None, logits=None, wrong=None):
    """``wrong`` int [samples, answers]: the wrong answers of each sample."""
    data = SimpleNamespace(part=np.zeros(masks.forget.shape[1], np.uint8), y=np.zeros(masks.forget.shape[1], int),
                           group=None)  # fmt: skip
    data.views = lambda kind: wrong[:, : wrong.shape[1] * (kind[1] == "e")]
    return Case(membership=masks, target=np.ones(len(masks.seed), bool), tokens=tokens, unlearned=logits, data=data)


def effect(metric, case):
    (part,) = call.parts(metric, case, SETTINGS).values()
    return part


def test_a_destroyed_model_does_not_read_as_one_that_knows_the_answer():
    """Without knowledge R lies anywhere, so that min(R, 1/R) is as small as where the right answer is certain."""
    rng, wrong, read, near = np.random.default_rng(3), np.arange(20, 40)[:, None], [], []
    for right, answers in ((np.full((3, 20), -0.1), -rng.uniform(10, 20, (3, 20))), rng.normal(-40, 20, (2, 3, 20))):
        case = of(member(), logits=two(np.minimum(np.concatenate([right, answers], axis=1), -1e-3)), wrong=wrong)
        read.append(effect(truth_ratio, case).value[0].mean())
        near.append(np.nanmean(truth_ratio.closeness(truth_ratio.log_ratio(case.unlearned, wrong, wrong[:, :0]))))
    assert abs(near[0] - near[1]) < 0.1
    assert read[0] > 0.99 > 0.75 > read[1] > 0.25


def world(rng, samples, more: float):
    """Effects of models whose tokens are guessed with a chance of their sample and model, ``more`` of what was
    forgotten."""
    masks = membership(np.random.default_rng(0), pairs=2, models=3, samples=80, k=40)
    chance = np.clip(samples + rng.normal(0, 0.03, (12, 1)) + more * masks.forget, 0, 1)[..., None]
    hit = rng.random((12, 80, 6)) < chance
    logp = np.log(np.clip(chance + 0.1 * rng.standard_normal((12, 80, 6)), 0.01, 1))
    case = of(masks, np.stack([logp, 0 * logp, 0 * logp, np.where(hit, 0.0, 1.0)], -1))
    return call.parts(memorisation, case, SETTINGS) | call.parts(privleak, case, SETTINGS)


def test_retraining_is_told_as_seldom_as_promised_and_doing_nothing_always():
    """Studies of a method that retrains and one that remembers, against retrained models, on common samples."""
    hits, studies = {name: np.zeros(2) for name in ("none", "method")}, 100
    for study in range(studies):
        rng = np.random.default_rng(study)
        samples = rng.uniform(0.2, 0.5, (1, 80))
        parts = {name: world(rng, samples, 0.2 * (name == "none")) for name in ("none", "retrain", "method")}
        for name, count in hits.items():
            sides = [distances.against(name, metric, parts) for metric in parts[name]]
            count += [distances.distances_of(side).p_values()[0] <= 0.05 for side in sides]
    assert (hits["method"] / studies <= at_most(0.05, studies)).all()
    assert (hits["none"] / studies >= at_least(0.95, studies)).all()
