"""Mean, median and spread of each sample over the members or non-members, with or without the audited model itself."""

import numpy as np


def require_models(mask: np.ndarray, *, minimum: int, side: str, leave_out: bool = False) -> None:
    """Raise ValueError if a sample has too few models.

    Parameters
    ----------
    mask
        bool [models, samples]: the models of each sample.
    minimum
        How many models a sample needs.
    side
        What the message calls the models in the mask, such as "members".
    leave_out
        Whether each model of the mask is compared with the others only, so that one fewer counts.
    """
    count = mask.sum(axis=0) - (mask.any(axis=0) if leave_out else 0)
    if (count < minimum).any():
        worst, other = int(count.argmin()), "other " if leave_out else ""
        raise ValueError(
            f"sample {worst} has {count[worst]} {other}shadow models as {side}, {(count < minimum).sum()} samples have "
            f"fewer than {minimum}: train more shadow models or score only samples that the shadow models cover"
        )


def mean(x: np.ndarray, mask: np.ndarray, *, leave_out: bool = False) -> np.ndarray:
    """Return the mean of each sample over some of the models, float64 [1, samples]; NaN where there is no model.

    Parameters
    ----------
    x
        float64 [models, samples]: the values.
    mask
        bool [models, samples]: the models over which the mean is taken.
    leave_out
        If true, the result is [models, samples], and row m leaves out model m.
    """
    count = mask.sum(axis=0)
    centre = np.where(mask, x, 0.0).sum(axis=0) / count
    if not leave_out:
        return np.asarray(centre[None])
    # Without a value x, the mean of n values moves by −(x − mean) / (n − 1); models outside of the mask move nothing.
    return np.asarray(centre - np.where(mask, x - centre, 0.0) / (count - mask))


def median(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the median of ``x`` float64 [models, samples] over the models in ``mask`` bool [models, samples], float64
    [1, samples]; inf where there is no model."""
    ordered = np.sort(np.where(mask, x, np.inf), axis=0)  # models outside of the mask come last
    count = mask.sum(axis=0)[None]
    low, high = (np.take_along_axis(ordered, rank, axis=0) for rank in ((count - 1) // 2, count // 2))
    return np.asarray(0.5 * (low + high))


def squared_deviations(x: np.ndarray, mask: np.ndarray, *, leave_out: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of squared deviations of the values of some models from each sample's mean, and the number of
    these models; both [1, samples].

    Parameters
    ----------
    x
        float64 [models, samples]: the values.
    mask
        bool [models, samples]: the models that count.
    leave_out
        If true, both results are [models, samples], and row m leaves out model m.
    """
    count, centre = mask.sum(axis=0), mean(x, mask)
    deviation = np.where(mask, x - centre, 0.0)
    total = (deviation**2).sum(axis=0)
    if not leave_out:
        return total[None], count[None]
    fewer = count - mask
    # Without a value that deviates by d from the mean of n, the sum of squares is smaller by d² n / (n − 1).
    return np.maximum(total - deviation**2 * count / np.maximum(fewer, 1), 0.0), fewer


def spread(x: np.ndarray, mask: np.ndarray, *, kind: str, leave_out: bool = False) -> np.ndarray:
    """Return the standard deviation (divisor n) of values over some of the models, in a shape that can be broadcast to
    [1, samples]; NaN where no value counts.

    Parameters
    ----------
    x
        float64 [models, samples]: the values.
    mask
        bool [models, samples]: the models that count.
    kind
        "per_sample", around each sample's mean; "within", these deviations pooled over all samples; "global", of all
        values around one mean, as the published code computes it.
    leave_out
        If true, the result can be broadcast to [models, samples], and row m leaves out model m.
    """
    if kind == "global":
        deviation = np.where(mask, x - x[mask].mean(), 0.0)
        # For each model, the number of its values, and the sums of their deviations and squared deviations.
        by_model = [mask.sum(axis=1), deviation.sum(axis=1), (deviation**2).sum(axis=1)]
        # The same of all models together, [1], or with ``leave_out`` of all others, for each model, [models].
        n, total, squared = (of.sum() - of if leave_out else of.sum(keepdims=True) for of in by_model)
        return np.asarray(np.sqrt(np.maximum(squared / n - (total / n) ** 2, 0.0))[:, None])
    total, count = squared_deviations(x, mask, leave_out=leave_out)
    if kind == "within":
        total, count = total.sum(axis=1, keepdims=True), count.sum(axis=1, keepdims=True)
    return np.asarray(np.sqrt(total / count))
