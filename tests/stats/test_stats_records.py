"""Records that are still recognised: exact p-values, and how many of a list are false."""

import numpy as np
import pytest
from scipy import stats as reference
from unlearning_audit.stats import records


def test_p_values_by_hand():
    p_values = records.conformal(score=np.array([9.0, 2.0, 0.0]), heldout=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(p_values, [1 / 4, 3 / 4, 1.0])
    for score, heldout in (([np.nan], [1.0]), ([1.0], [np.nan]), ([1.0], [])):
        with pytest.raises(ValueError, match="held-out scores"):
            records.conformal(score=np.array(score), heldout=np.array(heldout))


def test_the_p_value_of_a_group_is_that_of_simes():
    p = np.array([0.9, 0.5, 0.02, 0.03, 0.2])
    names, combined = records.simes(p=p, group=np.array(["b", "a", "b", "b", "b"]))
    assert names.tolist() == ["a", "b"]
    np.testing.assert_allclose(combined, [0.5, 4 * 0.03 / 2])


def test_the_list_is_that_of_scipy():
    for seed in range(3):
        p = np.random.default_rng(seed).random(200) ** 3
        np.testing.assert_array_equal(records.discoveries(p=p), reference.false_discovery_control(p) <= 0.1)
    assert not records.discoveries(p=np.full(5, 0.9)).any()


def lists(draw, remembered, audits):
    """The false share of lists of ``draw``'s p-values, and how much of the ``remembered`` first ones is listed."""
    marks = np.array([records.discoveries(p=draw()) for _ in range(audits)])
    false = marks[:, remembered:].sum(axis=1) / np.maximum(marks.sum(axis=1), 1)
    assert false.mean() <= 0.1 + 3.1 * false.std() / np.sqrt(audits)
    return marks[:, :remembered].mean() if remembered else marks.any(axis=1).mean()


@pytest.mark.parametrize("remembered", [0, 12, 60])
def test_at_most_a_tenth_of_a_list_is_false_though_records_depend_on_each_other(remembered):
    """400 forgotten and 400 held-out records whose scores share factors; so many are fully remembered."""
    rng, audits = np.random.default_rng(remembered), 400

    def draw():
        score = rng.standard_normal((800, 3)) @ rng.standard_normal(3) + rng.standard_t(4, 800)
        score[:remembered] += 30
        return records.conformal(score=score[:400], heldout=score[400:])

    power = lists(draw, remembered, audits)
    assert power > 0.9 if remembered >= 60 else True
    if not remembered:
        assert power <= 0.1 + 3.1 * 0.3 / np.sqrt(audits)  # retraining lists nothing in nine of ten


@pytest.mark.parametrize(("models", "references"), [(1, 3), (3, 10)])
def test_against_retrained_models_at_most_a_tenth_of_a_list_is_false(models, references):
    """Models share what they do to all records, so that the records' p-values depend on each other."""
    rng = np.random.default_rng(references)

    def draw():
        shared = 0.5 * rng.standard_normal((models + references, 1)) * rng.standard_normal(200)
        phi = rng.standard_normal(200) + shared + rng.standard_normal((models + references, 200))
        phi[:models, :40] += 12.0
        return records.against_retrained(audited=phi[:models], retrained=phi[models:])

    assert lists(draw, 40, 300) > (0.9 if references == 10 else 0.5)


def test_p_values_against_retrained_models_by_hand():
    """Of two models against three t has two degrees of freedom, whose tail is ½ − t/(2√(2 + t²))."""
    audited = np.array([[3.0, 0.0, 5.0, -3.0], [5.0, 0.0, 5.0, -5.0]])
    retrained = np.array([[-1.0, -1.0, 5.0, -1.0], [0.0, 0.0, 5.0, 0.0], [1.0, 1.0, 5.0, 1.0]])
    t = 4 / np.sqrt(1 / 2 + 1 / 3)
    more = t / (2 * np.sqrt(2 + t**2))
    p = records.against_retrained(audited=audited, retrained=retrained)
    np.testing.assert_allclose(p, [0.5 - more, 0.5, 0.5, 0.5 + more])
    for one, other in ((0.0, np.inf), (np.nan, 0.0)):
        with pytest.raises(ValueError, match="finite"):
            records.against_retrained(audited=np.array([[one]]), retrained=np.array([[other], [0.0]]))
