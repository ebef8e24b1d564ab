"""Holm's correction and the family of a scenario, verdicts exactly at their bounds, and shares closed."""

import numpy as np
import pytest
from scipy import special
from unlearning_audit.stats import Estimate, decide, paired, ratio
from unlearning_audit.stats.decide import Distance, adjusted_p, classify, holm

from stat_cases import at_most, normal, numbers, three

MARGIN = (-0.05, 0.04)


def distance(value, half=0.01, *, inner=None, metric="auc", two_sided=True, broken=0.1, least=None):
    ends = value - half, value + half
    loss = {"breaking_loss": broken, "lower_limit": ends[0] if least is None else least}
    return Distance(metric, Estimate(value, *ends, 100), inner or ends, MARGIN, two_sided=two_sided, **loss)


def verdict(*deciding, p=None, utility=(), coarse=()):
    """(class, number, p-value, note) of a method."""
    p_holm = [1.0] * len(deciding) if p is None else p
    return tuple(vars(classify(deciding=deciding, p_holm=p_holm, utility=utility, coarse=coarse)).values())


def test_holm_by_hand():
    """p/w: .04/3 < .02 < .03; of the weight 5 all is left, then 2, then 1."""
    np.testing.assert_allclose(holm(p=np.array([0.04, 0.01, 0.03])), [0.06, 0.03, 0.06])
    np.testing.assert_allclose(holm(p=np.array([[0.5, 0.9], [0.001, 0.3]])), [[1.0, 1.0], [0.004, 0.9]])
    np.testing.assert_allclose(holm(p=np.array([np.nan, 0.02, np.nan, 0.02])), [np.nan, 0.04, np.nan, 0.04])
    weight = np.array([1.0, 3.0, 1.0])
    np.testing.assert_allclose(holm(p=np.array([0.02, 0.04, 0.03]), weight=weight), [5 * 0.04 / 3] * 3)
    np.testing.assert_allclose(holm(p=np.array([0.02, 0.001, 0.03]), weight=7 * weight), [0.04, 0.005 / 3, 0.04])


def correlated(audits, false):
    """Two-sided p-values of twelve correlated tests, of which the first ``false`` ones are of what is not true."""
    rng = np.random.default_rng(1)
    z = 0.7 * rng.standard_normal((audits, 1)) + np.sqrt(0.51) * rng.standard_normal((audits, 12))
    z[:, :false] += 4
    return 2 * special.ndtr(-np.abs(z))


@pytest.mark.parametrize("false", [0, 1, 5])
def test_a_family_is_called_falsely_as_rarely_as_promised(false):
    audits, tests = 1500, np.arange(12)
    p = correlated(audits, false)
    rejections = np.array([adjusted_p(p=row, nothing=tests == 0, retrained=tests > 9) <= 0.05 for row in p])
    assert rejections[:, false:].any(axis=1).mean() <= at_most(0.05, audits)
    assert rejections[:, 10:].any(axis=1).mean() <= at_most(0.005, audits)


@pytest.mark.parametrize(
    ("p", "kinds", "expected"),
    [
        # .02/2 < .03 < .04 with 4, 2 and 1 of the weight left
        ([0.02, 0.03, 0.04], "nmm", [0.04, 0.06, 0.06]),
        # two tests of doing nothing share the half: .01/½ < .04 < .2/½ with 2, 1½ and ½ of the weight left
        ([0.01, 0.2, 0.04], "nnm", [0.04, 0.2, 0.06]),
        # the two tests of controls have a twentieth of α each, and the others nine tenths
        ([0.02, 0.03, 0.04, 0.004, 0.2, np.nan], "nmmrrr", [0.04 / 0.9, 0.06 / 0.9, 0.06 / 0.9, 0.08, 1.0, np.nan]),
        ([0.001, 0.002, 0.01, np.nan, 0.04, 0.03], "nnrmmm", np.array([0.004, 0.006, 0.09, np.nan, 0.06, 0.06]) / 0.9),
        # of one kind alone as Holm has it, and at most 1
        ([0.01, 0.04, 0.99], "nnn", [0.03, 0.08, 0.99]),
        ([0.01, 0.04, 0.99], "mmm", [0.03, 0.08, 0.99]),
        ([0.99, 0.99], "rm", [1, 1]),
        ([], "", []),
    ],
)
def test_a_family_shares_alpha_between_controls_nothing_and_methods(p, kinds, expected):
    nothing, retrained = (np.array([kind == name for kind in kinds], bool) for name in "nr")
    np.testing.assert_allclose(adjusted_p(p=np.array(p), nothing=nothing, retrained=retrained), expected)


