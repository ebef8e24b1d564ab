"""Contributions of numbers that are no means: identities, and coverage with known truth."""

import numpy as np
from unlearning_audit.stats import jackknife, paired, pseudo


def left_out(cells, combine=lambda x: x):
    """Means over samples from all groups, then without each: [1 + groups, 1, samples]."""
    groups = len(cells)
    return np.stack([cells.mean(axis=0), *(cells[np.arange(groups) != g].mean(axis=0) for g in range(groups))])[:, None]


def test_a_mean_gives_back_what_is_averaged():
    cells = np.random.default_rng(0).normal(size=(5, 30))
    value, influence = pseudo.of_means(per_sample=left_out(cells), combine=lambda x: x)
    np.testing.assert_allclose(value, cells.mean(axis=1))
    np.testing.assert_allclose(influence, (cells - cells.mean(axis=1, keepdims=True)) / 30, atol=1e-14)


def test_a_function_of_means_has_its_own_value_and_the_variances_of_the_jackknife():
    rng = np.random.default_rng(1)
    top, bottom = rng.normal(2, 1, (8, 40)), rng.normal(5, 1, (8, 40))
    per_sample = np.concatenate([left_out(top), left_out(bottom)], axis=1)
    value, influence = pseudo.of_means(per_sample=per_sample, combine=lambda a, b: a / b)
    distances = paired.distances(value=value[None], influence=influence[None], unit=np.arange(8))
    np.testing.assert_allclose(distances.value, top.mean() / bottom.mean())
    at = per_sample.mean(axis=-1)
    of_groups = jackknife.jackknife_variance(at[1:, 0] / at[1:, 1])
    np.testing.assert_allclose(distances.units.between, of_groups, rtol=0.01)  # equal to second order
    delta = (top - distances.value * bottom) / bottom.mean()
    np.testing.assert_allclose(distances.sampled, delta.mean(axis=0).var() / 40, rtol=0.1)


def test_differences_of_ratios_cover_the_truth():
    """F/F₀ of two methods on the same groups and samples: of skewed points that share what samples and groups do."""
    rng, audits, inside = np.random.default_rng(2), 300, 0
    for _ in range(audits):
        shared = rng.exponential(size=(1, 60)) * rng.gamma(20, 1 / 20, (8, 1))
        cells = [mean * shared * rng.gamma(4, 1 / 4, (8, 60)) for mean in (0.10, 0.16, 0.20)]
        null = left_out(cells[2])
        both = [
            pseudo.of_means(per_sample=np.concatenate([left_out(table), null], axis=1), combine=lambda a, b: a / b)
            for table in cells[:2]
        ]
        value, influence = (np.stack([part[i] for part in both]) for i in (0, 1))
        gap = paired.distances(value=value, influence=influence, unit=np.arange(8)).of([[1, -1]])
        inside += abs(gap.value[0] + 0.3) <= gap.half_widths()[0]
    assert inside / audits >= 0.93 - 3.1 * np.sqrt(0.93 * 0.07 / audits)
