"""Kernel two-sample tests: do unlearned models answer as retrained ones do, and are they nearer to these than before?

A model is one point: its φ of all forgotten samples, in standard deviations over all models that are compared. So the
test compares joint distributions, not one sample after the other. Gretton et al. (2012); the relative test: Bounliphone
et al. (2016), for unlearning Ribero, Schrab and Gretton (2026).
"""

from collections.abc import Sequence

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
    interval over models, and "kernel_nearer_p" the p-value of the hypothesis that they are not nearer. With too few
    models of a kind, all three rows have the reason in place of a number. Retraining itself is compared with its
    control. Raises ValueError without retrained models to compare with.
    """
    retrained = evaluation.compared_files
    if retrained is None:
        raise ValueError("metric kernel compares with retrained models; add retrain, for itself controls: true")
    forget = np.flatnonzero(evaluation.membership.forget.any(axis=0))
    y = evaluation.data.y[forget]
    populations = evaluation.unlearned_files, retrained, evaluation.originals
    phi = [evaluation.outputs(files).phi(y, rows=forget) for files in populations]
    # One model of each original, and the position of each model's original among these.
    representatives, stems = evaluation.membership.originals()
    if not 1 < len(representatives) < len(stems):  # no copies, or a single original, which cannot be left out
        return evaluate(phi, options, rng)
    return evaluate([*phi[:2], phi[2][representatives]], options, rng, stems)


def evaluate(
    populations: list[np.ndarray], options: Options, rng: np.random.Generator, stems: np.ndarray | None = None
) -> list[Row]:
    """Return rows kernel_p, kernel_nearer and kernel_nearer_p from φ float [models, forget samples] of unlearned,
    retrained and original models.

    ``kernel_p`` has its level for any number of models. The interval of ``kernel_nearer`` is a jackknife over as many
    groups as the smallest population has models. A group leaves models of all populations out together, because an
    unlearned model stems from an original. The one-sided p-value is Student's. ``stems`` int [unlearned models]: the
    original of each unlearned model, where several have the same one. Unlearned models are then left out with their
    original, because those of one original are not independent.
    """
    counts = [len(phi) for phi in populations]
    n = min(counts)
    if n < LEAST:
        note = f"{n} models are too few: {LEAST} of each kind are needed"
        return table(dict.fromkeys(("kernel_p", "kernel_nearer", "kernel_nearer_p"), stats.empty(n=n, note=note)))
    u, r, o = np.split(np.arange(sum(counts)), np.cumsum(counts)[:2])  # numbers of the models, one kind after the other
    p = kernel.p_value(kernel=_gram(*populations[:2]), x=u, y=r, rng=rng, draws=options.permutations)
    groups = [jackknife.groups_of(count, groups=n) for count in counts]
    if stems is not None:
        groups[0] = groups[2][stems]
    nearer, p_nearer = _nearer(_gram(*populations), (u, r, o), groups)
    p_values = Estimate(p, np.nan, np.nan, n), Estimate(p_nearer, np.nan, np.nan, n, nearer.note)
    return table({"kernel_p": p_values[0], "kernel_nearer": nearer, "kernel_nearer_p": p_values[1]})


def _gram(*populations: np.ndarray) -> np.ndarray:
    """Return the kernel matrix of the models of all ``populations``, each float [models, samples], one after the other:
    float64 [all models, all models].

    The scale comes from all populations together, so that permutation tests are exact.
    """
    points = np.concatenate(populations).astype(np.float64)
    spread = points.std(axis=0)
    return kernel.gram(points=points / np.where(spread > 0, spread, 1.0))


def _nearer(gram: np.ndarray, sides: tuple[np.ndarray, ...], groups: list[np.ndarray]) -> tuple[Estimate, float]:
    """Return how much nearer unlearned models are to retrained than to original ones, with its interval, and the
    p-value of the hypothesis that this number is 0 or less. There is no number where original and retrained models do
    not differ, and no interval or p-value where leaving out models changes nothing.

    ``gram`` float64 [models, models]: the kernel of all models; ``sides``: the numbers of the unlearned, of the
    retrained and of the original models in it; ``groups``: for each of the three kinds, the jackknife group of each
    model.
    """

    def nearer(sides: Sequence[np.ndarray]) -> float:
        """Return how much nearer the unlearned models of ``sides`` are to its retrained than to its original models."""
        u, r, o = sides
        return kernel.nearer(kernel=gram, u=u, r=r, o=o)

    n, value = 1 + max(int(group.max()) for group in groups), nearer(sides)
    if np.isnan(value):
        return stats.empty(n=n, note="models before unlearning answer as retrained ones do"), np.nan
    remaining = [[side[group != left_out] for side, group in zip(sides, groups, strict=True)] for left_out in range(n)]
    error = float(np.sqrt(jackknife.jackknife_variance(np.array([nearer(left) for left in remaining]))))
    if not error > 0:
        return Estimate(value, np.nan, np.nan, n, "without one model nothing differs: no interval"), np.nan
    half = stats.t_quantile(p=(1 + stats.LEVEL) / 2, dof=n - 1) * error
    return Estimate(value, value - half, value + half, n), float(special.stdtr(n - 1, -value / error))
