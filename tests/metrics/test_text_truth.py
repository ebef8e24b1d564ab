"""Language models whose probabilities are known: the loss and the ratio for each passage find what theory says."""

import numpy as np
import torch
from scipy.special import log_expit, ndtr
from unlearning_audit import stats
from unlearning_audit.metrics import privleak, ruli
from unlearning_audit.models._passage import mean_nll, two_classes
from unlearning_audit.stats import separation
from unlearning_audit.training.bank import Bank

SAMPLES, TARGETS, SHADOWS = 60, 80, 240
#: φ of a passage is normal over models, with this mean more where it was read; so differ the passages themselves.
READ, DIFFICULTY = 2.0, 2.0


class Table(torch.nn.Module):
    """A model of pairs of tokens: of token b after token a, row a of a table."""

    readings, vocabulary, head = ("tokens",), SAMPLES, None

    def __init__(self):
        super().__init__()
        self.logits = torch.nn.Parameter(torch.zeros(SAMPLES, SAMPLES, dtype=torch.float64))

    def forward(self, x, reading=None):
        z = self.logits[x.long()][..., :-1, :]
        return z if reading == "tokens" else two_classes(mean_nll(z, x))


def phi_of_tables(phi: np.ndarray) -> np.ndarray:
    """φ float64 [models, samples], as the bank reads it, of models whose tables make it ``phi``: passage i repeats
    token i, which follows itself with the probability 1/(1 + e^−φ)."""
    x = np.repeat(np.arange(SAMPLES, dtype=np.int32)[:, None], 4, 1)
    models = Bank.create(Table, x, np.zeros(SAMPLES, np.int64), list(range(len(phi))), dtype=torch.float64)
    table = np.repeat((log_expit(-phi) - np.log(SAMPLES - 1))[..., None], SAMPLES, -1)
    table[:, np.arange(SAMPLES), np.arange(SAMPLES)] = log_expit(phi)
    for model, values in enumerate(table):
        models.parameters["logits"][model] = torch.from_numpy(values)
    return np.stack([stats.phi(logits=logits, y=np.zeros(SAMPLES, np.int64)) for logits in models.logits()])


def population(rng, easy: np.ndarray, models: int, left: float) -> ruli.Population:
    """Models that read a random half, all of which they were asked to forget; ``left`` of what was read is left."""
    forget = rng.random((models, SAMPLES)).argsort(1) < SAMPLES // 2
    base = rng.normal(size=(models, SAMPLES)) + easy
    phi = phi_of_tables(base + READ * left * forget)
    return ruli.Population(original=phi, unlearned=phi, retrained=None, train=forget, forget=forget, heldout=~forget)


def test_the_ratio_finds_what_theory_says_and_the_loss_what_difficulty_leaves_of_it():
    rng = np.random.default_rng(0)
    easy = DIFFICULTY * rng.normal(size=SAMPLES)
    for left in (1.0, 0.0):
        targets, shadows = (population(rng, easy, models, left) for models in (TARGETS, SHADOWS))
        test = ruli.score(targets=targets, shadows=shadows, options=ruli.Options(density="pooled"))["ruli", "privacy"]
        sides = {"positive": targets.forget * 1.0, "negative": targets.heldout * 1.0}
        ratio = separation.auc(score=test.score, **sides).value
        loss = separation.auc(score=targets.unlearned, **sides).value
        apart = ~np.eye(SAMPLES, dtype=bool)
        expected = ndtr((left * READ + easy[:, None] - easy)[apart] / np.sqrt(2)).mean()
        # 80 models of 30 against 30: standard errors below .005, and the ratio learns its means from 120 models.
        assert abs(loss.mean() - expected) < 0.02
        assert abs(ratio.mean() - ndtr(left * READ / np.sqrt(2))) < 0.02
        assert (ratio.mean() - loss.mean() > 0.1) == (left > 0)


def test_privleak_of_known_models_is_that_of_their_aucs():
    """−100·(Φ(…) − ½)/½ for models that keep all, 0 for such as read nothing."""
    rng = np.random.default_rng(1)
    easy = np.zeros(SAMPLES)
    blank = population(rng, easy, TARGETS, 0.0)
    groups = {"split": np.arange(TARGETS), "block": np.zeros(TARGETS, int)}
    for left in (1.0, 0.0):
        phi = phi_of_tables(blank.unlearned + rng.normal(0, 1e-3, blank.unlearned.shape) + left * READ * blank.forget)
        score = -np.logaddexp(0, -phi)  # the mean log p, of which Min-K % reads a part: all tokens are alike
        estimate = privleak.leak(score, blank.unlearned, blank.forget, blank.heldout, **groups)
        expected = 100 * ((1 - ndtr(left * READ / np.sqrt(2))) / 0.5 - 1)
        assert abs(estimate.value - expected) < 4
        assert estimate.low <= expected <= estimate.high
