"""KLOM of unlearned models and its null: which models are compared, and how often chance is called different."""

import numpy as np
import pytest
from unlearning_audit.metrics import _klom, competition
from unlearning_audit.stats import klom, paired

from slow_cases import slow

OPTIONS = competition.Options(groups=8)
DRAW = np.random.default_rng(0).normal
U, R, CONTROL = DRAW(1, 1, (12, 9)), DRAW(0, 1, (12, 9)), DRAW(0, 1, (12, 9))


def read(*populations):
    """Metric → row of unlearned, retrained and other retrained models."""
    return {row.metric: row for row in _klom.rows(populations, OPTIONS)}


@pytest.mark.parametrize(
    ("independent", "deciding", "note"),
    [(None, (U[:6], R[:6], R[6:]), "halves of the retrained models"),
     (CONTROL, (U, R, CONTROL), "an independent population")],
    ids=["halves", "others"],
)  # fmt: skip
def test_unlearned_models_and_others_are_held_against_the_same_retrained_ones(independent, deciding, note):
    def against(audited, reference, **bins):
        return klom.divergence(margin=audited, reference=reference, **bins).mean()

    rows, (audited, reference, control) = read(U, R, independent), deciding  # published bins: of six models each
    coarse = [against(side, reference, **_klom.DECIDING) for side in (audited, control)]
    assert {name: row.value for name, row in rows.items() if name != "klom_p95"} == pytest.approx({
        "klom": against(U[:6], R[:6]), "klom_null": against(control[:6], R[:6]), "klom_coarse": coarse[0],
        "klom_coarse_null": coarse[1], "klom_over_null": coarse[0] - coarse[1],
    })  # fmt: skip
    assert [rows[name].models for name in ("klom", "klom_over_null")] == [6, len(audited)]
    assert rows["klom_over_null"].note == f"{len(audited)} models of each kind; null from {note}"
    assert rows["klom_p95"].value > rows["klom"].value
    assert "interval over samples" in rows["klom_p95"].note
    part = _klom.effects((U, R, independent), np.arange(9), OPTIONS)["klom"]
    assert part.value.mean() == pytest.approx(coarse[0] - coarse[1])


@pytest.mark.parametrize(
    ("unlearned", "independent", "halves", "models"),
    [(4, None, False, 4), (9, None, False, 6), (9, 7, False, 7), (9, 7, True, 3), (9, 5, True, 5), (4, 12, True, 4)],
)
def test_as_many_models_of_each_kind_are_compared_as_all_have(unlearned, independent, halves, models):
    control = independent and CONTROL[:independent]
    *sides, note = _klom.compared((U[:unlearned], R, control), halves=halves)
    expected = U[:models], R[:models], R[models : 2 * models] if control is None else CONTROL[:models]
    for actual, values in zip(sides, expected, strict=True):
        np.testing.assert_array_equal(actual, values)
    assert note.startswith(f"{models} models of each kind")


@pytest.mark.parametrize("few", [(U, R[:5], None), (U, R, CONTROL[:2]), (U[:2], R, CONTROL)])
def test_two_models_of_a_kind_say_nothing(few):
    assert _klom.rows(few, OPTIONS) == []
    assert _klom.effects(few, np.arange(9), OPTIONS) == {}


def distance(u, r, control):
    """What decides, read as verdicts read it."""
    part = _klom.effects((u, r, control), np.arange(u.shape[1]), OPTIONS)["klom"]
    return paired.distances(value=part.value, influence=part.influence, unit=part.unit)


def populations(rng, models=32, samples=100, shift=0.0, skill=0.3):
    hard = 2 * rng.standard_normal(samples)
    sides = hard + rng.standard_normal((3, models, samples)) + skill * rng.standard_normal((3, models, 1))
    return sides[0] + shift, *sides[1:]


@pytest.mark.parametrize(("models", "samples", "audits"), [(3, 50, 100), *slow((5, 50, 150), (32, 100, 100))])
def test_retrained_models_are_called_different_as_rarely_as_promised(models, samples, audits):
    rng = np.random.default_rng(6)
    p = [distance(*populations(rng, models=models, samples=samples)).p_values()[0] for _ in range(audits)]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / audits)


def test_a_shift_of_one_standard_deviation_is_found_and_retraining_shown():
    rng = np.random.default_rng(2)
    assert np.mean([distance(*populations(rng, shift=1.0)).p_values()[0] <= 0.01 for _ in range(20)]) >= 0.9
    same = distance(*populations(rng))
    assert abs(same.value[0]) + same.half_widths(level=0.9)[0] < 0.1


@pytest.mark.parametrize("models", [3, *slow(10)])
def test_intervals_of_the_mean_and_its_null_cover_where_models_differ_in_skill(models):
    """What KLOM estimates is its own mean for this number of models, taken here from all audits."""
    rng, audits = np.random.default_rng(5), 50
    tables = [read(*populations(rng, models=models, samples=50)) for _ in range(audits)]
    for name in ("klom", "klom_null"):
        rows = [table[name] for table in tables]
        truth = np.mean([row.value for row in rows])
        inside = np.mean([row.ci_low <= truth <= row.ci_high for row in rows])
        assert inside >= 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / audits)


def test_a_mean_that_its_cap_dominates_says_so():
    """Margins that overlap nowhere or wholly."""
    r = np.random.default_rng(6).uniform(size=(800, 3))
    u, v = r[:9] + 0.5, r[9:18]
    share = klom.of_empty_bins(margin=u, reference=v).mean() / klom.divergence(margin=u, reference=v).mean()
    assert f"{share:.0%} of it comes from bins without a model" in read(u, r[9:27], None)["klom"].note
    assert "bins without a model" not in read(r[:400], r[400:], None)["klom"].note
