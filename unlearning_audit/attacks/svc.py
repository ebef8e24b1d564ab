"""A support vector classifier on the confidence: the "MIA" of SalUn (Fan et al. 2024) and l1-sparse."""

import numpy as np
from numpy.polynomial import Chebyshev
from pydantic import PositiveFloat, PositiveInt

from unlearning_audit.attacks import Score, Settings, Shadow, signals


class Options(Settings):
    """``c`` of the classifier (RBF kernel, gamma 1 as the published "auto" gives for one feature); ``rows``:
    at most so many members and as many non-members, drawn at random, because its cost grows with their
    square.
    """

    c: PositiveFloat = 3.0
    rows: PositiveInt = 1000


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options, rng: np.random.Generator) -> Score:
    """Return as the score the decision function of a support vector machine that sees the confidence p_y, positive for
    members. The decision is whether the score exceeds 0.

    The published code fits on retain and test samples of the audited model itself. This adversary has only shadow
    models, and takes equally many members and non-members from them.

    Raises ValueError if logits and labels do not fit each other, if the shadow models have other classes than the
    audited models, or if they have no members or no non-members.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits and labels of models with known members, on which the attack learns.
    rng
        What draws the rows to learn from.
    """
    from sklearn.svm import SVC

    examples = signals.statistics(confidence, shadow, classes=logits.shape[-1])
    kinds = [examples.value[examples.member], examples.value[~examples.member]]
    count = min(options.rows, *map(len, kinds))
    drawn = np.concatenate([rng.permutation(kind)[:count] for kind in kinds])  # members first
    model = SVC(C=options.c, gamma=1.0, kernel="rbf").fit(drawn[:, None], np.arange(2 * count) < count)
    # On [0, 1] the decision function is a polynomial of degree 40, to rounding: 41 evaluations instead of one per row.
    distance = Chebyshev.interpolate(lambda p: model.decision_function(p[:, None]), 40, domain=[0, 1])
    value = signals.per_model(lambda z, label: distance(confidence(z, label)), logits, y)
    return value, value > 0


def confidence(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return p_y, the probability of the label, float64 [n]; ``logits`` [n, classes] and ``y`` [n]."""
    return np.asarray(np.exp(signals.label_logp(logits, y)))
