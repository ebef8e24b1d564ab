"""What metrics of language models bring to verdicts, and how often it tells retraining and doing nothing."""

from types import SimpleNamespace

import numpy as np
from unlearning_audit.metrics import truth_ratio

import metric_calls as call
from passage_cases import member, two


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


def test_a_destroyed_model_does_not_read_as_one_that_knows_the_answer():
    """Without knowledge R lies anywhere, so that min(R, 1/R) is as small as where the right answer is certain."""
    rng, wrong, read, near = np.random.default_rng(3), np.arange(20, 40)[:, None], [], []
    for right, answers in ((np.full((3, 20), -0.1), -rng.uniform(10, 20, (3, 20))), rng.normal(-40, 20, (2, 3, 20))):
        evaluation = of(member(), logits=two(np.minimum(np.concatenate([right, answers], axis=1), -1e-3)), wrong=wrong)
        (effect,) = call.parts(truth_ratio, evaluation, {"metrics": {"privleak": {"share": 0.4}}}).values()
        read.append(effect.value[0].mean())
        ratio = truth_ratio.log_ratio(evaluation.unlearned, wrong, wrong[:, :0])
        near.append(np.nanmean(truth_ratio.by_metric(ratio)["truth_ratio"]))
    assert abs(near[0] - near[1]) < 0.1
    assert read[0] > 0.99 > 0.75 > read[1] > 0.25
