"""Numbers that result files print, computed once more from their samples."""

import numpy as np
from scipy import stats

from unlearning_audit.readers._model import TOLERANCE, Agreement

#: What keeps published quotients finite.
TINY = 1e-10


def auc(*, member: np.ndarray, nonmember: np.ndarray) -> float:
    """Share of pairs in which a member scores above another sample, ties half; scores float64 [samples]."""
    ranks = stats.rankdata(np.concatenate([member, nonmember]))
    count = len(member)
    return float((ranks[:count].sum() - count * (count + 1) / 2) / (count * len(nonmember)))


def closest(quantity: str, printed: float, candidates: dict[str, float]) -> Agreement:
    """The agreement by the first formula of ``candidates`` (name → value) that gives what is printed, else by the one
    that comes closest."""
    best = min(candidates, key=lambda how: (abs(candidates[how] - printed) > TOLERANCE, abs(candidates[how] - printed)))
    if np.isnan(printed):
        best = next(iter(candidates))
    return Agreement(quantity, printed, candidates[best], best)


def ratio_means(ratio: np.ndarray) -> dict[str, float]:
    """Means by which truth ratios float64 [samples] are aggregated: TOFU's for the forget set and for all others
    (Maini et al. 2024), and that of shares."""
    return {
        "mean of min(r, 1/r)": float(np.minimum(ratio, 1 / (ratio + TINY)).mean()),
        "mean of max(0, 1 − r)": float(np.maximum(0.0, 1 - ratio).mean()),
        "mean": float(ratio.mean()),
    }


def privacy_leakage(attack: float, retrained: float) -> float:
    """MUSE's PrivLeak in per cent (Shi et al. 2024) of the AUC of an attack in which 1 means that the forget set is
    more familiar."""
    return (retrained - attack) / (1 - retrained + TINY) * 100


def harmonic(values: list[float]) -> float:
    """Harmonic mean, 0 if one of the values is 0."""
    return float(stats.hmean(values)) if min(values) > 0 else 0.0


def forget_quality(ratio: np.ndarray, retrained: np.ndarray) -> float:
    """TOFU's forget quality: the p-value of a two-sample Kolmogorov–Smirnov test on truth ratios [samples]."""
    return float(stats.ks_2samp(ratio, retrained).pvalue)
