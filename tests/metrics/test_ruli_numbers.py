"""RULI's ratios against densities written out, and what its rows and contributions are made of."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _reference, ruli
from unlearning_audit.stats.readings import readings

from row_places import about

SAMPLES = 9


def population(models: int, seed: int) -> ruli.Population:
    """Kept, forgotten and held out in turn, so that every third model has each role of a sample."""
    rng = np.random.default_rng(seed)
    role = (np.arange(models)[:, None] + np.arange(SAMPLES)) % 3
    original, unlearned, retrained = (rng.normal(shift, 2, role.shape) for shift in (1, 2, 3))
    return ruli.Population(original, unlearned, role < 2, role == 1, role == 2, retrained)


TARGETS, SHADOWS = population(3, 0), population(12, 1)
KEPT = SHADOWS.train & ~SHADOWS.forget


def log_density(phi: np.ndarray, mask: np.ndarray, at: np.ndarray) -> np.ndarray:
    columns = [norm(phi[column, s].mean(), phi[column, s].std()).logpdf(at[:, s]) for s, column in enumerate(mask.T)]
    return np.stack(columns, axis=1)


def test_each_question_has_its_own_densities_models_and_sides():
    questions = ruli.score(targets=TARGETS, shadows=SHADOWS, options=ruli.Options(density="gaussian"))
    t, s = TARGETS, SHADOWS
    q_u, q_h, q_r = (s.unlearned, s.forget), (s.unlearned, s.heldout), (s.unlearned, KEPT)
    q_i, q_out = (s.original, s.train), (s.original, s.heldout)
    retained = t.train & ~t.forget
    for key, at, over, under, positive in (
        (("ruli", "privacy"), t.unlearned, q_u, q_h, t.forget),
        (("ruli", "efficacy"), np.where(t.forget, t.unlearned, t.retrained), q_u, q_out, t.forget),
        (("ruli", "trained"), t.original, q_i, q_out, t.train),
        (("ruli", "remained"), t.unlearned, q_r, q_h, retained),
        (("u_lira", "privacy"), t.unlearned, q_u, q_out, t.forget),
    ):
        question = questions[key]
        np.testing.assert_allclose(question.score, log_density(*over, at) - log_density(*under, at), atol=1e-9)
        np.testing.assert_array_equal(question.positive, positive)
        np.testing.assert_array_equal(question.negative, t.heldout)
        assert not question.missing
    assert list(questions)[-1] == ("population", "privacy")
    options = ruli.Options(density="gaussian", test_model="original")
    question = ruli.score(targets=replace(t, retrained=None), shadows=s, options=options)["ruli", "efficacy"]
    at = np.where(t.forget, t.unlearned, t.original)
    np.testing.assert_allclose(question.score, log_density(*q_u, at) - log_density(*q_out, at), atol=1e-9)
    for options in (ruli.Options(), ruli.Options(density="pooled")):
        variant = ruli.score(targets=t, shadows=s, options=options)
        same = np.allclose(variant["u_lira", "privacy"].score, questions["u_lira", "privacy"].score)
        assert same == (options.density == "kde"), "U-LiRA is Gaussian, of one spread if RULI's are"


def test_what_was_kept_is_read_where_enough_shadow_models_kept_it():
    train = SHADOWS.train.copy()
    train[np.flatnonzero(KEPT[:, 0])[:1], 0] = train[np.flatnonzero(KEPT[:, 1])[:2], 1] = False
    questions = ruli.score(targets=TARGETS, shadows=replace(SHADOWS, train=train), options=ruli.Options())
    question = questions["ruli", "remained"]
    used = np.arange(SAMPLES) != 1  # 3 models kept sample 0, 2 kept sample 1
    assert np.isnan(question.score).all(axis=0).tolist() == (~used).tolist()
    np.testing.assert_array_equal(question.positive, TARGETS.train & ~TARGETS.forget & used)
    np.testing.assert_array_equal(question.negative, TARGETS.heldout & used)
    two = ruli.score(targets=TARGETS, shadows=replace(SHADOWS, train=train), options=ruli.Options(minimum=2))
    assert not np.isnan(two["ruli", "remained"].score).any()
    nothing = replace(TARGETS, train=TARGETS.forget)
    assert ruli.score(targets=nothing, shadows=SHADOWS, options=ruli.Options())["ruli", "remained"].missing == (
        "no audited sample was kept"
    )


def test_samples_that_are_audited_or_asked_about_are_all_there_is():
    audited = np.arange(SAMPLES) % 2 == 0
    whole = ruli.score(targets=TARGETS, shadows=SHADOWS, options=ruli.Options())["ruli", "privacy"]
    subset = ruli.score(targets=TARGETS, shadows=SHADOWS, options=ruli.Options(), audited=audited)["ruli", "privacy"]
    np.testing.assert_allclose(subset.score, whole.score[:, audited])
    never = np.arange(SAMPLES) == 4  # neither forgotten nor held out by any target
    targets = replace(TARGETS, forget=TARGETS.forget & ~never, heldout=TARGETS.heldout & ~never)
    fewer = ruli.score(targets=targets, shadows=SHADOWS, options=ruli.Options())["ruli", "privacy"]
    np.testing.assert_allclose(fewer.score, whole.score[:, ~never])
    with pytest.raises(ValueError, match="no audited sample is forgotten or held out by any target"):
        ruli.score(targets=targets, shadows=SHADOWS, options=ruli.Options(), audited=never)


def test_curves_are_those_of_the_two_main_questions():
    assert [*ruli.CURVE] == sorted({rate for rate in ruli.CURVE if 0 < rate < 1})
    rows = ruli.evaluate(targets=TARGETS, shadows=SHADOWS, options=ruli.Options(fpr=(0.5,)), curve=(0.4, 0.5))
    curves = [(row.attack, row.metric, about(row)) for row in rows if row.metric.endswith("_roc")]
    assert curves == [("ruli", f"{name}_roc", f"rate={fpr}") for name in ruli.CURVES for fpr in (0.4, 0.5)]
    by_metric = {(row.attack, row.metric): row for row in rows if about(row) != "rate=0.4"}
    for name in ruli.CURVES:
        point, same = by_metric["ruli", f"{name}_roc"], by_metric["ruli", f"{name}_tpr_at_50pct_fpr"]
        assert point.value == same.value
    assert ("u_lira", "privacy_tpr_at_50pct_fpr") in by_metric


def test_clipping_reaches_every_phi():
    np.testing.assert_allclose(_reference.clip(np.array([40.0, -40.0, 0.3]), 0.1), [np.log(9), np.log(0.1), 0.3])
    options = ruli.Options(density="gaussian", clip=0.1)
    names = ("original", "unlearned", "retrained")
    clipped = [replace(p, **{n: _reference.clip(getattr(p, n), 0.1) for n in names}) for p in (TARGETS, SHADOWS)]
    first = ruli.score(targets=TARGETS, shadows=SHADOWS, options=options)
    second = ruli.score(targets=clipped[0], shadows=clipped[1], options=ruli.Options(density="gaussian"))
    for key, question in first.items():
        np.testing.assert_allclose(question.score, second[key].score, atol=1e-6)


def test_contributions_have_the_sign_of_what_shadow_models_show():
    options, index = ruli.Options(density="gaussian"), np.arange(SAMPLES) + 100
    turned = []
    for turn in (1, -1):
        targets, shadows = (replace(p, unlearned=turn * (p.unlearned + 3 * p.forget)) for p in (TARGETS, SHADOWS))
        contribution = ruli.aucs(targets, shadows, options, index)["privacy_auc"]
        question = ruli.score(targets=targets, shadows=shadows, options=options)["ruli", "privacy"]
        mean = readings(question, fpr=())["auc"].value
        assert contribution.value.mean() == pytest.approx(mean if turn > 0 else 1 - mean)
        assert (contribution.unit.tolist(), contribution.index.tolist()) == ([0, 1, 2], index.tolist())
        turned.append(contribution)
    # what is less familiar by as much is told as well, with every sign turned
    np.testing.assert_allclose(turned[0].value, 1 - turned[1].value)
    np.testing.assert_allclose(turned[0].influence, -turned[1].influence, atol=1e-12)
    np.testing.assert_allclose(turned[0].imagined, -turned[1].imagined, atol=1e-12)
    assert list(ruli.aucs(replace(TARGETS, retrained=None), SHADOWS, options, index)) == ["privacy_auc"]


def test_contributions_are_the_auc_itself_where_neither_side_is_more_familiar():
    """Forgotten samples have φ = ±4, held-out ones ±1, as often above 0 as below: far from 0 is what tells them."""
    sign = np.where((np.arange(12)[:, None] // 3 + np.arange(SAMPLES)) % 2, 1.0, -1.0)
    shadows = replace(SHADOWS, unlearned=sign * np.where(SHADOWS.forget, 4, 1))
    targets = replace(TARGETS, unlearned=sign[:3] * np.where(TARGETS.forget, 4.5, 0.5))
    sides = [shadows.unlearned[mask].mean() for mask in (shadows.forget, shadows.heldout)]
    assert sides == [0, 0]
    contribution = ruli.aucs(targets, shadows, ruli.Options(density="gaussian"), np.arange(SAMPLES))["privacy_auc"]
    np.testing.assert_allclose(contribution.value, [[1, 1, 1]])


def test_targets_without_a_side_add_nothing():
    options, index = ruli.Options(density="gaussian"), np.arange(SAMPLES)
    forget, heldout = TARGETS.forget.copy(), TARGETS.heldout.copy()
    forget[0], heldout[1] = False, False
    contributions = ruli.aucs(replace(TARGETS, forget=forget, heldout=heldout), SHADOWS, options, index)
    assert contributions["privacy_auc"].unit.tolist() == [2]
    heldout[2] = False
    assert ruli.aucs(replace(TARGETS, forget=forget, heldout=heldout), SHADOWS, options, index) == {}


def test_a_target_that_is_a_shadow_model_is_found_and_a_constant_is_not():
    for name in ("original", "unlearned"):
        phi = getattr(TARGETS, name).copy()
        phi[2] = getattr(SHADOWS, name)[7]
        with pytest.raises(ValueError, match=rf"target 2 is also a shadow model \({name}\)"):
            ruli.score(targets=replace(TARGETS, **{name: phi}), shadows=SHADOWS, options=ruli.Options())
    same = np.zeros((12, SAMPLES))
    questions = ruli.score(
        targets=replace(TARGETS, original=same[:3]), shadows=replace(SHADOWS, original=same), options=ruli.Options()
    )
    assert not questions["ruli", "trained"].score.any()
    for wrong in (TARGETS.original[:2], TARGETS.original[0]):
        with pytest.raises(ValueError, match=r"targets.original has shape"):
            ruli.score(targets=replace(TARGETS, original=wrong), shadows=SHADOWS, options=ruli.Options())


def test_how_much_more_one_attack_for_each_sample_finds_is_counted_as_the_paper_counts_it():
    """Section 6.2.2: accuracies .65 against .5 are 30 % more, TPRs .12 against .01 twelve times; 0 has no ratio."""
    rows = [
        Row("privacy_accuracy", 0.65, attack="ruli", n=9), Row("privacy_accuracy", 0.5, attack="population", n=9),
        Row("privacy_tpr_at_1pct_fpr", 0.12, attack="ruli", n=9),
        Row("privacy_tpr_at_1pct_fpr", 0.01, attack="population", n=9),
    ]  # fmt: skip
    more = ruli.over_population(rows)
    assert [row.value for row in more] == pytest.approx([0.3, 12])
    assert {(row.attack, row.n) for row in more} == {("ruli", 9)}
    nothing = ruli.over_population([*rows[2:3], Row("privacy_tpr_at_1pct_fpr", 0.0, attack="population")])
    assert math.isnan(nothing[0].value)
    assert "finds nothing" in nothing[0].note
    few = Row("privacy_tpr_at_1pct_fpr", math.nan, attack="population", note="40 negatives are too few")
    assert ruli.over_population([*rows[2:3], few])[0].note == few.note
    assert ruli.over_population([replace(few, attack="ruli"), rows[3]])[0].note == few.note
    assert ruli.over_population(rows[:1]) == []
