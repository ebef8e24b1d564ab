"""Recognise arrays that were saved as logits and are probabilities, outputs of a sigmoid or losses, by their values."""

import numpy as np

#: About how many samples are examined, always fewer than twice as many.
SAMPLES = 2000

#: Rounded or noisy probabilities lie between −SLACK and 1 + SLACK, except for a share OUTSIDE of them.
SLACK, OUTSIDE = 0.1, 0.02

#: Sums over the classes have a smaller standard deviation than this between samples.
CONSTANT = 0.06

#: The mean sum of rounded or shifted probabilities differs from 1 by less than TOTAL, and the largest of them exceeds
#: the smallest by more than SURE.
TOTAL, SURE = 0.25, 0.2

#: The sum of exact probabilities differs from 1 by less than this.
EXACT = 0.01

#: The sum of exp(−loss) over the classes differs from 1 by less than this.
NORMAL = 0.02


#: What to give in place of probabilities.
SOFTMAX = "give what goes into softmax, or their logarithms"


def problem(logits: np.ndarray) -> str:
    """Return what the values of some models are instead of logits, as the second half of a sentence; "" if they may be
    logits.

    ``logits`` float [models, samples, classes], finite. If all values of all models are exact probabilities, or per
    cent, the sentence is about all models. If they are not, models are judged one by one, on about `SAMPLES` evenly
    spaced samples, and a model that gives all samples the same values is not judged.
    """
    step = max(1, logits.shape[1] // SAMPLES)
    models = logits[:, ::step].astype(np.float64)
    total = logits.sum(axis=-1)
    if (logits >= 0).all() and (np.abs(total - 1).max() < EXACT or np.abs(total - 100).max() < 100 * EXACT):
        return f"holds probabilities that sum to {total.mean():.0f}; {SOFTMAX}"
    instead = {number: _instead(model) for number, model in enumerate(models) if (model != model[:1]).any()}
    wrong = {number: sentence for number, sentence in instead.items() if sentence}
    if not wrong:
        return ""
    example = next(iter(wrong))
    place = "" if len(wrong) == len(models) else f" in {len(wrong)} of {len(models)} models, such as {example}"
    return "holds " + wrong[example].format(total=models[example].sum(axis=-1).mean(), place=place)


def _instead(values: np.ndarray) -> str:
    """Return what the ``values`` [samples, classes] of a model are instead of logits, and what to give; "" if they may
    be logits. In the text, {total} stands for the mean sum over classes, and {place} for the models."""
    low, high = max(0.0, values.min()), values.max()
    # If values are losses, −log p of each class, the sum of exp(−loss) is 1.
    like_losses = np.abs(np.exp(-np.maximum(values, 0)).sum(axis=-1) - 1) < NORMAL
    if values.min() >= 0 and like_losses.mean() > 1 - OUTSIDE:
        return "losses, negated logarithms of probabilities{place}; give what goes into softmax, or the logarithms"
    # Probabilities, also in per cent, or with a constant added to all: the smallest of many is about 0, so that the
    # least value is that constant.
    probabilities = high - low > SURE and _sum_to_one(values - low)
    if probabilities or (high > 100 * SURE and _sum_to_one(values / 100)):
        return f"probabilities that sum to {{total:.3g}}{{place}}; {SOFTMAX}"
    if values.min() >= 0 and high <= 1:
        return "values between 0 and 1 only, as a sigmoid gives them{place}; give what goes into it"
    return ""


def _sum_to_one(values: np.ndarray) -> bool:
    """Return whether values [samples, classes] are nearly probabilities: sums over the classes are nearly 1, and all
    but the share `OUTSIDE` of the values lie between −`SLACK` and 1 + `SLACK`, the smallest above −2 · `SLACK`."""
    sums, outside = values.sum(axis=-1), (values < -SLACK) | (values > 1 + SLACK)
    nearly_one = sums.std() < CONSTANT and abs(sums.mean() - 1) < TOTAL
    return bool(nearly_one and outside.mean() <= OUTSIDE and values.min() > -2 * SLACK)
