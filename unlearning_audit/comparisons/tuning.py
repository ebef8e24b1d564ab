"""Tuning: which setting of a method is tried on how many pairs, and which one is audited.

The design is fixed before anything runs. It has the setting that the study names, and points of a scrambled Sobol
sequence (Owen 1998) in the method's space. Rounds of successive halving (Jamieson & Talwalkar 2016) give fewer settings
more pairs. Results of trials are its only input.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: One in this many settings of a round goes on to the next.
RATE = 3

#: Distances, in margins, that differ by less are equal: the last bits of two machines decide nothing.
TIE = 0.01


@dataclass(frozen=True)
class Trial:
    """The result of one setting of a method after a round.

    Parameters
    ----------
    number
        The index of the setting, 0 for the one that the study names.
    options
        The setting.
    pairs
        How many pairs it was tried on.
    distance
        The largest distance from retraining by a deciding metric, in margins; inf without a distance.
    error
        The standard error of ``distance``.
    lost
        The largest loss of utility against retraining, in margins (above 1 it is too much); inf if the setting failed.
    seconds
        How long the method alone took.
    metric, margin
        The metric of that distance, and its margin.
    note
        Why there is no distance, or "".
    """

    number: int
    options: dict[str, Any] = field(default_factory=dict)
    pairs: int = 0
    distance: float = math.inf
    error: float = math.inf
    lost: float = math.inf
    seconds: float = math.nan
    metric: str = ""
    margin: float = math.nan
    note: str = ""


def settings(
    study: Mapping[str, Any], space: Mapping[str, Sequence[Any] | Mapping[str, Any]], trials: int, seed: int
) -> list[dict[str, Any]]:
    """Return the settings to try: the ``study``'s own options, then ``trials`` other settings of the ``space``, or
    fewer if no more different ones are found.

    Parameters
    ----------
    study
        Option → value, as the study names them.
    space
        Option → list of values, or a mapping with low and high. With log true, values are drawn evenly in their
        logarithms; they are whole numbers where both ends are. Options that are not in ``space`` keep the study's
        values.
    trials
        How many other settings are returned at most.
    seed
        The seed of the Sobol sequence, whose points are the other settings.
    """
    from scipy.stats import qmc

    names, designs = sorted(space), [dict(study)]
    if not names:
        return designs
    draws = qmc.Sobol(len(names), scramble=True, seed=seed)
    for _ in range(8):  # several times, because points of a space with few values give settings that are there already
        for point in draws.random(2 ** math.ceil(math.log2(max(trials, 1)))):  # Sobol points come in powers of 2
            drawn = {name: _value_at(space[name], share) for name, share in zip(names, point, strict=True)}
            options = {**study, **drawn}
            if len(designs) <= trials and options not in designs:
                designs.append(options)
    return designs


def rounds(count: int, pairs: int) -> list[tuple[int, int]]:
    """Return (settings, pairs) of each round: how many settings are tried, each on how many pairs.

    The first round tries all ``count`` settings, the study's own among them, on one pair. Each further round tries one
    in `RATE`, rounded up, on twice as many pairs, and at least two settings if there are two; the last uses all
    ``pairs``.
    """
    plan = [(count, 1)]
    while plan[-1][1] < pairs:  # the pairs of the last round
        tried, used = plan[-1]
        plan.append((min(tried, max(2, math.ceil(tried / RATE))), min(2 * used, pairs)))
    return plan


def survivors(trials: Sequence[Trial], count: int) -> list[int]:
    """Return the numbers of the ``count`` settings that the next round tries, sorted; ``trials`` are the results of
    this round.

    Setting 0, which the study names, is always among them, so that the winner can be compared with it. All other
    settings are ranked: first those whose loss of utility is within its margin, by their distance from retraining; then
    those whose loss is larger, by their loss.
    """
    others = [trial.number for trial in sorted(trials, key=_rank_key) if trial.number != 0]  # the best first
    return sorted([0, *others[: count - 1]])


def choice(trials: Sequence[Trial]) -> Trial:
    """Return the result of the setting that is audited, from the ``trials`` of the last round.

    The study's own setting is audited, unless it failed, loses more utility than its margin and than the nearest
    setting, or lies further from retraining than that by more than the standard error of their difference and `TIE`. So
    noise alone does not replace a published setting. The standard error treats both settings as independent, which
    makes it too large. In place of the study's setting, the nearest one is audited of the settings whose loss of
    utility is within its margin, or the one with the least loss if no loss is; of equal settings the first.
    """
    nearest = min(trials, key=_rank_key)
    study = next((trial for trial in trials if trial.number == 0), nearest)
    return study if _nearly_as_good(study, nearest) else nearest


def flatness(trials: Sequence[Trial]) -> float:
    """Return the share of settings that cannot be distinguished from the best one, because their distances differ by at
    most the standard error of the difference, or `TIE` if that is more, and their loss of utility is at most its
    margin, or that of the best setting if that is more.

    The best setting is the nearest to retraining of those whose loss is within its margin, else the one with the least
    loss. A share of 1 means that no option matters; a small one means that few settings are good. Settings that failed
    do not count as near; NaN if all failed.

    Parameters
    ----------
    trials
        The results of the first round, which tries all settings.
    """
    nearest = min(trials, key=_rank_key)
    if not any(math.isfinite(trial.distance) for trial in trials):
        return math.nan
    return float(np.mean([_nearly_as_good(trial, nearest) for trial in trials]))


def _nearly_as_good(trial: Trial, nearest: Trial) -> bool:
    """Return whether a setting is about as good as the one that is ``nearest`` to retraining; False for a setting
    without a distance.

    The distance of the setting may be larger by at most the standard error of the difference, or by `TIE` if that is
    more. The loss of utility, in margins, may be at most 1, or that of the nearest setting if that is more.
    """
    error = max(math.hypot(trial.error, nearest.error), TIE)
    near = math.isfinite(trial.distance) and trial.distance - nearest.distance <= error
    return near and trial.lost <= max(1.0, nearest.lost)


def _rank_key(trial: Trial) -> tuple[float, float, int]:
    """Return the key by which settings are sorted: loss of utility where it exceeds its margin (else 1, in margins),
    then distance, rounded to `TIE`, then number."""
    steps = trial.distance / TIE
    return max(trial.lost, 1.0), math.inf if math.isinf(steps) else round(steps), trial.number


def _value_at(axis: Sequence[Any] | Mapping[str, Any], share: float) -> Any:
    """Return the value of an option at the point that lies ``share`` in [0, 1) of the way along its ``axis``, the
    values that it may have.

    The axis is a list of values, or a mapping with low and high, whose logarithms are used if log is true. If low and
    high are whole numbers, so is the value; if not, it is rounded to three significant digits.
    """
    if not isinstance(axis, Mapping):
        return axis[min(int(share * len(axis)), len(axis) - 1)]
    low, high = axis["low"], axis["high"]
    if isinstance(low, int) and isinstance(high, int):  # + 1, so that high is drawn as often as the others
        if axis.get("log"):
            return min(int(math.exp(math.log(low) + share * math.log((high + 1) / low))), high)
        return min(low + int(share * (high - low + 1)), high)
    value = low * (high / low) ** share if axis.get("log") else low + share * (high - low)
    return float(f"{value:.3g}")  # as one would write it, and the same on every machine
