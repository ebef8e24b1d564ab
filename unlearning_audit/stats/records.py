"""Records that are still recognised: p-values of single samples and of groups, and lists with a false discovery
rate."""

import numpy as np
from scipy import special

from unlearning_audit.stats.shapes import Bool, Float, Shaped, Vector


def conformal(*, score: Float[np.ndarray, "records"], heldout: Vector) -> Float[np.ndarray, "records"]:
    """Return p-values of the hypothesis that each record was never seen, (1 + #{held-out scores ≥ its score})/(1 + n),
    float64 [records].

    Exact for any scores if forgotten and held-out records are a random draw. Source: Vovk, Gammerman and Shafer 2005.

    Parameters
    ----------
    score : float [records]
        Larger values mean more likely a forgotten member.
    heldout : float [n]
        Scores of held-out records.

    Raises
    ------
    ValueError
        A score is NaN, or there are no held-out scores.

    Examples
    --------
    >>> conformal(score=np.array([5.0, 0.5]), heldout=np.array([0.0, 1.0, 2.0])).tolist()
    [0.25, 0.75]
    """
    values, unseen = np.asarray(score, dtype=np.float64), np.sort(np.asarray(heldout, dtype=np.float64))
    if not len(unseen) or np.isnan(values).any() or np.isnan(unseen).any():
        raise ValueError("p-values of records need held-out scores, and none that is NaN")
    return (1 + len(unseen) - np.searchsorted(unseen, values, "left")) / (1 + len(unseen))


def discoveries(*, p: Float[np.ndarray, "records"], rate: float = 0.1) -> Bool[np.ndarray, "records"]:
    """Return which records are recognised, bool [records]: a list of which an expected share of at most ``rate`` is
    false.

    An empty list counts as a share of 0, so if no record is recognisable, the list is empty with probability 1 −
    ``rate``. The procedure, by Benjamini and Hochberg 1995, holds for conformal p-values, which depend on each other
    through the held-out scores (Bates et al. 2023).

    Parameters
    ----------
    p : float [records]
        P-values, such as those of `conformal`.
    rate : float
        The false discovery rate, between 0 and 1.
    """
    p = np.asarray(p, dtype=np.float64)
    sorted_p = np.sort(p)
    # The list ends with the last p-value that is at most its rank times rate/n.
    below = np.flatnonzero(sorted_p <= rate * (1 + np.arange(len(p))) / max(len(p), 1))
    return p <= sorted_p[below[-1]] if len(below) else np.zeros(len(p), dtype=bool)


def simes(
    *, p: Float[np.ndarray, "records"], group: Shaped[np.ndarray, "records"]
) -> tuple[Shaped[np.ndarray, "groups"], Float[np.ndarray, "groups"]]:
    """Return the groups of records (persons, documents), sorted, and a p-value for each group (Simes 1986).

    The hypothesis is that none of a group's records is recognised. The p-value is the minimum of m·p_(i)/i over the
    group's m sorted p-values.

    Parameters
    ----------
    p : float [records]
        P-values of single records, such as those of `conformal`.
    group : int or str [records]
        The group of each record.

    Returns
    -------
    groups : of the dtype of ``group`` [groups]
    p : float64 [groups]
    """
    p, group, names = np.asarray(p, dtype=np.float64), np.asarray(group), np.unique(group)
    sorted_p = [np.sort(p[group == name]) for name in names]
    return names, np.array([(len(p_i) * p_i / (1 + np.arange(len(p_i)))).min() for p_i in sorted_p])


def against_retrained(
    *, audited: Float[np.ndarray, "models records"], retrained: Float[np.ndarray, "others records"]
) -> Float[np.ndarray, "records"]:
    """Return p-values of the hypothesis that models are at most as sure of each record as retrained ones.

    Use it where forgotten and held-out records are not a random draw, so that held-out records cannot serve as a
    reference. The test is Student's t of the difference of means, with n − 1 degrees of freedom, for m audited and n
    retrained models. The variance is that of the retrained models times (1/m + 1/n). Each record is compared with
    itself; p is ½ where the two means are equal, and else 0 or 1 where all retrained models agree.

    Parameters
    ----------
    audited : float [models, records]
        Numbers that are about normal over models, such as φ (Carlini et al. 2022).
    retrained : float [retrained models, records]
        The numbers of the same records by retrained models, at least two.

    Returns
    -------
    float64 [records]

    Raises
    ------
    ValueError
        A number is not finite.
    """
    audited, retrained = np.asarray(audited, np.float64), np.asarray(retrained, np.float64)
    models, references = len(audited), len(retrained)
    if not (np.isfinite(audited).all() and np.isfinite(retrained).all()):
        raise ValueError("records need numbers that are finite")
    gap = audited.mean(axis=0) - retrained.mean(axis=0)
    error = retrained.std(axis=0, ddof=1) * np.sqrt(1 / models + 1 / references)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(gap == 0, 0.0, gap / error)
    return np.asarray(special.stdtr(references - 1, -t))
