"""Tail advantage: the share of forgotten samples above a high quantile of held-out scores, minus the share expected by
chance."""

import numpy as np

from unlearning_audit.stats import crossed
from unlearning_audit.stats.shapes import Matrix

#: The share of held-out samples above the threshold.
SHARE = 0.01

#: Equivalence must exclude so large a share of forgotten samples that are fully remembered.
REMEMBERED = 0.03


def advantage(*, score: Matrix, forget: Matrix, heldout: Matrix, share: float = SHARE) -> crossed.PerModel:
    """Return the share of forgotten samples above the (1 − ``share``) quantile of held-out scores, minus ``share``, for
    each model.

    Value: the i-th largest of n held-out scores is exceeded by an exchangeable score with probability i/(n + 1). So the
    result interpolates between the two ranks nearest to i = ``share``·(n + 1), the largest score and infinity included.
    A score that equals e held-out ones takes each of the e + 1 ranks among them with the same probability. So the mean
    is exactly 0 where the forgotten samples are a random draw, for any number of held-out samples and any ties.

    Influence: a forgotten sample adds to the share of forgotten samples above the threshold. A held-out sample adds to
    the share of held-out samples above it, times the slope of the ROC curve there. The slope is the mean over models,
    because that of one model rests on few samples. The slope is taken as at least 1, the slope under a random draw. So
    a sample that is forgotten in one split and held out in the other has two influences that partly cancel.

    Imaginary samples: if forgotten or held-out samples vary less than under a random draw (`variance_by_chance`), an
    imaginary sample has the rest of the variance. Few or no samples above the threshold hardly show how many there
    might have been.

    Parameters
    ----------
    score : float [models, samples]
        Scores, larger for samples that look more familiar, without NaN where a sample is forgotten or held out.
    forget, heldout : float64 [models, samples]
        The weights of forgotten and of held-out samples, 0 elsewhere. All positive weights of ``heldout`` count
        equally.
    share : float
        The share of held-out samples above the threshold.

    Returns
    -------
    PerModel
    """
    score = np.asarray(score, dtype=np.float64)
    value, slopes, imagined = np.empty(len(score)), np.empty(len(score)), np.empty((len(score), 2))
    of_forgotten, of_heldout = np.zeros((2, *score.shape))  # influences
    for model, (values, weight, unseen) in enumerate(zip(score, forget, heldout > 0, strict=True)):
        count = int(unseen.sum())
        weight = weight / weight.sum()
        higher_equal = _higher_and_equal(values, np.sort(values[unseen]))
        # The probability that each score lies above the threshold. Ties, and a rank between two ranks, are decided by
        # chance.
        above = _probability_above(*higher_equal, share * (count + 1), more=1)
        value[model] = weight @ above - share
        # The slope of the ROC curve at the threshold, over the range in which the share varies by chance.
        spread = np.sqrt(share * (1 - share) / count)
        limits = left, right = max(share - spread, 0.0), min(share + spread, 1.0)
        low, high = (weight @ _probability_above(*higher_equal, limit * (count + 1), more=1) for limit in limits)
        slopes[model] = (high - low) / (right - left)
        of_forgotten[model] = weight * (above - weight @ above)
        above_others = _probability_above(*higher_equal, share * count, more=0)  # for a held-out score among its like
        of_heldout[model] = np.where(unseen, above_others - share, 0.0) / count
        variance, shared = variance_by_chance(heldout=count, share=share)
        # The least variances over forgotten and over held-out samples; imaginary samples have what is missing.
        least = (variance - shared) * (weight @ weight), shared
        influences = of_forgotten[model], of_heldout[model]
        imagined[model] = [max(floor - moved @ moved, 0.0) for floor, moved in zip(least, influences, strict=True)]
    slope = max(slopes.mean(), 1.0)
    return crossed.PerModel(value, of_forgotten - slope * of_heldout, np.sqrt(imagined) * (1.0, slope))


def variance_by_chance(*, heldout: int, share: float) -> tuple[float, float]:
    """Return the variance, under a random draw, of what one forgotten sample adds to the share above the threshold, and
    the covariance of what two forgotten samples add.

    The i-th largest of n scores is exceeded by one further score with probability i/(n + 1), and by two further scores
    with probability i·(i + 1)/((n + 1)·(n + 2)). Of two further scores, the first exceeds the i-th and the second the
    (i + 1)-th largest with probability i·(i + 2)/((n + 1)·(n + 2)).

    Parameters
    ----------
    heldout
        The number n of held-out samples.
    share
        The share of held-out samples above the threshold.
    """
    rank = share * (heldout + 1)
    low = int(rank)
    up = rank - low  # what a sample adds is the mean over ranks ``low`` (weight 1 − up) and ``low`` + 1 (weight up)
    # The mean of the square of what one sample adds, and, times (n + 1)·(n + 2), of the product of what two add.
    square = (low + up**2) / (heldout + 1)
    both = (1 - up) ** 2 * low * (low + 1) + 2 * up * (1 - up) * low * (low + 2) + up**2 * (low + 1) * (low + 2)
    return square - share**2, both / ((heldout + 1) * (heldout + 2)) - share**2


def _higher_and_equal(values: np.ndarray, ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many of the ``ordered`` scores are above each of ``values``, and how many equal it, int64 [values]
    each.

    Parameters
    ----------
    ordered
        float64 [n]: scores in rising order.
    """
    left, right = (np.searchsorted(ordered, values, side=end) for end in ("left", "right"))
    return len(ordered) - right, right - left


def _probability_above(higher: np.ndarray, equal: np.ndarray, rank: float, more: int) -> np.ndarray:
    """Return the probability that each value is among the ``rank`` largest scores, where ties are decided at random.

    Parameters
    ----------
    higher, equal
        int64 [values]: how many scores are above each value, and how many equal it.
    rank
        How many scores count as the largest. If it is not whole, the result interpolates between the two nearest ranks.
    more
        1 if the value itself is not one of the scores, 0 if it is.
    """
    low, ties = int(rank), np.maximum(equal + more, 1)
    p_low, p_high = (np.minimum(np.maximum((whole - higher) / ties, 0.0), 1.0) for whole in (low, low + 1))
    return np.asarray((1 - (rank - low)) * p_low + (rank - low) * p_high)
