"""Accuracy, AUC and TPR at small FPR of a membership test on many target models and samples."""

from dataclasses import dataclass, replace

import numpy as np

from unlearning_audit import stats
from unlearning_audit.stats import crossed, separation
from unlearning_audit.stats.shapes import Bool, Float, Int, Mask, Matrix


@dataclass(frozen=True)
class MembershipTest:
    """A membership test on all target models.

    Parameters
    ----------
    score
        float64 [targets, samples]: a log-likelihood ratio or log-odds; the test calls a sample positive if it is above
        0.
    positive, negative
        bool [targets, samples]: the samples of either kind, such as members and non-members.
    missing
        Why the test could not be run, or "".
    unit
        int [targets]: the pair of splits of each target, if intervals are to hold for other pairs too.
    """

    score: Float[np.ndarray, "targets samples"]
    positive: Bool[np.ndarray, "targets samples"]
    negative: Bool[np.ndarray, "targets samples"]
    missing: str = ""
    unit: Int[np.ndarray, "targets"] | None = None


def readings(test: MembershipTest, *, fpr: tuple[float, ...]) -> dict[str, stats.Estimate]:
    """Return ``accuracy``, ``auc`` and ``tpr_at_…pct_fpr`` of a test, by name: means over targets, or NaN with the
    reason.

    Targets without positive or without negative samples are left out. ``accuracy`` is ½(TPR + TNR) of the test's own
    decisions, whether a score is above 0.

    Parameters
    ----------
    fpr
        The false positive rates, between 0 and 1.
    """
    usable, n = _usable_targets(test), _samples_used(test)
    tpr = {tpr_name(rate): estimate for rate, estimate in tprs(test, fpr=fpr).items()}
    if isinstance(usable, str):  # the reason why there is no usable target
        return dict.fromkeys(("accuracy", "auc"), stats.empty(n=n, note=usable)) | tpr
    score, positive, negative, unit = usable
    accuracy = balanced_accuracy(score > 0, positive, negative)
    auc = separation.auc(score=score, positive=positive, negative=negative)
    return dict(zip(("accuracy", "auc"), _over_models([accuracy, auc], n, unit), strict=True)) | tpr


def tprs(test: MembershipTest, *, fpr: tuple[float, ...]) -> dict[float, stats.Estimate]:
    """Return the TPR of a test at each ``fpr``, by FPR: the mean over targets, or NaN with the reason.

    Targets without positive or without negative samples are left out. If one target cannot resolve an FPR but all
    together can, one threshold is used for all of them (by `tpr_at`). The lower limit is reduced by the optimism of the
    TPR (`Tpr.corrected`).
    """
    usable = _usable_targets(test)
    if isinstance(usable, str):  # the reason why there is no usable target
        return dict.fromkeys(fpr, stats.empty(n=_samples_used(test), note=usable))
    score, positive, negative, unit = usable
    estimates, n = {}, _samples_used(test)
    for rate in fpr:
        tpr = tpr_at(score, positive, negative, fpr=rate)
        if isinstance(tpr, str):  # the reason why there is none
            estimates[rate] = stats.empty(n=n, note=tpr)
        else:
            # [0]: the mean of the one statistic
            estimates[rate] = tpr.corrected(_over_models([tpr.of_models], n, unit)[0])
    return estimates


def _samples_used(test: MembershipTest) -> int:
    """Return how many samples are positive or negative for some target."""
    return int((test.positive | test.negative).any(axis=0).sum())


def _usable_targets(test: MembershipTest) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None] | str:
    """Return score, positive and negative of the targets that have both kinds of samples, float64 [targets, samples]
    each, and the pair of splits of each target, int [targets], or None.

    If the test could not be run, or no target has both kinds, return the reason in their place.
    """
    usable = test.positive.any(axis=1) & test.negative.any(axis=1)
    if test.missing or not usable.any():
        return test.missing or "no target has samples on both sides"
    positive, negative = (mask[usable].astype(np.float64) for mask in (test.positive, test.negative))
    return test.score[usable], positive, negative, None if test.unit is None else test.unit[usable]


def tpr_name(fpr: float) -> str:
    """Return the name of the TPR at ``fpr``, such as ``tpr_at_1pct_fpr`` for 0.01."""
    return f"tpr_at_{100 * fpr:g}pct_fpr"


