"""Simulated unlearning sample inference games whose truth is known in closed form."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from scipy.special import ndtr
from unlearning_audit.metrics import _game
from unlearning_audit.stats import crossed as _crossed


def layout(rng, *, samples, pairs, k, models, swapped=True):
    """Membership of pairs of splits: forget and heldout bool [models, samples], split and block int64 [models]."""
    rows = []
    for block in range(pairs):
        order = rng.permutation(samples)
        second_order = order if swapped else rng.permutation(samples)
        sides = [(order[:k], order[k : 2 * k]), (second_order[k : 2 * k], second_order[:k])]
        rows += [(f, t, split, block) for split, (f, t) in enumerate(sides) for _ in range(models)]
    forget, heldout = (np.zeros((len(rows), samples), bool) for _ in range(2))
    for m, (f, t, _, _) in enumerate(rows):
        forget[m, f] = heldout[m, t] = True
    split, block = (np.array([row[i] for row in rows], dtype=np.int64) for i in (2, 3))
    return {"forget": forget, "heldout": heldout, "split": split, "block": block}


def rules_of(*, weight=None, **masks):
    return _game.of_models(SimpleNamespace(weight=weight, **masks))


@dataclass(frozen=True)
class World:
    """Gaussian scores of several attacks: each sample and each model shifts them and leaks to its own degree.

    score = sample + model + noise + forgotten · (leak + leak of the sample + leak of the model). All but ``leak``
    are standard deviations; the random parts of different attacks correlate by ``common``. An attack decides
    "forgotten" above its ``cut``.
    """

    leak: tuple[float, ...]
    cut: tuple[float, ...]
    sample: float = 1.0
    sample_leak: float = 0.3
    model: float = 0.3
    model_leak: float = 0.2
    noise: float = 0.7
    common: float = 0.7

    def scores(self, rng, forget):
        """One score matrix per attack, float64 [models, samples], for memberships ``forget``."""
        models, samples = forget.shape

        def draw(spread, *shape):
            shared = np.sqrt(self.common) * rng.standard_normal(shape)
            individual = np.sqrt(1 - self.common) * rng.standard_normal((len(self.leak), *shape))
            return spread * (shared + individual)

        base = draw(self.sample, 1, samples) + draw(self.model, models, 1) + draw(self.noise, models, samples)
        effect = draw(self.sample_leak, 1, samples) + draw(self.model_leak, models, 1)
        return base + forget * (np.array(self.leak)[:, None, None] + effect)

    def decisions(self, scores):
        """A(m, x) of each attack."""
        return [score > cut for score, cut in zip(scores, self.cut, strict=True)]

    @property
    def advantage(self):
        """Signed advantage of each attack, over all samples and models."""
        out = np.sqrt(self.sample**2 + self.model**2 + self.noise**2)
        forgotten = np.sqrt(out**2 + self.sample_leak**2 + self.model_leak**2)
        leak, cut = np.array(self.leak), np.array(self.cut)
        return ndtr((leak - cut) / forgotten) - ndtr(-cut / out)

    @property
    def auc(self):
        """AUC within one model, over all samples and models; the shift of a model cancels."""
        spread = 2 * (self.sample**2 + self.noise**2) + self.sample_leak**2 + self.model_leak**2
        return ndtr(np.array(self.leak) / np.sqrt(spread))


def read(rules, decisions, block=None):
    """Joint reading of the advantages of several adversaries, over all splits or those of one block."""
    crossed = _crossed.combine([_game.advantage(rules, d) for d in decisions], split=rules.split)
    return _crossed.weighted_mean(crossed, share=_game.share(rules, block))


def signed_advantage(rules, decision):
    """Mean over splits of the mean over models of one adversary's advantage; its absolute value is Adv̄."""
    return float(read(rules, [decision]).value[0])
