"""KLOM by hand, and how often retrained models are called different by it."""

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.metrics import _klom, competition
from unlearning_audit.stats import klom, paired


def test_two_bins_by_hand():
    """Of four retrained models three lie in the upper half, of four unlearned ones one."""
    actual = klom.divergence(margin=np.array([[0.0, 1], [0, 1], [0, 1], [1, 1]]),
                             reference=np.array([[0.0, 1], [1, 1], [1, 1], [1, 1]]), bins=2)  # fmt: skip
    np.testing.assert_allclose(actual, [0.25 * np.log(1 / 3) + 0.75 * np.log(3), 0.0], atol=1e-12)


def test_four_bins_of_width_one_by_hand():
    margin, reference = (np.array(x, float)[:, None] for x in ([0, 1, 3, 4], [0, 0, 2.5, 4]))
    first, second = np.array([0.25, 0.25, 0.05, 0.5]) / 1.05, np.array([0.5, 0.05, 0.25, 0.25]) / 1.05
    expected = (second * np.log(second / first)).sum()
    for scale, shift in ((1, 0), (3, -7)):  # bins go with the margins
        sides = {"margin": scale * margin + shift, "reference": scale * reference + shift}
        (value,) = klom.divergence(**sides, bins=4, least=0.05)
        assert value == pytest.approx(expected)


def test_margins_of_other_samples_are_refused_by_both_shapes():
    with pytest.raises(ValueError, match=r"of the same samples, not \(5, 2\), \(4, 3\)$"):
        klom.divergence(margin=np.zeros((5, 2)), reference=np.zeros((4, 3)))


@pytest.mark.parametrize("shape", [(2,), (2, 2, 2)])
def test_margins_are_of_models_and_samples_on_either_side(shape):
    for margin, reference in ((np.ones(shape), np.ones((2, 2))), (np.ones((2, 2)), np.ones(shape))):
        with pytest.raises(ValueError, match=r"margins must be \[models, samples\]"):
            klom.divergence(margin=margin, reference=reference)


def test_what_overlaps_nowhere_costs_the_logarithm_of_the_least_share():
    margin, reference = np.zeros((5, 1)), np.ones((5, 1))
    np.testing.assert_allclose(klom.divergence(margin=margin, reference=reference), np.log(1e5), rtol=1e-3)


@pytest.mark.parametrize(("margin", "words"), [(np.ones((2, 3)), "same samples"), (np.full((2, 2), np.inf), "finite")])
def test_margins_that_are_none_are_refused(margin, words):
    with pytest.raises(ValueError, match=words):
        klom.divergence(margin=margin, reference=np.ones((2, 2)))


def distance(u, r, control):
    """What decides, read as verdicts read it."""
    part = _klom.contributions(u, r, control, np.arange(u.shape[1]), competition.Options(groups=8))["klom"]
    return paired.distances(value=part.value, influence=part.influence, unit=part.unit)


def populations(rng, models=32, samples=100, shift=0.0):
    hard = 2 * rng.standard_normal(samples)
    u, r, control = (
        hard + rng.standard_normal((models, samples)) + 0.3 * rng.standard_normal((models, 1)) for _ in range(3)
    )
    return u + shift, r, control


def test_retrained_models_are_called_different_as_rarely_as_promised():
    rng, audits = np.random.default_rng(1), 100
    wrong = np.mean([distance(*populations(rng)).p_values()[0] <= 0.05 for _ in range(audits)])
    assert wrong <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / audits)


def test_a_shift_of_one_standard_deviation_is_found_and_retraining_shown():
    rng = np.random.default_rng(2)
    assert np.mean([distance(*populations(rng, shift=1.0)).p_values()[0] <= 0.01 for _ in range(20)]) >= 0.9
    same = distance(*populations(rng))
    assert abs(same.value[0]) + same.half_widths(level=0.9)[0] < 0.1


def test_rows_say_what_they_compare():
    u, r, control = populations(np.random.default_rng(3), shift=1.0)
    rows = {row.metric: row for row in _klom.rows(u, r, control, competition.Options(groups=8))}
    assert rows["klom"].value > rows["klom_null"].value
    assert rows["klom_p95"].value > rows["klom"].value
    assert "independent" in rows["klom"].note
    assert "interval over samples" in rows["klom_p95"].note
    assert _klom.rows(u[:2], r, control, competition.Options()) == []


def test_half_of_the_retrained_models_stand_in_for_an_independent_population():
    u, r, _ = populations(np.random.default_rng(4), shift=1.0)
    options = competition.Options(groups=8)
    halves, others = _klom.rows(u[:16], r, None, options), _klom.rows(u[:16], r[:16], r[16:], options)
    assert [(row.metric, row.value, row.ci_low) for row in halves[3:]] == [
        (row.metric, row.value, row.ci_low) for row in others[3:]
    ]
    assert [rows[0].models for rows in (halves, others)] == [16, 8], "retraining has halves alone"
    assert halves[3].note == "16 models of each kind; null from halves of the retrained models"
    assert _klom.rows(u[:3], r[:6], None, options)
    assert not _klom.rows(u[:3], r[:5], None, options)


