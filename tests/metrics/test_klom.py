"""KLOM of unlearned models and its null: which models are compared, and how often chance is called different."""

import numpy as np
import pytest
from unlearning_audit.metrics import _klom, competition
from unlearning_audit.stats import klom, paired

OPTIONS = competition.Options()
DRAW = np.random.default_rng(0).normal
U, R, CONTROL = DRAW(1, 1, (12, 9)), DRAW(0, 1, (12, 9)), DRAW(0, 1, (12, 9))


def mean(u, r, **bins):
    return klom.divergence(margin=u, reference=r, **bins).mean()


@pytest.mark.parametrize(
    ("independent", "reference", "control"),
    [(None, R[:6], R[6:]), (CONTROL, R[:6], CONTROL[:6])],
    ids=["halves", "others"],
)
def test_unlearned_models_and_others_are_held_against_the_same_retrained_ones(independent, reference, control):
    values = {row.metric: row.value for row in _klom.rows(U, R, independent, OPTIONS)}
    assert values["klom"] == pytest.approx(mean(U[:6], reference))
    assert values["klom_null"] == pytest.approx(mean(control, reference))
    sides = (U[:6], R[:6], R[6:]) if independent is None else (U, R, CONTROL)
    coarse = [mean(side, sides[1], **_klom.DECIDING) for side in (sides[0], sides[2])]
    assert [values["klom_coarse"], values["klom_coarse_null"]] == pytest.approx(coarse)
    assert values["klom_over_null"] == pytest.approx(coarse[0] - coarse[1])
    part = _klom.contributions(U, R, independent, np.arange(9), OPTIONS)["klom"]
    assert part.value.mean() == pytest.approx(coarse[0] - coarse[1])


@pytest.mark.parametrize(
    ("unlearned", "independent", "halves", "models"),
    [(4, None, False, 4), (9, None, False, 6), (9, 7, False, 7), (9, 7, True, 3), (9, 5, True, 5), (4, 12, True, 4)],
)
def test_as_many_models_of_each_kind_are_compared_as_all_have(unlearned, independent, halves, models):
    control = independent and CONTROL[:independent]
    u, reference, other, note = _klom._sides(U[:unlearned], R, control, halves=halves)
    expected = U[:models], R[:models], R[models : 2 * models] if control is None else CONTROL[:models]
    for actual, values in zip((u, reference, other), expected, strict=True):
        np.testing.assert_array_equal(actual, values)
    assert note.startswith(f"{models} models of each kind")


@pytest.mark.parametrize(("retrained", "independent"), [(R[:5], None), (R, CONTROL[:2])])
def test_two_models_of_a_kind_say_nothing(retrained, independent):
    assert _klom.rows(U, retrained, independent, OPTIONS) == []
    assert _klom.contributions(U, retrained, independent, np.arange(9), OPTIONS) == {}


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


def test_a_mean_that_its_cap_dominates_says_so():
    """Margins that overlap nowhere or wholly."""
    r = np.random.default_rng(6).uniform(size=(800, 3))
    assert "100% of it comes from bins without a model" in read(r[:10] + 9, r[10:30], None)["klom"].note
    assert "bins without a model" not in read(r[:400], r[400:], None)["klom"].note
