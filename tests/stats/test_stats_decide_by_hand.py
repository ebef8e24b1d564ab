"""Verdicts exactly at their bounds, the sentences beside them, and shares closed at another level."""

import numpy as np
import pytest
from scipy import special
from unlearning_audit.stats import Estimate, decide, paired, ratio
from unlearning_audit.stats.decide import Distance, classify, family, holm, within

MARGIN = (-0.05, 0.04)


def distance(value, half=0.01, *, inner=None, metric="auc", **more):
    inner = inner or (value - half, value + half)
    return Distance(
        metric,
        Estimate(value, value - half, value + half, 100),
        inner,
        MARGIN,
        **{"broken": 0.1, "least": value - half, **more},
    )


def verdict(*deciding, p=None, utility=(), **more):
    return classify(deciding=deciding, p_holm=[1.0] * len(deciding) if p is None else p, utility=utility, **more)


@pytest.mark.parametrize("weight", [[0.0, 1.0], [-1.0, 1.0]])
def test_weights_that_are_not_above_0_are_refused(weight):
    with pytest.raises(ValueError, match="must be above 0"):
        holm(p=np.array([0.1, 0.2]), weight=np.array(weight))


def test_a_family_by_hand():
    """.02/2 < .03 < .04 with 4, 2 and 1 of the weight left; the two tests of controls have a twentieth of α each."""
    p, none = np.array([0.02, 0.03, 0.04]), np.array([True, False, False])
    np.testing.assert_allclose(family(p=p, nothing=none, retrained=np.zeros(3, bool)), [0.04, 0.06, 0.06])
    # two tests of doing nothing share the half: .01/½ < .04 < .2/½ with 2, 1½ and ½ of the weight left
    p_adjusted = family(
        p=np.array([0.01, 0.2, 0.04]), nothing=np.array([True, True, False]), retrained=np.zeros(3, bool)
    )
    np.testing.assert_allclose(p_adjusted, [0.04, 0.2, 0.06])
    retrained = np.array([False, False, False, True, True, True])
    p_adjusted = family(p=np.array([*p, 0.004, 0.2, np.nan]), nothing=np.array([*none, *none]) & ~retrained,
                        retrained=retrained)  # fmt: skip
    np.testing.assert_allclose(p_adjusted, [0.04 / 0.9, 0.06 / 0.9, 0.06 / 0.9, 0.08, 1.0, np.nan])
    halves = family(p=np.array([0.01, 0.1]), nothing=np.array([True, False]), retrained=~np.array([True, False]),
                    share=0.5)  # fmt: skip
    np.testing.assert_allclose(halves, [0.02, 0.2])


@pytest.mark.parametrize("nothing", [True, False])
def test_a_family_of_one_kind_is_corrected_as_holm_s(nothing):
    p_adjusted = family(p=np.array([0.01, 0.04, 0.99]), nothing=np.full(3, nothing), retrained=np.zeros(3, bool))
    np.testing.assert_allclose(p_adjusted, [0.03, 0.08, 0.99])


def test_no_p_value_of_a_family_is_above_1():
    p_adjusted = family(p=np.array([0.99, 0.99]), nothing=np.zeros(2, bool), retrained=np.array([True, False]))
    np.testing.assert_array_equal(p_adjusted, [1, 1])


@pytest.mark.parametrize("inner", [(-0.05, 0.0), (0.0, 0.04), (-0.06, 0.0), (0.0, 0.05), (np.nan, 0.0), (0.0, np.nan)])
def test_an_interval_that_touches_the_margin_is_not_within(inner):
    assert not within(inner=inner, margin=MARGIN)
    assert within(inner=(-0.049, 0.039), margin=MARGIN)


@pytest.mark.parametrize("margin", [(-0.1, 0.0), (0.0, 0.1), (0.1, 0.2), (-0.2, -0.1)])
def test_a_margin_has_to_hold_0_inside(margin):
    with pytest.raises(ValueError, match=f"from {margin[0]:g} to {margin[1]:g}"):
        within(inner=(0.0, 0.0), margin=margin)


def test_a_model_is_broken_only_if_its_whole_loss_lies_above_the_bound():
    for low, expected in ((0.1, "inconclusive"), (0.11, "broken"), (0.09, "inconclusive")):
        lost = Distance("test", Estimate(0.2, -0.5, 0.9, 9), (0.1, 0.3), MARGIN, broken=0.1, least=low)
        result = verdict(distance(0.0), utility=[lost])
        assert result.verdict == expected
    perplexity = Distance("perplexity", Estimate(0.2, 0.11, 0.3, 9), (0.1, 0.3), MARGIN, broken=0.11, least=0.11)
    assert verdict(distance(0.0), utility=[perplexity]).verdict == "inconclusive"
    result = verdict(distance(0.0), distance(0.1), p=[0.5, 0.01], utility=[distance(0.2, metric="test")])
    assert (result.verdict, result.number, result.p_holm) == ("broken", 1, 0.01)
    assert result.note == "test 0.200 worse than retraining"


def test_a_p_value_of_alpha_is_significant():
    assert verdict(distance(0.2), p=[0.05]).verdict == "distinguishable"
    assert verdict(distance(0.2), p=[0.0501]).verdict == "inconclusive"
    assert verdict(distance(0.2), p=[0.0501], alpha=0.1).verdict == "distinguishable"


