"""RULI's ratios against densities written out, and what its rows and effects are made of."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _reference, ruli
from unlearning_audit.stats.readings import readings

SAMPLES = 9
INDEX = np.arange(SAMPLES) + 100


def population(models: int, seed: int) -> ruli.Population:
    """Kept, forgotten and held out in turn, so that every third model has each role of a sample."""
    rng = np.random.default_rng(seed)
    role = (np.arange(models)[:, None] + np.arange(SAMPLES)) % 3
    original, unlearned, retrained = (rng.normal(shift, 2, role.shape) for shift in (1, 2, 3))
    return ruli.Population(original, unlearned, role < 2, role == 1, role == 2, retrained)


TARGETS, SHADOWS = population(3, 0), population(12, 1)
KEPT = SHADOWS.train & ~SHADOWS.forget


def asked(targets=TARGETS, shadows=SHADOWS, **options):
    return ruli.score(targets, shadows, ruli.Options(**options))


def aucs(targets=TARGETS, shadows=SHADOWS):
    return ruli.aucs(targets, shadows, ruli.Options(density="gaussian"), INDEX)


def log_density(phi: np.ndarray, mask: np.ndarray, at: np.ndarray) -> np.ndarray:
    columns = [norm(phi[column, s].mean(), phi[column, s].std()).logpdf(at[:, s]) for s, column in enumerate(mask.T)]
    return np.stack(columns, axis=1)


def test_each_question_has_its_own_densities_models_and_sides():
    questions = asked(density="gaussian")
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
    alone = replace(t, retrained=None)
    assert asked(alone)["ruli", "efficacy"].missing == "no retrained target models were given"
    question = asked(alone, density="gaussian", test_model="original")["ruli", "efficacy"]
    at = np.where(t.forget, t.unlearned, t.original)
    np.testing.assert_allclose(question.score, log_density(*q_u, at) - log_density(*q_out, at), atol=1e-9)
    for density in ("kde", "pooled"):
        variant = asked(density=density)["u_lira", "privacy"]
        same = np.allclose(variant.score, questions["u_lira", "privacy"].score)
        assert same == (density == "kde"), "U-LiRA is Gaussian, of one spread if RULI's are"


def test_what_was_kept_is_read_where_enough_shadow_models_kept_it():
    train = SHADOWS.train.copy()
    train[np.flatnonzero(KEPT[:, 0])[:1], 0] = train[np.flatnonzero(KEPT[:, 1])[:2], 1] = False
    fewer = replace(SHADOWS, train=train)
    question = asked(shadows=fewer)["ruli", "remained"]
    used = np.arange(SAMPLES) != 1  # 3 models kept sample 0, 2 kept sample 1
    assert np.isnan(question.score).all(axis=0).tolist() == (~used).tolist()
    np.testing.assert_array_equal(question.positive, TARGETS.train & ~TARGETS.forget & used)
    np.testing.assert_array_equal(question.negative, TARGETS.heldout & used)
    assert not np.isnan(asked(shadows=fewer, minimum=2)["ruli", "remained"].score).any()
    nothing = replace(TARGETS, train=TARGETS.forget)
    assert asked(nothing)["ruli", "remained"].missing == "no audited sample was kept"


def test_samples_that_are_audited_or_asked_about_are_all_there_is():
    some = np.arange(SAMPLES) % 2 == 0
    whole, subset = (asked(*of)["ruli", "privacy"].score for of in ((), (TARGETS.columns(some), SHADOWS.columns(some))))
    np.testing.assert_allclose(subset, whole[:, some])
    never = np.arange(SAMPLES) == 4  # neither forgotten nor held out by any target
    targets = replace(TARGETS, forget=TARGETS.forget & ~never, heldout=TARGETS.heldout & ~never)
    np.testing.assert_allclose(asked(targets)["ruli", "privacy"].score, whole[:, ~never])
    with pytest.raises(ValueError, match="no audited sample is forgotten or held out by any target"):
        asked(targets.columns(never), SHADOWS.columns(never))


def test_curves_are_those_of_the_two_main_questions():
    rows = ruli.evaluate(TARGETS, SHADOWS, ruli.Options(fpr=(0.5,)), curve=(0.4, 0.5))
    curves = [(row.attack, row.metric, row.rate) for row in rows if row.metric.endswith("_roc")]
    assert curves == [("ruli", f"{name}_roc", fpr) for name in ruli.CURVES for fpr in (0.4, 0.5)]
    values = {(row.attack, row.metric): row.value for row in rows if row.rate != 0.4}
    for name in ruli.CURVES:
        assert values["ruli", f"{name}_roc"] == values["ruli", f"{name}_tpr_at_50pct_fpr"]
    assert ("u_lira", "privacy_tpr_at_50pct_fpr") in values


def test_clipping_reaches_every_phi():
    np.testing.assert_allclose(_reference.clip(np.array([40.0, -40.0, 0.3]), 0.1), [np.log(9), np.log(0.1), 0.3])
    names = ("original", "unlearned", "retrained")
    clipped = [replace(p, **{n: _reference.clip(getattr(p, n), 0.1) for n in names}) for p in (TARGETS, SHADOWS)]
    expected = asked(*clipped, density="gaussian")
    for key, question in asked(density="gaussian", clip=0.1).items():
        np.testing.assert_allclose(question.score, expected[key].score, atol=1e-6)


def test_effects_have_the_sign_of_what_shadow_models_show():
    turned = []
    for turn in (1, -1):
        targets, shadows = (replace(p, unlearned=turn * (p.unlearned + 3 * p.forget)) for p in (TARGETS, SHADOWS))
        effect = aucs(targets, shadows)["privacy_auc"]
        mean = readings(asked(targets, shadows, density="gaussian")["ruli", "privacy"], fpr=())["auc"].value
        assert effect.value.mean() == pytest.approx(mean if turn > 0 else 1 - mean)
        assert (effect.unit.tolist(), effect.index.tolist()) == ([0, 1, 2], INDEX.tolist())
        turned.append(effect)
    # what is less familiar by as much is told as well, with every sign turned
    np.testing.assert_allclose(turned[0].value, 1 - turned[1].value)
    np.testing.assert_allclose(turned[0].influence, -turned[1].influence, atol=1e-12)
    np.testing.assert_allclose(turned[0].imagined, -turned[1].imagined, atol=1e-12)
    assert list(aucs(replace(TARGETS, retrained=None))) == ["privacy_auc"]


def test_effects_are_the_auc_itself_where_neither_side_is_more_familiar():
    """Forgotten samples have φ = ±4, held-out ones ±1, as often above 0 as below: far from 0 is what tells them."""
    sign = np.where((np.arange(12)[:, None] // 3 + np.arange(SAMPLES)) % 2, 1.0, -1.0)
    shadows = replace(SHADOWS, unlearned=sign * np.where(SHADOWS.forget, 4, 1))
    targets = replace(TARGETS, unlearned=sign[:3] * np.where(TARGETS.forget, 4.5, 0.5))
    assert [shadows.unlearned[mask].mean() for mask in (shadows.forget, shadows.heldout)] == [0, 0]
    np.testing.assert_allclose(aucs(targets, shadows)["privacy_auc"].value, [[1, 1, 1]])


def test_targets_without_a_side_add_nothing():
    targets = replace(TARGETS, forget=TARGETS.forget.copy(), heldout=TARGETS.heldout.copy())
    targets.forget[0], targets.heldout[1] = False, False
    assert aucs(targets)["privacy_auc"].unit.tolist() == [2]
    targets.heldout[2] = False
    assert aucs(targets) == {}


def test_what_cannot_be_tested_is_refused():
    def changed(values, at, to):
        copy = values.copy()
        copy[at] = to
        return copy

    wrong = [
        ({name: changed(getattr(TARGETS, name), 2, getattr(SHADOWS, name)[7])}, {}, rf"target 2 is also .* \({name}\)")
        for name in ("original", "unlearned")
    ]
    for targets, shadows, reason in (
        *wrong,
        ({"original": changed(TARGETS.original, (0, 0), np.nan)}, {}, "targets.original holds NaN"),
        ({}, {"forget": changed(SHADOWS.forget, slice(6, None), False)}, "reference models as forgotten"),
    ):
        with pytest.raises(ValueError, match=reason):
            asked(replace(TARGETS, **targets), replace(SHADOWS, **shadows))
    same = np.zeros((12, SAMPLES))  # a constant is no model of its own
    assert not asked(replace(TARGETS, original=same[:3]), replace(SHADOWS, original=same))[
        "ruli", "trained"
    ].score.any()


def test_how_much_more_one_attack_for_each_sample_finds_is_counted_as_the_paper_counts_it():
    """Section 6.2.2: accuracies .65 against .5 are 30 % more, TPRs .12 against .01 twelve times; 0 has no ratio."""
    tpr = "privacy_tpr_at_1pct_fpr"
    rows = [
        Row("privacy_accuracy", 0.65, attack="ruli", n=9), Row("privacy_accuracy", 0.5, attack="population", n=9),
        Row(tpr, 0.12, attack="ruli", n=9), Row(tpr, 0.01, attack="population", n=9),
    ]  # fmt: skip
    more = ruli.over_population(rows)
    assert [row.value for row in more] == pytest.approx([0.3, 12])
    assert {(row.attack, row.n) for row in more} == {("ruli", 9)}
    (nothing,) = ruli.over_population([rows[2], Row(tpr, 0.0, attack="population")])
    assert (math.isnan(nothing.value), "finds nothing" in nothing.note) == (True, True)
    few = Row(tpr, math.nan, attack="population", note="40 negatives are too few")
    for pair in ([rows[2], few], [replace(few, attack="ruli"), rows[3]]):
        assert ruli.over_population(pair)[0].note == few.note
    assert ruli.over_population(rows[:1]) == []