@pytest.mark.parametrize(("models", "skill"), [(3, 0.3), (10, 0.3)])
def test_intervals_of_the_mean_and_its_null_cover_where_models_differ_in_skill(models, skill):
    """What KLOM estimates is its own mean for this number of models, taken here from all audits."""
    rng, audits, read = np.random.default_rng(5), 100, {"klom": [], "klom_null": []}
    for _ in range(audits):
        hard = 2 * rng.standard_normal(50)
        sides = hard + rng.standard_normal((3, models, 50)) + skill * rng.standard_normal((3, models, 1))
        for row in _klom.rows(*sides, competition.Options()):
            if row.metric in read:
                read[row.metric].append((row.value, row.ci_low, row.ci_high))
    for value, low, high in (np.transpose(rows) for rows in read.values()):
        inside = np.mean((low <= value.mean()) & (value.mean() <= high))
        assert inside >= 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / audits)


@pytest.mark.parametrize("models", [3, 5])
def test_few_retrained_models_are_called_different_as_rarely_as_promised(models):
    rng, audits = np.random.default_rng(6), 150
    wrong = np.mean([
        distance(*populations(rng, models=models, samples=50)).p_values()[0] <= 0.05 for _ in range(audits)
    ])  # fmt: skip
    assert wrong <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / audits)


def test_the_interval_of_the_percentile_covers_that_of_all_samples_of_the_same_models():
    """Of 20,000 samples that a pair of populations might be asked about, 300 are drawn; 400 draws."""
    rng, audits = np.random.default_rng(7), 400
    sides = rng.standard_normal((2, 20, 20_000)) + 0.5 * rng.standard_normal((2, 20, 1))
    value = klom.divergence(margin=sides[0], reference=sides[1])
    truth = np.quantile(value, 0.95)
    draws = [stats.quantile_interval(values=rng.choice(value, 300), share=0.95) for _ in range(audits)]
    inside = np.mean([draw.low <= truth <= draw.high for draw in draws])
    assert inside >= 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / audits)


def test_the_interval_of_a_quantile_covers_it():
    rng, audits = np.random.default_rng(4), 2000
    intervals = [stats.quantile_interval(values=rng.standard_exponential(200), share=0.95) for _ in range(audits)]
    truth = -np.log(0.05)
    assert np.mean([interval.low <= truth <= interval.high for interval in intervals]) >= 0.94
    assert {interval.note for interval in intervals} == {""}
    few = stats.quantile_interval(values=np.arange(10.0), share=0.95)
    assert (np.isnan(few.high), few.note) == (True, "10 values are too few for a limit on one side")


@pytest.mark.parametrize(("count", "low", "high"), [(5, np.nan, np.nan), (6, 1.0, 6.0), (8, 1.0, 8.0), (20, 6.0, 15.0)])
def test_the_interval_of_a_median_is_that_of_order_statistics(count, low, high):
    """As tables of the sign test have it, and the same from either end."""
    values = 1.0 + np.arange(count)
    interval = stats.quantile_interval(values=values, share=0.5)
    np.testing.assert_equal([interval.low, interval.high], [low, high])
    turned = stats.quantile_interval(values=-values, share=0.5)
    np.testing.assert_equal([-turned.high, -turned.low], [low, high])


def read(u, r, control):
    found = _klom.rows(u, r, control, competition.Options(groups=8))
    return {row.metric: row for row in found}


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_samples_of_one_distribution_read_alike_with_twenty_and_with_forty_models(shift):
    """Twenty and forty unlearned models, and retraining itself, which is read by its halves: twenty models each."""
    rng = np.random.default_rng(4)
    values = []
    for _ in range(12):
        u, r, control = populations(rng, models=40, shift=shift)
        few, many, itself = read(u[:20], r, control), read(u, r, control), read(r, control, None)
        assert {few["klom"].models, many["klom"].models, itself["klom"].models} == {20}
        assert few["klom"].value == many["klom"].value
        rows = few["klom_over_null"], many["klom_over_null"]
        assert [row.models for row in rows] == [20, 40]
        values.append([row.value for row in rows] + [itself["klom"].value - few["klom_null"].value])
    few, many, itself = np.transpose(values)
    assert abs(itself.mean()) < 4 * itself.std(ddof=1) / np.sqrt(len(itself))
    if not shift:
        for each in (few, many):
            assert abs(each.mean()) < 4 * each.std(ddof=1) / np.sqrt(len(each))
    else:
        assert min(few.mean(), many.mean()) > 0.2


def test_the_distance_of_a_verdict_is_the_difference_of_two_rows():
    u, r, control = populations(np.random.default_rng(5), shift=0.7)
    rows = read(u, r, control)
    over = rows["klom_coarse"].value - rows["klom_coarse_null"].value
    assert rows["klom_over_null"].value == pytest.approx(over, abs=1e-12)
    part = _klom.contributions(u, r, control, np.arange(u.shape[1]), competition.Options(groups=8))["klom"]
    assert part.value.mean() == pytest.approx(over, abs=1e-12)


def test_a_mean_that_its_cap_dominates_says_so():
    """Of four bins one holds reference models alone: by hand, and of margins that overlap nowhere or wholly."""
    margin, reference = (np.array(x, float)[:, None] for x in ([0, 0, 19, 19], [0, 0, 19, 5]))
    (part,) = klom.of_empty_bins(margin=margin, reference=reference)
    assert part == pytest.approx(0.25 * np.log(0.25 / 1e-5), rel=1e-3)
    r = np.random.default_rng(6).uniform(size=(800, 3))
    assert "100% of it comes from bins without a model" in read(r[:10] + 9, r[10:30], None)["klom"].note
    assert "bins without a model" not in read(r[:400], r[400:], None)["klom"].note
