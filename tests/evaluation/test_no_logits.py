"""What is no logits is told from what is, model by model."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax
from unlearning_audit.evaluation.no_logits import problem

RNG = np.random.default_rng
PROBABILITIES, LOSSES = "probabilities that sum to", "losses, negated logarithms of probabilities"
NONE = {
    "probabilities": (lambda x: softmax(x, -1), PROBABILITIES),
    "in percent": (lambda x: 100 * softmax(x, -1), PROBABILITIES),
    "rounded to two digits": (lambda x: softmax(x, -1).round(2), PROBABILITIES),
    "with noise": (lambda x: softmax(x, -1) + 0.005 * RNG(9).normal(size=x.shape), PROBABILITIES),
    "with a constant added": (lambda x: softmax(x, -1) + 0.01, PROBABILITIES),
    "sigmoids": (expit, "values between 0 and 1 only, as a sigmoid gives them"),
    "negated logarithms": (lambda x: -log_softmax(x, -1), LOSSES),
    "rounded losses": (lambda x: -log_softmax(x, -1).round(3), LOSSES),
}


@pytest.mark.parametrize("classes", [2, 4, 10, 100])
@pytest.mark.parametrize("name", NONE)
@pytest.mark.parametrize("wrong", [4, 2, 1])
def test_what_is_none_is_told(name, classes, wrong):
    change, words = NONE[name]
    whole = 3 * RNG(0).normal(size=(4, 120, classes))
    whole[:wrong] = change(whole[:wrong])
    message = problem(whole.astype(np.float32))
    assert message.startswith(f"holds {words}")
    assert wrong == 4 or f"in {wrong} of 4 models, such as 0" in message


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 10.0, 300.0])
def test_logits_and_logarithms_are_believed(classes, scale):
    for seed in range(10):
        sound = scale * RNG(seed).normal(size=(4, 40, classes))
        least = sound - sound.min(-1, keepdims=True)
        logp = log_softmax(sound, -1)
        for case in (sound, logp, np.maximum(sound, 0) * 3 / scale, least * 3 / scale, sound + 7, sound - 7):
            assert problem(case.astype(np.float32)) == ""
