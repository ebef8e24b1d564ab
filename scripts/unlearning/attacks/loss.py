"""A logistic regression on the cross-entropy: the attack of the unlearning challenge's starting kit."""

import numpy as np
from pydantic import Field

from unlearning.adversary import logistic, signals
from unlearning.plugins.settings import Settings


class Options(Settings):
    """``ridge``: the penalty on the slope for standardised losses, 1/C of scikit-learn."""

    ridge: float = Field(1.0, ge=0)


def score(logits, y, reference, options, rng):
    """Score: the log-odds of membership at equal priors, fitted on the reference's losses; decision: above 0.

    The starting kit fits the same classifier within one model, forget against test: ``shuffled_accuracy``.
    """
    rows = signals.known(cross_entropy, reference, classes=logits.shape[-1])
    model = logistic.fit(rows.value[:, None], rows.member, ridge=options.ridge)
    value = model.log_odds(signals.per_model(cross_entropy, logits, y)[..., None])
    return value, value > 0


def cross_entropy(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """−log p_y in nats, float64 [n]; no clipping, so it keeps growing where p_y rounds to 0."""
    return -signals.of_label(signals.log_probabilities(logits), y)


def shuffled_accuracy(
    member: np.ndarray,
    nonmember: np.ndarray,
    *,
    rng: np.random.Generator,
    shuffles: int = 10,
    held: float = 0.1,
) -> np.ndarray:
    """Accuracy of the classifier on held-out losses, float64 [shuffles]: the starting kit's "MIA accuracy".

    ``member`` and ``nonmember`` float64 [n] each are losses of one model (forget and test samples). The
    larger side is cut to the size of the smaller at random; each shuffle holds back the fraction ``held`` of
    both sides alike, fits on the rest and reads the accuracy. Raises ValueError with fewer than two losses on
    a side.
    """
    n = min(len(member), len(nonmember))
    if n < 2:
        raise ValueError(f"the loss attack needs two losses on each side, not {len(member)} and {len(nonmember)}")
    sides = [rng.permutation(side)[:n] for side in (member, nonmember)]
    test = min(max(1, round(held * n)), n - 1)
    accuracy = np.empty(shuffles)
    for i in range(shuffles):
        in_, out = (rng.permutation(side) for side in sides)
        train = np.concatenate([in_[test:], out[test:]])[:, None]
        model = logistic.fit(train, np.arange(len(train)) < n - test)
        hits = (model.log_odds(in_[:test, None]) > 0).sum() + (model.log_odds(out[:test, None]) <= 0).sum()
        accuracy[i] = hits / (2 * test)
    return accuracy