def test_an_interval_that_touches_the_margin_is_not_within():
    assert distance(0.0, inner=(-0.049, 0.039)).within
    for inner in ((-0.05, 0.0), (0.0, 0.04), (-0.06, 0.0), (0.0, 0.05), (np.nan, 0.0), (0.0, np.nan)):
        assert not distance(0.0, inner=inner).within


def test_a_model_is_broken_only_if_its_whole_loss_lies_above_the_bound():
    for least, bound, expected in ((0.1, 0.1, "inconclusive"), (0.11, 0.1, "broken"), (0.11, 0.11, "inconclusive")):
        lost = distance(0.2, inner=(0.1, 0.3), least=least, broken=bound)
        assert verdict(distance(0.0), utility=[lost])[0] == expected
    lost = distance(0.2, metric="test")
    note = "test 0.200 worse than retraining"
    assert verdict(distance(0.0), distance(0.1), p=[0.5, 0.01], utility=[lost]) == ("broken", 1, 0.01, note)
    assert verdict(distance(0.0), utility=[distance(-0.3)])[0] == "inconclusive"


def test_a_p_value_of_alpha_is_significant():
    assert [verdict(distance(0.2), p=[p])[0] for p in (0.05, 0.0501)] == ["distinguishable", "inconclusive"]


def test_the_side_of_a_distance_is_its_sign_where_it_has_a_far_side():
    assert verdict(distance(-0.2), p=[0.01])[0] == "over_unlearned"
    assert verdict(distance(-0.2, two_sided=False), p=[0.01])[0] == "distinguishable"
    assert verdict(distance(0.0, inner=(-0.1, 0.1)), p=[0.01])[0] == "distinguishable"
    deciding = distance(-0.2), distance(-0.3, two_sided=False, metric="f"), distance(-0.3, metric="q")
    assert verdict(*deciding, p=[0.01] * 3) == ("over_unlearned", 0, 0.01, "in the opposite direction by f")
    assert verdict(distance(0.2), distance(0.3, metric="q"), p=[0.02, 0.01]) == ("distinguishable", 1, 0.01, "")


def test_what_is_inconclusive_says_which_distances_may_lie_outside():
    result = verdict(distance(0.0), distance(0.06, metric="q"), utility=[distance(0.05, metric="test")], p=[0.2, 0.3])
    assert result == ("inconclusive", 1, 0.3, "not shown to be within the margin: q, test")


def test_equivalent_speaks_by_the_widest_and_names_what_is_significant():
    deciding = distance(0.0), distance(-0.03, metric="q"), distance(0.01, metric="f")
    note = "distinguishable by auc, f, within the margin"
    assert verdict(*deciding, p=[0.01, 0.3, 0.02]) == ("equivalent", 1, 0.3, note)
    assert verdict(distance(0.0)) == ("equivalent", 0, 1.0, "")


def test_the_widest_distance_is_measured_in_its_own_margins():
    """.036/.04 is further than −.044/.05, and what is unknown further than all."""
    far, near = distance(0.0, inner=(-0.044, 0.0)), distance(0.0, inner=(0.0, 0.036))
    assert [verdict(*both)[1] for both in ((far, near), (near, far), (near, distance(np.nan), far))] == [1, 0, 1]


