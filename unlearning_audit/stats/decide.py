"""Verdicts with error rates from distances with errors: equivalence within a margin, Holm's correction, classes.

The sign of a distance has a meaning. 0 is retraining. A positive distance points towards doing nothing: forgotten
samples look familiar. A negative distance is on the far side: they look less familiar than samples that were never
seen.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from unlearning_audit.stats import Estimate
from unlearning_audit.stats.shapes import Bool, Float

ALPHA = 0.05
#: Remark on the interval beside the verdict *equivalent*.
INNER = "interval of two one-sided tests: it contains the 90 % intervals of all numbers of this metric"
#: Remark on attacks that do not decide equivalence.
BLIND = "except {} attacks, which find no traces of doing nothing either"
#: Starts of the parts of a note that name metrics which contradict the class.
BESIDES = OTHER_SIDE, TOO = "in the opposite direction by ", "distinguishable by "
#: Stands for all metrics where the spread of retrained models is given by one number.
EVERY = "every"
#: Share of α for the tests of retraining and its control.
CONTROLS = 0.1

DISTINGUISHABLE, EQUIVALENT, OVER_UNLEARNED, BROKEN, INCONCLUSIVE, FAILED = VERDICTS = (
    "distinguishable", "equivalent", "over_unlearned", "broken", "inconclusive", "failed",
)  # fmt: skip
#: States of a whole scenario, given in place of a class of each method.
NOTHING_TO_FIND, NO_YARDSTICK, YARDSTICKS_DISAGREE = STATES = ("nothing_to_find", "no_yardstick", "yardsticks_disagree")
#: Smaller p-values are not trusted as probabilities.
LEAST_P = 1e-4
BETTER, LIKE, WORSE = "better", "like", "worse"


@dataclass(frozen=True)
class Distance:
    """The distance of a method from retraining by one metric.

    Parameters
    ----------
    estimate
        The distance with its interval at 1 − α.
    inner
        The 1 − 2α interval of the two one-sided tests. For a metric that is the largest of several numbers, ``inner``
        is the smallest interval that contains the 1 − 2α intervals of all these numbers.
    margin
        (far < 0, near > 0): the range of distances that count as equivalent.
    p
        The p-value of the hypothesis that the method is retraining, before any correction over methods and metrics.
    two_sided
        Whether a negative distance means that forgotten samples look less familiar than samples never seen (by F/F₀ it
        cannot mean this).
    breaking_loss
        For a distance of utility, the loss above which a model counts as broken.
    lower_limit
        The lower limit of the distance for the audited pairs, not for others.
    """

    metric: str
    estimate: Estimate
    inner: tuple[float, float]
    margin: tuple[float, float]
    p: float = np.nan
    two_sided: bool = True
    breaking_loss: float = np.inf
    lower_limit: float = -np.inf

    @property
    def within(self) -> bool:
        """Return whether the interval ``inner`` lies inside the margin; False where a limit of the interval is NaN.

        With a 1 − 2α interval this is two one-sided tests at level α (Schuirmann 1987).
        """
        (low, high), (far, near) = self.inner, self.margin
        return bool(far < low and high < near)


@dataclass(frozen=True)
class Decision:
    """The ``verdict`` on a method, one of `VERDICTS`.

    Parameters
    ----------
    number
        The index of the deciding distance that determines the verdict: of the one that differs most clearly from 0, or
        of the one that exceeds its margin most.
    p_holm
        The adjusted p-value of that distance.
    note
        An explanation in words.
    """

    verdict: str
    number: int
    p_holm: float
    note: str = ""


def holm(*, p: Float[np.ndarray, "..."], weight: Float[np.ndarray, "..."] | None = None) -> Float[np.ndarray, "..."]:
    """Return Holm's adjusted p-values (1979) of a family of tests, float64 of the shape of ``p``.

    Rejecting the hypotheses with adjusted p-values of at most α keeps the probability of any false rejection at α, for
    any dependence between the tests.

    Parameters
    ----------
    p : float [...]
        P-values; NaN stays and does not count.
    weight : float [...] > 0, optional
        Each hypothesis's initial share of α (Holm's section 4), up to a factor; by default equal shares.

    Examples
    --------
    >>> holm(p=np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, dtype=np.float64)
    weight = np.ones(p.shape) if weight is None else np.asarray(weight, dtype=np.float64)
    finite = ~np.isnan(p)
    values, share = p[finite], weight[finite]
    order = np.argsort(values / share, kind="stable")
    remaining = np.cumsum(share[order][::-1])[::-1]  # the shares of a hypothesis and of all that come after it
    steps = np.minimum(np.maximum.accumulate(remaining * values[order] / share[order]), 1.0)
    adjusted = np.full(p.shape, np.nan)
    adjusted[finite] = steps[np.argsort(order)]  # in the original order: this argsort inverts the first one
    return adjusted


