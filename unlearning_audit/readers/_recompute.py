"""Recompute numbers that result files print, from their samples."""

import numpy as np
from scipy import stats

from unlearning_audit.readers._model import Agreement, Model

#: A small number that keeps published quotients finite.
TINY = 1e-10


def auc(member: np.ndarray, nonmember: np.ndarray) -> float:
    """Return the AUC of an attack: the share of the pairs of a member and a non-member in which the member scores
    higher, ties counted half. ``member`` and ``nonmember`` float64 [samples]: the scores of members and of
    non-members."""
    ranks = stats.rankdata(np.concatenate([member, nonmember]))
    count = len(member)
    # The number of pairs in which the member scores higher is the sum of the members' ranks, less what this sum would
    # be if members were ranked among themselves.
    return float((ranks[:count].sum() - count * (count + 1) / 2) / (count * len(nonmember)))


def ratio_means(ratio: np.ndarray) -> dict[str, float]:
    """Return formula → mean over samples of TOFU's truth ratio r (Maini et al. 2024): by its formula for the forget
    set, by its formula for other samples, and of r itself. ``ratio`` float64 [samples]: r."""
    return {
        "mean of min(r, 1/r)": float(np.minimum(ratio, 1 / (ratio + TINY)).mean()),
        "mean of max(0, 1 − r)": float(np.maximum(0.0, 1 - ratio).mean()),
        "mean": float(ratio.mean()),
    }


def privacy_leakage(attack: float, retrained: float) -> float:
    """Return MUSE's PrivLeak in per cent (Shi et al. 2024), from the AUC of an ``attack`` on a model and on the
    ``retrained`` one. An AUC of 1 means that all forgotten samples are more familiar than the held-out ones.

    MUSE divides by the AUC of held-out against forgotten samples, so the denominator is 1 − retrained.
    """
    return (retrained - attack) / (1 - retrained + TINY) * 100


def forget_quality(printed: float, model: Model, retrained: Model, how: str) -> list[Agreement]:
    """Compare the forget quality of TOFU (Maini et al. 2024) that a log prints with the same number computed from the
    truth ratios of a model and of a retrained model: the p-value of a two-sample Kolmogorov–Smirnov test.

    Return [] if one of the two logs has no truth ratios.

    Parameters
    ----------
    printed
        The forget quality that the log prints; NaN if it prints none.
    how
        The formula in words, for the agreement.
    """
    ratios = [run.raw["forget_truth_ratio"] for run in (model, retrained) if "forget_truth_ratio" in run.raw]
    if len(ratios) < 2:
        return []
    return [Agreement("forget_quality", printed, float(stats.ks_2samp(*ratios).pvalue), how)]


def rouge_l(answer: str, truth: str) -> float:
    """Return ROUGE-L recall of a model's ``answer`` as the package rouge 1.0.1 computes it.

    This is the share of the distinct words of the true answer, ``truth``, that lie on a longest common subsequence.
    Subsequences are computed between each sentence of the true answer and each sentence of the model's answer.
    """
    # The answer and the true answer, each a list of sentences, which are lists of words.
    given, true = ([sentence.split() for sentence in text.split(".") if sentence] for text in (answer, truth))
    common = {word for sentence in true for other in given for word in _longest_common_subsequence(sentence, other)}
    return len(common) / max(len({word for sentence in true for word in sentence}), 1)


def _longest_common_subsequence(x: list[str], y: list[str]) -> list[str]:
    """Return a longest common subsequence of two lists of words; of several, the one that the package rouge returns."""
    longest: dict[tuple[int, int], list[str]] = {}  # (i, j) → a longest common subsequence of x[:i] and y[:j]
    for i, j in np.ndindex(len(x) + 1, len(y) + 1):
        if i == 0 or j == 0:
            longest[i, j] = []
        elif x[i - 1] == y[j - 1]:
            longest[i, j] = [*longest[i - 1, j - 1], x[i - 1]]
        else:
            left, up = longest[i, j - 1], longest[i - 1, j]
            longest[i, j] = up if len(up) > len(left) else left
    return longest[len(x), len(y)]
