"""Kernel two-sample tests: do unlearned models answer as retrained ones do, and are they nearer to these than before?

A model is one point: its φ of all forgotten samples, in standard deviations over all models that are compared. So the
test compares joint distributions, not one sample after the other. Gretton et al. (2012); the relative test: Bounliphone
et al. (2016), for unlearning Ribero, Schrab and Gretton (2026).
"""

import numpy as np
from pydantic import Field
from scipy import special

from unlearning_audit.metrics import Evaluation, Quantity, Row, Settings, stats, table
from unlearning_audit.stats import Estimate, jackknife, kernel

NEEDS = ("one_forget_set",)

QUANTITIES = (
    Quantity(
        "kernel_p", "p of the kernel test", logarithmic=True,
        reading="Chance of answers that differ so much if unlearned models are drawn as retrained ones.",
    ),
    Quantity(
        "kernel_nearer", "nearer to retraining", "higher", ideal=1.0,
        reading="1 = answers distributed as those of retrained models, -1 = as those before unlearning, 0 = as far "
        "from one as from the other.",
    ),
    Quantity(
        "kernel_nearer_p", "p of nearer", "lower", logarithmic=True,
        reading="Chance of the number above if unlearned models are no nearer to retrained ones than to those before.",
    ),
)  # fmt: skip

#: The fewest models of each population.
LEAST = 4


class Options(Settings):
    """``permutations``: how many of them the p-value kernel_p rests on."""

    permutations: int = Field(999, ge=99)


def rows(evaluation: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return rows that compare φ of the forgotten samples of unlearned, retrained and original models by a kernel.

    "kernel_p" is the p-value of a permutation test of whether unlearned models are distributed as retrained ones.
    "kernel_nearer" is how much nearer unlearned models are to retrained than to original models, with a jackknife
    interval over models, and "kernel_nearer_p" the p-value of the hypothesis that they are not nearer. With fewer than
    `LEAST` models of a kind, all three rows have the reason in place of a number. Retraining itself is compared with
    its control. Raises ValueError without retrained models to compare with.
    """
    retrained = evaluation.compared_files
    if retrained is None:
        raise ValueError("metric kernel compares with retrained models; add retrain, for itself controls: true")
    forget = np.flatnonzero(evaluation.membership.forget.any(axis=0))
    y = evaluation.data.y[forget]
    populations = evaluation.unlearned_files, retrained, evaluation.originals
    phi = [evaluation.outputs(files).phi(y, rows=forget) for files in populations]
    stems = evaluation.membership.copied
    if stems is not None:
        phi[2] = phi[2][evaluation.membership.originals()[0]]  # of the originals, one of the equal copies of each
    return evaluate(phi, options, rng, stems)


def evaluate(
    populations: list[np.ndarray], options: Options, rng: np.random.Generator, stems: np.ndarray | None = None
) -> list[Row]:
    """Return rows kernel_p, kernel_nearer and kernel_nearer_p from the ``populations``: φ float [models, forget
    samples] of unlearned, retrained and original models. No row has a number if a population has fewer than `LEAST`
    models.

    ``kernel_p`` is exact for any number of models. Of the models of one original, it compares one. The interval of
    ``kernel_nearer`` is a jackknife over as many groups as the smallest population has models. Leaving a group out
    removes its models from all populations together, because an unlearned model stems from an original.

    ``kernel_nearer`` is (MMD²(unlearned, original) − MMD²(unlearned, retrained))/MMD²(retrained, original): 1 for
    models like retrained ones, −1 for models like originals. ``kernel_nearer_p`` is Student's p-value of the hypothesis
    that it is at most 0.

    Parameters
    ----------
    stems
        int [unlearned models]: the original of each unlearned model, if several have the same one. The models of one
        original are not independent, so they are left out together, with their original.
    """
    counts = [len(phi) for phi in populations]
    n = min(counts)
    if n < LEAST:
        note = f"{n} models are too few: {LEAST} of each kind are needed"
        return table(dict.fromkeys(("kernel_p", "kernel_nearer", "kernel_nearer_p"), stats.empty(n=n, note=note)))
    # The numbers of the models in a kernel matrix, one population after the other.
    unlearned, retrained, original = np.split(np.arange(sum(counts)), np.cumsum(counts)[:2])
    independent = np.arange(counts[0]) if stems is None else np.unique(stems, return_index=True)[1]
    x, y = np.split(np.arange(len(independent) + counts[1]), [len(independent)])
    gram = _gram(populations[0][independent], populations[1])
    p = kernel.p_value(kernel=gram, x=x, y=y, rng=rng, draws=options.permutations)
    groups = [jackknife.groups_of(count, groups=n) for count in counts]  # the group of each model
    if stems is not None:
        groups[0] = groups[2][stems]  # 0: unlearned models, each in the group of its original; 2: originals
    nearer, p_nearer = _nearer(_gram(*populations), (unlearned, retrained, original), groups)
    kernel_p, nearer_p = stats.without_interval(p, n=n), stats.without_interval(p_nearer, n=n, note=nearer.note)
    return table({"kernel_p": kernel_p, "kernel_nearer": nearer, "kernel_nearer_p": nearer_p})


def _gram(*populations: np.ndarray) -> np.ndarray:
    """Return the kernel matrix of the models of all ``populations``, φ float [models, samples] each, one after the
    other: float64 [all models, all models].

    φ of each sample is divided by its standard deviation over the models of all populations. The standard deviation
    does not depend on which population a model is of, so permutation tests are exact.
    """
    points = np.concatenate(populations).astype(np.float64)
    spread = points.std(axis=0)
    return kernel.gram(points=points / np.where(spread > 0, spread, 1.0))


def _nearer(gram: np.ndarray, kinds: tuple[np.ndarray, ...], groups: list[np.ndarray]) -> tuple[Estimate, float]:
    """Return how much nearer unlearned models are to retrained than to original ones, with its interval, and the
    p-value of the hypothesis that this number is 0 or less.

    There is no number where original and retrained models do not differ, and no interval or p-value where leaving out
    models changes nothing.

    Parameters
    ----------
    gram
        float64 [models, models]: the kernel of all models.
    kinds
        The positions in ``gram`` of the unlearned, of the retrained and of the original models.
    groups
        For each of the three kinds, the jackknife group of each model, from 0.
    """

    def nearer(unlearned: np.ndarray, retrained: np.ndarray, original: np.ndarray) -> float:
        """Return how much nearer the ``unlearned`` models are to the ``retrained`` than to the ``original`` models, by
        the kernel ``gram``. Each argument holds positions in it."""
        return kernel.nearer(kernel=gram, u=unlearned, r=retrained, o=original)

    n, value = 1 + max(int(group.max()) for group in groups), nearer(*kinds)  # n: the number of groups
    if np.isnan(value):
        return stats.empty(n=n, note="models before unlearning answer as retrained ones do"), np.nan
    # The three kinds of models without each group in turn.
    remaining = [[kind[group != left_out] for kind, group in zip(kinds, groups, strict=True)] for left_out in range(n)]
    error = float(np.sqrt(jackknife.jackknife_variance(np.array([nearer(*kept) for kept in remaining]))))
    if not error > 0:
        return stats.without_interval(value, n=n, note="without one model nothing differs: no interval"), np.nan
    half = stats.t_quantile(p=(1 + stats.LEVEL) / 2, dof=n - 1) * error
    return Estimate(value, value - half, value + half, n), float(special.stdtr(n - 1, -value / error))
