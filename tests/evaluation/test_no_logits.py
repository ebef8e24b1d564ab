"""What is no logits is told from what is, model by model."""

import numpy as np
import pytest
from unlearning_audit.evaluation.no_logits import problem

RNG = np.random.default_rng


def logits(seed=0, models=4, samples=120, classes=10, scale=3.0):
    return scale * RNG(seed).normal(size=(models, samples, classes))


def softmax(of):
    odds = np.exp(of - of.max(-1, keepdims=True))
    return odds / odds.sum(-1, keepdims=True)


def logp(of):
    return of - np.log(np.exp(of).sum(-1, keepdims=True))


NONE = {
    "probabilities": (softmax, "probabilities that sum to"),
    "in percent": (lambda x: 100 * softmax(x), "probabilities that sum to"),
    "rounded to two digits": (lambda x: softmax(x).round(2), "probabilities that sum to"),
    "rounded to three digits": (lambda x: softmax(x).round(3), "probabilities that sum to"),
    "with noise": (lambda x: softmax(x) + 0.005 * RNG(9).normal(size=x.shape), "probabilities that sum to"),
    "with a little added": (lambda x: softmax(x) + 1e-6, "probabilities that sum to"),
    "with more added": (lambda x: softmax(x) + 0.01, "probabilities that sum to"),
    "sigmoids": (lambda x: 1 / (1 + np.exp(-x)), "values between 0 and 1 only, as a sigmoid gives them"),
    "negated logarithms": (lambda x: -logp(x), "losses, negated logarithms of probabilities"),
    "rounded losses": (lambda x: (-logp(x)).round(3), "losses, negated logarithms of probabilities"),
}


@pytest.mark.parametrize("classes", [2, 4, 10, 100])
@pytest.mark.parametrize("name", NONE)
@pytest.mark.parametrize("kind", ["all", "half", "one"])
def test_what_is_none_is_told(name, classes, kind):
    change, words = NONE[name]
    whole = logits(classes=classes)
    number = {"all": 4, "half": 2, "one": 1}[kind]
    whole[:number] = change(whole[:number])
    message = problem(whole.astype(np.float32))
    assert message.startswith(f"holds {words}")
    if kind != "all":
        numbers = ", ".join(map(str, range(number)))
        assert f"in {number} of 4 models ({numbers})" in message


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 10.0, 300.0])
def test_logits_and_logarithms_are_believed(classes, scale):
    for seed in range(10):
        sound = logits(seed, samples=40, classes=classes, scale=scale)
        least = sound - sound.min(-1, keepdims=True)
        for case in (sound, logp(sound), np.maximum(sound, 0) * 3 / scale, least * 3 / scale, sound + 7, sound - 7):
            assert problem(case.astype(np.float32)) == ""