def test_a_coarse_metric_neither_blocks_equivalence_nor_speaks_for_it():
    wide, still = distance(0.0, 0.5, metric="coarse"), distance(0.0, inner=(0.0, 0.0))
    assert verdict(wide, still, p=[0.6, 0.5])[0] == "inconclusive"
    assert verdict(wide, still, p=[0.6, 0.5], coarse={"coarse"}) == ("equivalent", 1, 0.5, "")
    far = distance(0.6, 0.5, metric="coarse")
    assert verdict(distance(0.0), far, p=[0.5, 1e-3], coarse={"coarse"})[0] == "distinguishable"


def test_no_difference_from_doing_nothing_is_like_it():
    limits = {(0.0, 0.1): "like", (-0.1, 0.0): "like", (0.01, 0.1): "better", (-0.2, -0.01): "worse", (1, np.nan): ""}
    assert {pair: decide.against_none(closer=Estimate(0.0, *pair, 5)) for pair in limits} == limits


@pytest.mark.parametrize("method", [0.2, 1.6, -0.3])
def test_a_share_is_fieller_s_of_units(method):
    """With numbers per unit alone, with n − 1 degrees of freedom, by the closed form of Fieller (1954) for 1 − a/b."""
    values = np.random.default_rng(5).normal(size=(2, 12)) * 0.1 + np.array([[method], [0.5]])
    read = paired.distances(value=values, influence=np.zeros((2, 12, 0)), unit=np.arange(12))
    (a, b), covariance, t = values.mean(axis=1), np.cov(values) / 12, special.stdtrit(11, 0.975)
    square = [b**2 - t**2 * covariance[1, 1], -2 * (a * b - t**2 * covariance[0, 1]), a**2 - t**2 * covariance[0, 0]]
    low, high = sorted(np.roots(square))
    share = ratio.share_closed(distances=read, significant=True)
    np.testing.assert_allclose(three(share), [1 - a / b, 1 - high, min(1 - low, 1.0)], rtol=1e-6)
    assert (share.n, share.note) == (read.design.samples, read.note)


def test_the_largest_of_several_distances_is_wider_towards_0_by_its_factor():
    """The test of whether cos·method − sin·none lies above 0, at λ = tan, is 1 + (factor − 1)·cos times as wide."""
    share = ratio.share_closed(distances=normal([3.0, 0.5], [0.5, 0.05]), significant=True, factor=1.5)
    alone = ratio.share_closed(distances=normal([3.0, 0.5], [0.5, 0.05]), significant=True)
    slope = 1 - share.high
    wider = 1 + 0.5 / np.hypot(1, slope)
    assert (3 - slope * 0.5) / np.hypot(0.5, slope * 0.05) == pytest.approx(wider * 1.959964, rel=1e-3)
    assert share.low == alone.low


def test_a_share_that_cannot_be_read_says_why():
    exact = ratio.share_closed(distances=normal([0.1, 0.4], [0.0, 0.0]), significant=True)
    assert three(exact) == pytest.approx([0.75] * 3, abs=1e-9)
    read = numbers([0.1, 0.2], np.full((2, 4), 0.1), design=(2, 1.0, 2.0, 4))
    for undefined in (ratio.share_closed(distances=read, significant=False),
                      ratio.share_closed(distances=read.combined(-np.eye(2)), significant=True)):  # fmt: skip
        np.testing.assert_equal(undefined.value, np.nan)
        assert (undefined.n, undefined.note) == (4, ratio.UNDEFINED)
    unbounded = ratio.share_closed(distances=read, significant=True)
    np.testing.assert_equal(three(unbounded), [0.5, np.nan, np.nan])
    assert (unbounded.n, unbounded.note) == (4, f"{read.note}; {ratio.UNBOUNDED}")