def adjusted_p(
    *, p: Float[np.ndarray, "tests"], nothing: Bool[np.ndarray, "tests"], retrained: Bool[np.ndarray, "tests"]
) -> Float[np.ndarray, "tests"]:
    """Return p-values of all methods and metrics of a scenario, adjusted so that any false rejection has probability ≤
    α.

    Retraining and its control get the share `CONTROLS`, 0.1, of α, divided equally among their tests (Bonferroni),
    because a distinguishable control means that the study is broken. All other tests get the rest (all of α if neither
    is tested), by Holm. At first, half of the rest goes to doing nothing, since the first question is whether there was
    anything to forget.

    Parameters
    ----------
    p : float [tests]
        P-values, NaN where unknown.
    nothing : bool [tests]
        Which tests are of the method that does nothing.
    retrained : bool [tests]
        Which tests are of retraining or of its control.

    Returns
    -------
    float64 [tests]
        Adjusted p-values, NaN where ``p`` is.
    """
    p, corrected = np.asarray(p, dtype=np.float64), np.full(np.shape(p), np.nan)
    finite = ~np.isnan(p)
    controls, others = finite & retrained, finite & ~retrained
    rest = 1.0 - CONTROLS if controls.any() else 1.0
    corrected[controls] = np.minimum(p[controls] * controls.sum() / CONTROLS, 1.0)
    of_nothing = nothing[others]
    # With these weights, the tests of doing nothing together weigh as much as all others together.
    weight = np.where(of_nothing, max((~of_nothing).sum(), 1) / max(of_nothing.sum(), 1), 1.0)
    corrected[others] = np.minimum(holm(p=p[others], weight=weight) / rest, 1.0)
    return corrected


def classify(
    *, deciding: Sequence[Distance], p_holm: Sequence[float], utility: Sequence[Distance], coarse: Collection[str] = ()
) -> Decision:
    """Return the verdict on one method that has not failed: the first of the following that applies.

    * *broken*: a loss of utility, by its ``lower_limit``, exceeds the loss ``breaking_loss`` of a broken model.
    * *equivalent*: every distance and every loss lies within its margin (an intersection–union test, Berger 1982: each
      at level α, without correction over metrics). The distance of a ``coarse`` metric counts here only if it differs
      significantly from 0.
    * *over_unlearned*: some p_holm is ≤ α, and the distance with the least is negative and ``two_sided``, so that
      forgotten samples look less familiar than samples that were never seen.
    * *distinguishable*: some p_holm is ≤ α.
    * *inconclusive*: none of these.

    If a distance differs from 0 and lies within its margin, the verdict is *equivalent* and the note names the
    difference.

    Parameters
    ----------
    deciding : sequence of Distance
        The distances by every deciding metric, at least one.
    p_holm : sequence of float
        The p-value of each deciding distance, adjusted over all methods and metrics of the scenario.
    utility : sequence of Distance
        How much utility models lost against retraining, on retained and on test samples.
    coarse : collection of str
        Metrics that are too coarse to show equivalence, and only decide whether the method is distinguishable.

    Returns
    -------
    Decision
    """
    p = np.asarray(p_holm, dtype=np.float64)
    significant = [k for k in np.argsort(p, kind="stable").tolist() if p[k] <= ALPHA]  # indices, the least p first
    # The index of the distance whose interval exceeds its margin most.
    widest = int(np.argmax([-1.0 if distance.metric in coarse else _reach(distance) for distance in deciding]))
    clearest = significant[0] if significant else widest
    for loss in utility:
        if loss.lower_limit > loss.breaking_loss:
            note = f"{loss.metric} {loss.estimate.value:.3f} worse than retraining"
            return Decision(BROKEN, clearest, float(p[clearest]), note)
    decisive = [distance for k, distance in enumerate(deciding) if distance.metric not in coarse or k in significant]
    unproven = list(dict.fromkeys(distance.metric for distance in (*decisive, *utility) if not distance.within))
    if not unproven:
        names = ", ".join(deciding[k].metric for k in significant)
        note = names and f"{TOO}{names}, within the margin"  # "" without names
        return Decision(EQUIVALENT, widest, float(p[widest]), note)
    if significant:
        # Whether each distance says that the method went too far.
        over = [distance.two_sided and distance.estimate.value < 0 for distance in deciding]
        contradicting = ", ".join(deciding[k].metric for k in significant if over[k] != over[clearest])
        verdict = OVER_UNLEARNED if over[clearest] else DISTINGUISHABLE
        return Decision(verdict, clearest, float(p[clearest]), contradicting and OTHER_SIDE + contradicting)
    return Decision(INCONCLUSIVE, widest, float(p[widest]), f"not shown to be within the margin: {', '.join(unproven)}")


def against_none(*, closer: Estimate) -> str:
    """Return whether a method is ``better`` than doing nothing, ``like`` it or ``worse``; "" if a limit of ``closer``
    is NaN.

    Parameters
    ----------
    closer
        How much closer to retraining the method is than doing nothing, |distance of doing nothing| − |distance of the
        method|, with the interval of this paired difference.
    """
    if np.isnan(closer.low + closer.high):
        return ""
    if closer.low > 0:
        return BETTER
    return WORSE if closer.high < 0 else LIKE


def _reach(distance: Distance) -> float:
    """Return how far the 1 − 2α interval of a distance reaches towards the end of its margin, in units of the margin;
    above 1 the interval exceeds the margin. inf where a limit is NaN."""
    (low, high), (far, near) = distance.inner, distance.margin  # far < 0 < near
    reach = max(low / far, high / near)
    return np.inf if np.isnan(reach) else reach