def _over_models(statistics: list[crossed.PerModel], n: int, unit: np.ndarray | None) -> list[stats.Estimate]:
    """Return the mean over models of each statistic, with an interval over samples and over models.

    Parameters
    ----------
    n
        The number of samples, which goes into the results.
    unit
        int [models]: the pair of splits of each model, if the interval is to hold for other pairs too; None: for these
        pairs only.
    """
    # Target models do not repeat each other, so each counts as a split of its own.
    return crossed.estimates(crossed.mean(statistics, split=np.arange(len(statistics[0].value)), unit=unit), n=n)


def balanced_accuracy(decision: Mask, positive: Matrix, negative: Matrix) -> crossed.PerModel:
    """Return ½(TPR + TNR) of each model; with equally many positives and negatives this is the accuracy.

    Parameters
    ----------
    decision : bool [models, samples]
        Which samples each model's test calls positive.
    positive, negative : float64 [models, samples]
        The weights of positive and of negative samples, 0 elsewhere.

    Returns
    -------
    PerModel
    """
    tpr, fpr = (crossed.per_model(value=decision * 1.0, weight=weight) for weight in (positive, negative))
    half_advantage = crossed.difference(tpr, fpr).times(0.5)
    return replace(half_advantage, value=0.5 + half_advantage.value)


#: From this optimism on, a note says how much too high a TPR is.
OPTIMISM = 0.005


@dataclass(frozen=True)
class Tpr:
    """The TPR of each model, ``of_models``; how much too high their mean is on average, ``optimism``; and a ``note`` on
    how it was computed."""

    of_models: crossed.PerModel
    optimism: float
    note: str

    def corrected(self, mean: stats.Estimate) -> stats.Estimate:
        """Return the ``mean`` TPR over models with the note, and with the optimism subtracted from its lower limit."""
        note = "; ".join(filter(None, (mean.note, self.note)))
        return replace(mean, low=max(mean.low - self.optimism, 0.0), note=note)


def tpr_at(score: Matrix, positive: Matrix, negative: Matrix, *, fpr: float) -> Tpr | str:
    """Return the TPR of each model at ``fpr``, or the reason where all negatives together are too few.

    Each model has a threshold of its own. If the negatives of one model are too few for that, one threshold serves all
    models. With one threshold, a model's number is its own TPR minus what its own excess of false alarms over ``fpr``
    has added to it, so that the numbers of models vary as their pooled TPR does. Optimism is how much too high a TPR is
    expected to be, because the negatives that set its threshold are few.

    Parameters
    ----------
    score : float64 [models, samples]
        Scores, larger for positives, without NaN.
    positive, negative : float64 [models, samples]
        The weights of positive and of negative samples, 0 elsewhere.
    fpr : float
        The false positive rate.

    Returns
    -------
    Tpr or str
    """
    arrays = {"score": score, "positive": positive, "negative": negative}
    fewest = separation.effective_count(negative).min()
    if not stats.unresolved(negatives=fewest, fpr=fpr):
        tpr, optimism = separation.tpr_at_fpr(**arrays, fpr=fpr)
        return Tpr(tpr, float(optimism.mean()), _optimism_note(optimism.mean(), fewest))
    total = float(separation.effective_count(negative.ravel()))
    if reason := stats.unresolved(negatives=total, fpr=fpr):
        return reason
    models = len(score)
    # All models are taken as one, whose samples are those of every model.
    as_one = {name: array.reshape(1, -1) for name, array in arrays.items()}
    pooled, (optimism,) = separation.tpr_at_fpr(**as_one, fpr=fpr)
    influence = models * pooled.influence.reshape(score.shape)  # its mean over models is that of the pooled TPR
    imagined = np.repeat(np.sqrt(models) * pooled.imagined, models, axis=0)  # a mean over models keeps their variance
    shift = influence.sum(axis=1)  # how far each model's own samples move its number from the pooled one
    tpr = crossed.PerModel(pooled.value + shift - shift.mean(), influence, imagined)
    note = f"one threshold for {models} targets: {fewest:.0f} negatives in one are too few"
    return Tpr(tpr, float(optimism), "; ".join(filter(None, (note, _optimism_note(optimism, total)))))


def _optimism_note(optimism: float, negatives: float) -> str:
    """Return the note that a TPR is too high by ``optimism`` on average, because so few ``negatives`` set its
    threshold; "" below `OPTIMISM`."""
    if optimism < OPTIMISM:
        return ""
    return f"reads about {optimism:.3f} high, because {negatives:.0f} negatives set the threshold"
