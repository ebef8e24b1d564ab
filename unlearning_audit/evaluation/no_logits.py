"""Recognise arrays that were saved as logits and are probabilities, outputs of a sigmoid or losses, by their values."""

from collections.abc import Callable

import numpy as np

#: The largest number of samples that are examined.
SAMPLES = 2000

#: Rounded or noisy probabilities lie between −SLACK and 1 + SLACK, except for a share OUTSIDE of them.
SLACK, OUTSIDE = 0.1, 0.02

#: Sums over the classes have a smaller standard deviation than this between samples.
CONSTANT = 0.06

#: The mean sum of rounded or shifted probabilities differs from 1 by less than TOTAL, and some model assigns more than
#: SURE.
TOTAL, SURE = 0.25, 0.2

#: The sum of exact probabilities differs from 1 by less than this.
EXACT = 0.01

#: The sum of exp(−loss) over the classes differs from 1 by less than this.
NORMAL = 0.02


def problem(logits: np.ndarray) -> str:
    """Return what the values of some models are instead of logits, as the second half of a sentence; "" if they may be
    logits.

    ``logits`` float [models, samples, classes], finite. A model with constant values is not judged, unless all values
    of all models are exact probabilities.
    """
    step = max(1, logits.shape[1] // SAMPLES)
    models = logits[:, ::step].astype(np.float64)
    varied = (models != models[:, :1]).any(axis=(1, 2))
    total = logits.sum(axis=-1)
    if (logits >= 0).all() and (np.abs(total - 1).max() < EXACT or np.abs(total - 100).max() < 100 * EXACT):
        return f"holds probabilities that sum to {total.mean():.0f}; {SOFTMAX}"
    for wrong, words, advice in CHECKS:
        hit = [number for number, model in enumerate(models) if varied[number] and wrong(model)]
        if hit:
            numbers = ", ".join(map(str, hit[:5])) + (", …" if len(hit) > 5 else "")
            place = "" if len(hit) == len(models) else f" in {len(hit)} of {len(models)} models ({numbers})"
            total = models[hit].sum(axis=-1).mean()
            return f"holds {words.format(total=total)}{place}; {advice}"
    return ""


def _probabilities(model: np.ndarray) -> bool:
    """Return whether values are probabilities: between 0 and 1 with a constant sum, also if a constant was added to
    all."""
    low = max(0.0, model.min())
    return model.max() - low > SURE and _shares(model - low)


def _percent(model: np.ndarray) -> bool:
    """Return whether values are probabilities in per cent."""
    return model.max() > 100 * SURE and _shares(model / 100)


def _shares(model: np.ndarray) -> bool:
    """Return whether values lie near 0 to 1 and their sum over the classes is nearly 1 for all samples."""
    sums, outside = model.sum(axis=-1), (model < -SLACK) | (model > 1 + SLACK)
    near = sums.std() < CONSTANT and abs(sums.mean() - 1) < TOTAL
    return bool(near and outside.mean() <= OUTSIDE and model.min() > -2 * SLACK)


def _sigmoid(model: np.ndarray) -> bool:
    """Return whether all values lie between 0 and 1."""
    return bool(model.min() >= 0 and model.max() <= 1)


def _losses(model: np.ndarray) -> bool:
    """Return whether values are losses of every class, that is, negated logarithms of probabilities."""
    if model.min() < 0:
        return False
    total = np.exp(-model).sum(axis=-1)
    return bool((np.abs(total - 1) < NORMAL).mean() > 1 - OUTSIDE)


SOFTMAX = "give what goes into softmax, or their logarithms"

#: Checks: whether a model's values [samples, classes] are not logits, what they are instead, and what to do.
CHECKS: tuple[tuple[Callable[[np.ndarray], bool], str, str], ...] = (
    (
        _losses,
        "losses, negated logarithms of probabilities",
        "give what goes into softmax, or the logarithms themselves",
    ),
    (_probabilities, "probabilities that sum to {total:.3g}", SOFTMAX),
    (_percent, "probabilities that sum to {total:.3g}", SOFTMAX),
    (_sigmoid, "values between 0 and 1 only, as a sigmoid gives them", "give what goes into it"),
)
