"""Finds arrays that were saved as logits and are probabilities, outputs of a sigmoid or losses, by their values."""

from collections.abc import Callable

import numpy as np

#: Samples by which numbers are judged, at most.
SAMPLES = 2000

#: Probabilities, rounded or with noise, lie between 0 and 1 but for so much, and so do all but this share of them.
SLACK, OUTSIDE = 0.1, 0.02

#: Sums over the classes vary from sample to sample by less than this, as standard deviation.
CONSTANT = 0.06

#: Where every probability was rounded, or something was added to it, their sum is 1 but for so much; and some model is
#: that sure of something.
TOTAL, SURE = 0.25, 0.2

#: Exact probabilities sum to 1 but for so much, and but for so much as they were computed.
EXACT, SHARP = 0.01, 1e-5

#: Differences between classes need so many digits; probabilities in more than this share of samples are reported.
DIGITS, SHARE = 1e-3, 0.01

#: Logits of a sample that are no further apart than this say next to nothing; those so far apart nothing but 0 and 1.
FLAT, STEEP = 2.0, 1000.0

#: Logarithms of probabilities sum to 1, as probabilities, but for so much.
NORMAL = 0.02


def problem(logits: np.ndarray) -> str:
    """What the values of some models are instead of logits, in the second half of a sentence; "" if they may be logits.

    ``logits`` float [models, samples, classes], finite. A model that says the same of every sample is not judged,
    unless all answers of all models are exact probabilities.
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
    return _some_probabilities(logits) or _lost_digits(logits)


def strange(logits: np.ndarray) -> str:
    """What is strange about the values of some models, in the second half of a sentence, though they may be logits; ""
    if nothing is. ``logits`` float [models, samples, classes]; what says the same of every sample is not judged."""
    models = logits.astype(np.float64)
    models = models[(models != models[:, :1]).any(axis=(1, 2))]
    if not models.size:
        return ""
    spread, least = np.ptp(models, axis=-1), models.min(axis=-1)
    if spread.max() <= FLAT + SHARP:
        return (
            f"has no sample whose logits are further apart than {spread.max():.2g}, so that its models are sure of "
            "nothing: are these probabilities minus something, or answers of a sigmoid or of tanh?"
        )
    if np.median(spread) > STEEP:
        return (
            f"has logits that are {np.median(spread):.2g} apart, so that every probability is 0 or 1: were they "
            "multiplied, or did what made them diverge?"
        )
    tenths = models * 10
    if (np.abs(tenths - tenths.round()) < DIGITS).all():
        return "has logits with one digit after the point at most: were they rounded?"
    if least.min() >= 0 and np.median(least) < 1:
        return (
            "has no value below 0: are these odds, or what is left of logits after a ReLU or for the best class alone?"
        )
    return ""


def _lost_digits(logits: np.ndarray) -> str:
    """In the second half of a sentence, whether large numbers in 32 bits have left their differences no digits."""
    step = max(1, logits.shape[1] // SAMPLES)
    subset = logits[:, ::step].astype(np.float32)
    gaps = np.spacing(np.abs(subset).max(axis=-1)), np.ptp(subset, axis=-1)
    distance, spread = (np.median(of, axis=1) for of in gaps)
    if not ((distance > DIGITS * spread) & (spread > 0)).any():
        return ""
    return (
        f"holds values as large as {np.abs(subset).max():.2g} in 32 bits, where neighbours are {distance.max():.2g} "
        "apart, so that differences between classes have lost their digits; subtract each sample's largest value "
        "before numbers are made short"
    )


def _some_probabilities(logits: np.ndarray) -> str:
    """In the second half of a sentence, whether some samples of a model have exact probabilities, and others have not.

    Three positive numbers and more have that sum by chance once in many thousands; of two it is not so rare.
    """
    if logits.shape[2] < 3:
        return ""
    exact = (np.abs(logits.sum(axis=-1, dtype=np.float64) - 1) < SHARP) & (logits > 0).all(axis=-1)
    exact &= np.ptp(logits, axis=-1) > 0  # a model that is sure of nothing at all
    share = exact.mean(axis=1)
    if not (share > SHARE).any():
        return ""
    model = int(share.argmax())
    return f"holds probabilities in {exact[model].sum()} of {exact.shape[1]} samples of model {model}; {SOFTMAX}"


def _probabilities(model: np.ndarray) -> bool:
    """Between 0 and 1, and of one sum for all samples: also with something added to each."""
    low = max(0.0, model.min())
    return model.max() - low > SURE and _shares(model - low)


def _percent(model: np.ndarray) -> bool:
    return model.max() > 100 * SURE and _shares(model / 100)


def _shares(model: np.ndarray) -> bool:
    sums, outside = model.sum(axis=-1), (model < -SLACK) | (model > 1 + SLACK)
    near = sums.std() < CONSTANT and abs(sums.mean() - 1) < TOTAL
    return bool(near and outside.mean() <= OUTSIDE and model.min() > -2 * SLACK)


def _sigmoid(model: np.ndarray) -> bool:
    return model.min() >= 0 and model.max() <= 1


def _losses(model: np.ndarray) -> bool:
    """Losses of every class, which are the negated logarithms of probabilities."""
    if model.min() < 0:
        return False
    total = np.exp(-model).sum(axis=-1)
    return bool((np.abs(total - 1) < NORMAL).mean() > 1 - OUTSIDE)


SOFTMAX = "give what goes into softmax, or their logarithms"

#: Whether a model's values [samples, classes] are no logits, what they are then, and what to do.
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
