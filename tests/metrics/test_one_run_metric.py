"""The one-run audit of models: coins found in memberships, guesses on them, against models of which all is known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import _one_run, one_run, swap
from unlearning_audit.protocols import one_run as one_run_protocol

import metric_calls as call
import row_places
from comparison_cases import compare
from folder_cases import pair, population
from ruli_cases import UNSEEN, Folder, data, retrained, swapped_pairs, trained

ADAPTIVE = ["correctness", "confidence"]
SETTINGS = {"metrics": {"one_run": {"delta": 0.0}}, "adaptive_set": ADAPTIVE, "seed": 0}
STANDARD = one_run.DECIDES["right_guesses"]


def targets():
    whole = Membership.concatenate(swapped_pairs())
    return whole[~whole.shadow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    files = Folder(tmp_path_factory.mktemp("one_run"), swapped_pairs())
    files.original, files.retrained = files.add("original", trained), files.add("retrained", retrained)
    return files


def only_row(rows, metric, attack="phi", setting=""):
    return row_places.only(rows, metric, setting, attack)


# ---------------------------------------------------------------- coins


def test_models_of_a_swapped_pair_share_their_coins_and_have_them_turned_over():
    member = targets()
    tosses = _one_run.at_random(member, seed=0)
    assert [toss.models.tolist() for toss in tosses] == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    for toss in tosses:
        assert toss.sign.tolist() == [1, 1, 1, -1, -1, -1]
        for model in toss.models:
            forgotten, heldout = toss.of(model)
            assert sorted(forgotten) == np.flatnonzero(member.forget[model]).tolist()
            assert sorted(heldout) == np.flatnonzero(member.heldout[model]).tolist()
    # pairs are matched by the seed and in no order
    first, other = tosses[0].forgotten, _one_run.at_random(member, seed=1)[0].forgotten
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, np.sort(first))
    member.forget[4, np.flatnonzero(member.forget[4])[0]] = False
    with pytest.raises(ValueError, match="model 4 forgot 59 samples and 60 are held out; pairs need as many of both"):
        _one_run.at_random(member, seed=0)


def canaries(models=3, pairs=25):
    """Audited models with the same pairs and coins of their own."""
    options = one_run_protocol.Options(canaries=pairs, models=models)
    return [one_run_protocol.draw(block, "models", data(), options, 1) for block in range(models)]


def test_canaries_are_the_pairs_that_were_drawn_and_models_with_the_same_coins_guess_together():
    member = Membership.concatenate(canaries())
    tosses = _one_run.tossed(member, seed=0)
    assert [toss.models.tolist() for toss in tosses] == [[0], [1], [2]]
    for toss in tosses:
        assert np.array_equal(member.pair[toss.forgotten], member.pair[toss.heldout])
        assert sorted(toss.forgotten) == np.flatnonzero(member.forget[toss.models[0]]).tolist()
        assert sorted(toss.heldout) == np.flatnonzero(member.heldout[toss.models[0]]).tolist()
    first = member[:1]
    turned = replace(first, forget=first.heldout, heldout=first.forget)
    (toss,) = _one_run.tossed(Membership.concatenate([first, first, turned]), seed=0)
    assert (toss.models.tolist(), toss.sign.tolist()) == ([0, 1, 2], [1, 1, -1])


def test_canaries_are_told_as_a_closed_form_says_and_retrained_ones_are_not(tmp_path):
    """phi of a seen and of an unseen sample differ by 3, with variance 2 in one model."""
    files = Folder(tmp_path, canaries(models=8, pairs=100))
    original, unlearned = files.add("original", trained), files.add("retrained", retrained)
    rows = call.rows(one_run, files.evaluation(original, unlearned), {**SETTINGS, "adaptive_set": []})
    share = only_row(rows, "right_guesses")
    assert (share.n, share.ci_low <= 0.5 <= share.ci_high) == (800, True)
    assert min(only_row(rows, "one_run_p", setting=f"model={m}").value for m in range(8)) > 0.05 / 8
    assert only_row(rows, "epsilon_request").value == only_row(rows, "epsilon_record").value == 0.0
    rows = call.rows(one_run, files.evaluation(original, original), {**SETTINGS, "adaptive_set": []})
    assert abs(only_row(rows, "right_guesses").value - ndtr(3 / np.sqrt(2))) < 4 * np.sqrt(0.0167 / 800)
    assert {row.attack for row in rows} == {"phi", "phi_two_sided", "phi_likelihood_ratio"}


# ---------------------------------------------------------------- guesses


def test_epsilon_is_that_of_a_single_model_and_delta_for_a_single_model(folder):
    evaluation = folder.evaluation(folder.original, folder.original)
    rows = call.rows(one_run, evaluation, SETTINGS)
    # All 120 pairs right: divided by the 12 models that contributed, and for a record by the six that share its coin.
    low = 0.05 ** (1 / 120)
    whole = {
        "right_guesses": 1.0, "one_run_p": 0.5**120, "epsilon_request": (np.log(0.05) + 120 * np.log(2)) / 12,
        "epsilon_replace": np.log(low / (1 - low)) / 6, "epsilon_record": np.log((1 + low / (1 - low)) / 2) / 6,
    }  # fmt: skip
    assert {name: only_row(rows, name).value for name in whole} == pytest.approx(whole)
    assert only_row(rows, "right_guesses").n == 120
    share = only_row(rows, "right_guesses", setting="model=0")
    tail = binom.sf(round(60 * share.value) - 1, 60, 0.5)
    assert only_row(rows, "epsilon_request", setting="model=0").value == pytest.approx(np.log(0.05 / tail))
    assert (share.n, only_row(rows, "one_run_p", setting="model=0").value) == (60, pytest.approx(tail))

    rows = call.rows(one_run, evaluation, {**SETTINGS, "metrics": {"one_run": {"delta": 0.01}}})
    assert only_row(rows, "epsilon_request").note.endswith("counts of several models give no bound for δ above 0")
    record = only_row(rows, "epsilon_record")
    assert (record.note.endswith("guess together give no bound for δ above 0"), np.isnan(record.value)) == (True, True)
    assert only_row(rows, "epsilon_record", setting="model=0").value > 0
    assert only_row(rows, "epsilon_request", setting="model=0").value == pytest.approx(np.log(0.04 / tail))
    rows = call.rows(one_run, evaluation, {**SETTINGS, "metrics": {"one_run": {"delta": 0.05}}})
    assert "δ is too large for" in only_row(rows, "epsilon_request", setting="model=0").note


# ---------------------------------------------------------------- attacks


def scored(folder, **attacks):
    """A case with scores of attacks: name → function of phi [target models, samples] and membership."""
    evaluation = folder.evaluation(folder.original, folder.retrained)
    member = evaluation.membership[evaluation.target]
    phi = evaluation.audited.phi()
    scores = {(name, "trained"): of(phi, member) for name, of in attacks.items()}
    asked = member.forget | member.heldout
    evaluation.__dict__["scores"] = {key: (np.where(asked, score, np.nan), score > 0) for key, score in scores.items()}
    return evaluation


def test_what_is_less_familiar_is_found_in_both_directions_and_pays_for_it(folder):
    evaluation = scored(
        folder,
        confidence=lambda phi, _: phi,
        correctness=lambda phi, member: phi - 2.0 * member.forget,
        random=lambda phi, member: 9.0 * member.forget,
    )  # fmt: skip
    rows = call.rows(one_run, evaluation, SETTINGS)
    share = only_row(rows, "right_guesses", "correctness/trained")
    assert share.value < 0.1
    assert only_row(rows, "one_run_p", "correctness/trained").value > 0.99
    assert not [row for row in rows if row.attack == "confidence/trained"], "phi under another name"
    wrong = round(share.n * (1 - share.value))
    for name in ("adaptive", "extended"):
        row = only_row(rows, "one_run_p", name)
        # Two attacks in two directions; the control is none of them, however well it guesses.
        assert row.value == pytest.approx(4 * binom.sf(wrong - 1, share.n, 0.5))
        assert "best of 2 attacks in both directions: correctness/trained turned round" in row.note
    half = only_row(rows, "one_run_p", "extended_half")
    assert (half.value < 1e-6, half.n) == (True, share.n // 2)
    assert only_row(rows, "one_run_p", "random/trained").value < 1e-9
    # the control is read even where it ranks as phi does
    rows = call.rows(one_run, scored(folder, random=lambda phi, _: phi), SETTINGS)
    assert only_row(rows, "one_run_p", "random/trained").value == only_row(rows, "one_run_p").value


@pytest.mark.parametrize(
    ("shift", "spread", "found", "turned"),
    [(4.0, 1, "phi_two_sided", False), (-4.0, 1, "phi_two_sided", True), (0.0, 7, "phi_likelihood_ratio", None)],
)
def test_traces_of_either_direction_and_another_spread_are_found(tmp_path, shift, spread, found, turned):
    files = Folder(tmp_path, swapped_pairs(pairs=1, models=1))
    rng = np.random.default_rng(3)
    path = files.add(
        "audited",
        lambda member: member.forget * (shift + (spread - 1) * rng.standard_normal(member.train.shape)) + UNSEEN,
    )
    rows = call.rows(one_run, files.evaluation(path, path), SETTINGS)
    assert only_row(rows, "one_run_p", found, "model=0").value < 0.01
    two_sided = only_row(rows, "one_run_p", "phi_two_sided")
    assert (two_sided.value < 0.01) == (found == "phi_two_sided")
    assert turned is None or ("turned round" in two_sided.note) == turned


@pytest.mark.parametrize(("pairs", "learned"), [(3, set()), (4, {"phi_likelihood_ratio"})])
def test_two_pairs_in_each_half_are_the_fewest_that_teach(pairs, learned):
    """A half of two pairs gives both Gaussians a spread, a half of one none."""
    toss = _one_run.Toss(np.array([0]), np.array([1]), np.arange(pairs), np.arange(pairs, 2 * pairs))
    scores = {(_one_run.PHI, ""): np.arange(2.0 * pairs)[None]}
    rows = _one_run.evaluate(scores=scores, tosses=[toss], adaptive=[], delta=0.0, seed=0)
    assert {row.attack for row in rows} - {"phi", "phi_two_sided"} == learned


# ---------------------------------------------------------------- verdicts


def test_a_verdict_rests_on_canaries_alone_and_on_phi_without_attacks(tmp_path):
    files = Folder(tmp_path, canaries(models=1, pairs=40))
    original = files.add("original", trained)
    evaluation = call.with_settings(files.evaluation(original, original), SETTINGS)
    (name,) = parts = one_run.effects(evaluation)
    assert (name, parts[name].rule.ideal, parts[name].rule.chance) == ("right_guesses", 0.5, "samples")
    rows = call.rows(one_run, evaluation, SETTINGS)
    assert parts[name].value[0, 0] == only_row(rows, "right_guesses").value
    assert parts[name].p[0] == only_row(rows, "one_run_p", "phi_two_sided").value
    assert swap.effects(evaluation) == {}
    evaluation.__dict__["membership"] = replace(evaluation.membership, pair=None)
    assert one_run.effects(evaluation) == {}


def test_a_p_below_what_a_float_holds_is_adjusted_like_any_other():
    """Of doing nothing, by two attacks on so many pairs that no float holds the p of the second."""
    pairs, parts = 5000, {}
    toss = _one_run.Toss(np.array([0]), np.array([1]), np.arange(pairs), np.arange(pairs, 2 * pairs))
    for seed, (method, shares) in enumerate({"none": (0.53, 0.85), "x": (0.5, 0.5)}.items(), 1):
        rng, scores = np.random.default_rng(seed), {}
        for number, share in enumerate(shares):
            right = rng.random(pairs) < share
            scores[f"attack{number}", "t"] = np.concatenate([right, ~right])[None] * 1.0
        parts[method] = {"right_guesses": _one_run.effect(scores=scores, tosses=[toss], rule=STANDARD)}
    none = parts["none"]["right_guesses"]
    assert 0 < none.p[1] < 1e-300 < none.p[0]
    for p in (none.p, none.p * (none.p > 1e-300)):
        with np.errstate(divide="raise", invalid="raise"):
            _, lines = compare({**parts, "none": {"right_guesses": replace(none, p=p)}})
        assert (lines["none"]["found_by"], lines["x"]["margin"]) == ("right_guesses attack1/t", 0.05)


def test_the_p_of_a_verdict_is_that_of_the_best_of_all_attacks():
    """Models with coins of their own, ties, an attack turned round and the control, which is none."""
    member = Membership.concatenate(canaries(models=3, pairs=30))
    rng = np.random.default_rng(2)
    phi = np.round(rng.normal(size=member.forget.shape) + 0.6 * member.forget, 1)
    scores = {(_one_run.PHI, ""): phi, ("mine", "trained"): rng.normal(size=phi.shape) - 1.5 * member.forget,
              (_one_run.CONTROL, "trained"): 9.0 * member.forget}  # fmt: skip
    tosses = _one_run.tossed(member, seed=0)
    rows = _one_run.evaluate(scores=scores, tosses=tosses, adaptive=[], delta=0.0, seed=0)
    part = _one_run.effect(scores=scores, tosses=tosses, rule=STANDARD)
    assert part.names == ("phi", "mine/trained")
    assert part.p.min() == pytest.approx(only_row(rows, "one_run_p", "extended").value, rel=1e-12)
    for name, value, p in zip(part.names, part.value, part.p, strict=True):
        share = only_row(rows, "right_guesses", name)
        right = round(share.value * share.n)
        assert value.mean() == pytest.approx((right + (90 - share.n) / 2) / 90, rel=1e-12)
        tail = min(binom.sf(right - 1, share.n, 0.5), binom.cdf(right, share.n, 0.5))
        assert p == pytest.approx(min(4 * tail, 1.0))
    assert only_row(rows, "right_guesses", "phi").n < 90, "some pairs tie"
    assert part.influence.sum(axis=2) + part.imagined.sum(axis=2) == pytest.approx(0.0, abs=1e-12)


def test_imported_models_have_the_coins_of_canaries_or_swapped_pairs_or_the_reason(monkeypatch):
    monkeypatch.setattr(_one_run, "evaluate", lambda **arguments: [arguments["delta"]])
    unlike = replace(pair(), split=np.arange(4))
    canaries = replace(unlike, pair=np.r_[0, 1, 2, 0, 1, 2, np.full(9, -1)])
    for member in (pair(), canaries):
        assert call.rows(one_run, population(member), SETTINGS) == [0]
    (row,) = call.rows(one_run, population(unlike), SETTINGS)
    assert (row.metric, row.attack, row.note[:25]) == ("one_run_p", "phi", "there is no pair.npy that")