def test_the_side_of_a_distance_is_its_sign_where_it_has_a_far_side():
    assert verdict(distance(-0.2), p=[0.01]).verdict == "over_unlearned"
    assert verdict(distance(0.0, inner=(-0.1, 0.1)), p=[0.01]).verdict == "distinguishable"
    result = verdict(distance(-0.2), distance(-0.3, far=False, metric="f"), distance(-0.3, metric="q"), p=[0.01] * 3)
    assert (result.verdict, result.number, result.p_holm) == ("over_unlearned", 0, 0.01)
    assert result.note == "in the opposite direction by f"
    result = verdict(distance(0.2), distance(0.3, metric="q"), p=[0.02, 0.01])
    assert (result.verdict, result.number, result.note) == ("distinguishable", 1, "")


def test_what_is_inconclusive_says_which_distances_may_lie_outside():
    result = verdict(distance(0.0), distance(0.06, metric="q"), utility=[distance(0.05, metric="test")], p=[0.2, 0.3])
    assert (result.verdict, result.number, result.p_holm) == ("inconclusive", 1, 0.3)
    assert result.note == "not shown to be within the margin: q, test"


def test_equivalent_speaks_by_the_widest_and_names_what_is_significant():
    result = verdict(distance(0.0), distance(-0.03, metric="q"), distance(0.01, metric="f"), p=[0.01, 0.3, 0.02])
    assert (result.verdict, result.number, result.p_holm) == ("equivalent", 1, 0.3)
    assert result.note == "distinguishable by auc, f, within the margin"
    assert verdict(distance(0.0)).note == ""


def test_the_widest_distance_is_measured_in_its_own_margins():
    """.036/.04 is further than −.044/.05, and what is unknown further than all."""
    far, near = distance(0.0, inner=(-0.044, 0.0)), distance(0.0, inner=(0.0, 0.036))
    assert verdict(far, near, p=[0.5, 0.6]).p_holm == 0.6
    assert verdict(near, far, p=[0.6, 0.5]).p_holm == 0.6
    unknown = distance(np.nan)
    assert verdict(near, unknown, far, p=[0.5, np.nan, 0.5]).number == 1


def test_a_coarse_metric_does_not_speak_for_models_that_are_the_same():
    none = distance(0.0, inner=(0.0, 0.0))
    result = verdict(distance(0.0, 0.03, metric="coarse"), none, p=[0.6, 0.5], coarse={"coarse"})
    assert (result.verdict, result.number, result.p_holm) == ("equivalent", 1, 0.5)


@pytest.mark.parametrize(("deciding", "p"), [([], []), ([distance(0.0)], [0.1, 0.2])])
def test_each_deciding_distance_needs_its_p_value(deciding, p):
    with pytest.raises(ValueError, match=f"{len(deciding)} deciding"):
        classify(deciding=deciding, p_holm=p, utility=[])


def test_no_difference_from_doing_nothing_is_like_it():
    limits = {(0.0, 0.1): "like", (-0.1, 0.0): "like", (0.01, 0.1): "better", (-0.2, -0.01): "worse", (1, np.nan): ""}
    assert {pair: decide.against_none(closer=Estimate(0.0, *pair, 5)) for pair in limits} == limits


@pytest.mark.parametrize("level", [0.95, 0.5])
@pytest.mark.parametrize("method", [-0.3, 0.1, 0.4])
def test_a_share_is_fieller_s_of_samples(method, level):
    """Independent errors .1 and .05 of a method and of none at .5, of 4,000 samples."""
    n = 2000
    influence = np.zeros((2, 2 * n))
    influence[0, :n], influence[1, n:] = 0.1 / np.sqrt(n), 0.05 / np.sqrt(n)
    nothing, units = (paired.Layer(np.eye(2) * x, np.zeros((2, 2)), dof) for x, dof in ((0.0, 0), (0.0, 0)))
    design = paired.Design(2, 1.0, 2.0, 2 * n)
    read = paired.Distances(np.array([method, 0.5]), influence, nothing, units, design)
    z = special.ndtri((1 + level) / 2)
    low, high = sorted(np.roots([0.25 - (z * 0.05) ** 2, -method, method**2 - (z * 0.1) ** 2]))
    share = ratio.share_closed(distances=read, level=level)
    np.testing.assert_allclose([share.low, share.value, share.high], [1 - high, 1 - method / 0.5, 1 - low], rtol=1e-3)
    assert (share.n, share.note) == (2 * n, read.note)
    cut = ratio.share_closed(distances=read, level=level, significant=True)
    assert (cut.value, cut.low, cut.high) == (share.value, share.low, min(share.high, 1.0))
    assert np.isnan(ratio.share_closed(distances=read, level=level, significant=False).value)


def test_a_share_that_cannot_be_read_counts_its_samples():
    read = paired.Distances(
        np.array([0.1, 0.2]), np.full((2, 4), 0.1), *(paired.Layer(np.zeros((2, 2)), np.zeros((2, 2)), 0),) * 2,
        paired.Design(2, 1.0, 2.0, 4),
    )  # fmt: skip
    share = ratio.share_closed(distances=read)
    assert (share.n, share.note) == (4, ratio.UNDEFINED)
    told = ratio.share_closed(distances=read, significant=True)
    assert (told.value, told.n, told.note) == (0.5, 4, f"{read.note}; {ratio.UNBOUNDED}")
    assert np.isnan([told.low, told.high]).all()
    assert not np.isnan(ratio.share_closed(distances=read, level=0.5).value)
