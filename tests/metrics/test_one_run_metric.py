"""The one-run audit of models: coins found in memberships, guesses on them, against models of which all is known."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, chisquare
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import _coins, _one_run, one_run
from unlearning_audit.protocols import one_run as one_run_protocol
from unlearning_audit.protocols import swap
from unlearning_audit.stats import Estimate
from unlearning_audit.stats import one_run as guessing
from unlearning_audit.store import tables

import metric_calls as call
from comparison_cases import compare
from row_places import about
from ruli_cases import SEEN, UNSEEN, Folder, data, retrained, trained

ADAPTIVE = ["correctness", "confidence"]
SETTINGS = {"metrics": {"one_run": {"delta": 0.0}}, "adaptive_set": ADAPTIVE, "seed": 0}


def memberships(pairs=2, models=3, protocol=swap):
    """Target and shadow models of so many pairs, a batch each."""
    options = protocol.Options(alpha=0.25, pairs=pairs, models_per_split=models)
    return [protocol.draw(block, "pairs", data(), options, 1) for block in range(pairs)]


def targets(**how):
    whole = Membership.concatenate(memberships(**how))
    return whole[~whole.shadow]


def matrices(forget, heldout):
    """A membership of which only the two sides matter."""
    models = len(forget)
    return Membership(
        train=forget, forget=forget, heldout=heldout, seed=np.arange(models), split=np.zeros(models, int),
        block=np.zeros(models, int), shadow=np.zeros(models, bool),
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    files = Folder(tmp_path_factory.mktemp("one_run"), memberships())
    files.original, files.retrained = files.add("original", trained), files.add("retrained", retrained)
    return files


def only_row(rows, metric, attack="phi", setting=""):
    (row,) = [r for r in rows if (r.metric, r.attack, about(r)) == (metric, attack, setting)]
    return row


# ---------------------------------------------------------------- coins


def test_models_of_a_swapped_pair_share_their_coins_and_have_them_turned_over():
    member = targets()
    tosses = _coins.at_random(member, seed=0)
    assert [toss.models.tolist() for toss in tosses] == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    for toss in tosses:
        assert toss.sign.tolist() == [1, 1, 1, -1, -1, -1]
        for model in toss.models:
            forgotten, heldout = toss.of(model)
            assert sorted(forgotten) == np.flatnonzero(member.forget[model]).tolist()
            assert sorted(heldout) == np.flatnonzero(member.heldout[model]).tolist()
        assert np.array_equal(toss.of(toss.models[0])[0], toss.of(toss.models[-1])[1])


def test_pairs_are_matched_by_the_seed_and_in_no_order():
    member = targets()
    first, second = (_coins.at_random(member, seed=seed)[0] for seed in (0, 1))
    assert np.array_equal(first.forgotten, _coins.at_random(member[:6], seed=0)[0].forgotten)
    assert not np.array_equal(first.forgotten, second.forgotten)
    assert not np.array_equal(first.forgotten, np.sort(first.forgotten))


def test_sides_of_other_sizes_are_no_coins():
    member = targets()
    fewer = member.forget.copy()
    fewer[4, np.flatnonzero(fewer[4])[0]] = False
    with pytest.raises(ValueError, match="model 4 forgot 59 samples and 60 are held out; pairs need as many of both"):
        _coins.at_random(replace(member, forget=fewer), seed=0)


def canaries(models=3, pairs=25):
    """Audited models with the same pairs and coins of their own."""
    options = one_run_protocol.Options(canaries=pairs, models=models)
    return [one_run_protocol.draw(block, "models", data(), options, 1) for block in range(models)]


def test_canaries_are_the_pairs_that_were_drawn():
    member = Membership.concatenate(canaries())
    tosses = _coins.tossed(member, seed=0)
    assert [toss.models.tolist() for toss in tosses] == [[0], [1], [2]]
    for toss in tosses:
        assert np.array_equal(member.pair[toss.forgotten], member.pair[toss.heldout])
        assert sorted(toss.forgotten) == np.flatnonzero(member.forget[toss.models[0]]).tolist()
        assert sorted(toss.heldout) == np.flatnonzero(member.heldout[toss.models[0]]).tolist()


def test_models_with_the_same_coins_guess_together():
    member = canaries(models=1)[0]
    turned = replace(member, forget=member.heldout, heldout=member.forget, train=member.train ^ member.forget)
    turned = replace(turned, train=turned.train | turned.forget)
    (toss,) = _coins.tossed(Membership.concatenate([member, member, turned]), seed=0)
    assert (toss.models.tolist(), toss.sign.tolist()) == ([0, 1, 2], [1, 1, -1])


def test_canaries_are_told_as_a_closed_form_says_and_retrained_ones_are_not(tmp_path):
    files = Folder(tmp_path, canaries(models=8, pairs=100))
    case = files.case(files.add("original", trained), files.add("retrained", retrained))
    settings = {"metrics": {"one_run": {"delta": 0.0}}, "adaptive_set": [], "seed": 0}
    share = only_row(call.rows(one_run, case, settings), "right_guesses")
    assert (share.n, share.ci_low <= 0.5 <= share.ci_high) == (800, True)
    case = files.case(case.originals, case.originals)
    share = only_row(call.rows(one_run, case, settings), "right_guesses")
    assert abs(share.value - ndtr(3 / np.sqrt(2))) < 4 * np.sqrt(0.0167 / 800)
    assert {row.attack for row in call.rows(one_run, case, settings)} == {
        "phi",
        "phi_two_sided",
        "phi_likelihood_ratio",
    }


BAD = {
    "names no pair": lambda pair: np.full_like(pair, -1),
    "gives the number 3 to 1 samples; a pair is two": lambda pair: np.where(
        np.arange(len(pair)) == np.flatnonzero(pair == 3)[0], -1, pair
    ),
    "has pair 25, of which model 0 forgot 0 samples in place of one": lambda pair: np.where(
        np.isin(np.arange(len(pair)), np.flatnonzero(pair < 0)[:2]), 25, pair
    ),
}


@pytest.mark.parametrize("sentence", BAD)
def test_canaries_that_are_none_are_refused(tmp_path, sentence):
    member = canaries(models=1)[0]
    with pytest.raises(ValueError, match=sentence):
        replace(member, pair=BAD[sentence](member.pair)).write(tmp_path / "membership.npz")


# ---------------------------------------------------------------- guesses


@pytest.mark.slow
@pytest.mark.parametrize("swapped", [False, True])
def test_right_guesses_under_retraining_are_exactly_binomial(swapped):
    """100,000 audits of models that know nothing of the coins but differ by sample far more than by model; with
    ``swapped`` the two models of a pair guess together."""
    rng, audits, pairs = np.random.default_rng(5), 100_000, 6
    order = rng.random((audits, 2 * pairs)).argsort(axis=1)
    forget = np.zeros((audits, 2 * pairs), bool)
    np.put_along_axis(forget, order[:, :pairs], True, axis=1)
    hardness = rng.standard_normal(2 * pairs) * 3
    copies = 2 if swapped else 1
    score = np.round(hardness + rng.standard_normal((copies * audits, 2 * pairs)), 1)  # so that there are ties
    tosses = []
    for audit in range(audits):
        models = audit * copies + np.arange(copies)
        sides = np.flatnonzero(forget[audit]), np.flatnonzero(~forget[audit])
        tosses.append(_coins.Toss(models, np.array([1, -1])[:copies], rng.permutation(sides[0]), sides[1]))
    guesses = _one_run._guesses([score], tosses).reshape(audits, pairs)
    decided = (guesses != 0).all(axis=1)
    assert 1000 < (~decided).sum() < audits / 2
    counts = np.bincount((guesses > 0).sum(axis=1)[decided], minlength=pairs + 1)
    assert chisquare(counts, decided.sum() * binom.pmf(np.arange(pairs + 1), pairs, 0.5)).pvalue > 1e-3


def test_a_gaussian_shift_is_guessed_as_often_as_its_closed_form_says(folder):
    rows = call.rows(one_run, folder.case(folder.original, folder.original), SETTINGS)
    # phi of a seen and of an unseen sample differ by SEEN − UNSEEN, with variance 2 in one model.
    truth = ndtr((SEEN - UNSEEN) / np.sqrt(2))
    for model in range(12):
        row = only_row(rows, "right_guesses", setting=f"model={model}")
        assert row.n == 60
        assert abs(row.value - truth) < 4 * np.sqrt(truth * (1 - truth) / 60)
    assert only_row(rows, "right_guesses").value == 1.0
    assert only_row(rows, "right_guesses").n == 120


def test_retrained_models_are_not_told(folder):
    rows = call.rows(one_run, folder.case(folder.original, folder.retrained), SETTINGS)
    share = only_row(rows, "right_guesses")
    assert share.ci_low <= 0.5 <= share.ci_high
    p_values = [only_row(rows, "one_run_p", "phi", f"model={m}").value for m in range(12)]
    assert min(p_values) > 0.05 / 12
    assert only_row(rows, "epsilon_request").value == only_row(rows, "epsilon_record").value == 0.0


def test_epsilon_is_that_of_a_single_model(folder):
    rows = call.rows(one_run, folder.case(folder.original, folder.original), SETTINGS)
    # All 120 pairs right: divided by the 12 models that contributed, and for a record by the six that share its coin.
    assert only_row(rows, "epsilon_request").value == pytest.approx((np.log(0.05) + 120 * np.log(2)) / 12)
    low = 0.05 ** (1 / 120)
    assert only_row(rows, "epsilon_replace").value == pytest.approx(np.log(low / (1 - low)) / 6)
    assert only_row(rows, "epsilon_record").value == pytest.approx(np.log((1 + low / (1 - low)) / 2) / 6)
    assert only_row(rows, "one_run_p").value == pytest.approx(0.5**120)
    right = round(60 * only_row(rows, "right_guesses", setting="model=0").value)
    tail = binom.sf(right - 1, 60, 0.5)
    assert only_row(rows, "epsilon_request", setting="model=0").value == pytest.approx(np.log(0.05 / tail))
    assert only_row(rows, "one_run_p", setting="model=0").value == pytest.approx(tail)


def test_delta_is_for_a_single_model(folder):
    settings = {**SETTINGS, "metrics": {"one_run": {"delta": 0.01}}}
    rows = call.rows(one_run, folder.case(folder.original, folder.original), settings)
    assert only_row(rows, "epsilon_request").note.endswith("counts of several models give no bound for δ above 0")
    tail = only_row(rows, "one_run_p", setting="model=0").value
    assert only_row(rows, "epsilon_request", setting="model=0").value == pytest.approx(np.log(0.04 / tail))
    rows = call.rows(
        one_run, folder.case(folder.original, folder.original), {**settings, "metrics": {"one_run": {"delta": 0.05}}}
    )
    assert "δ is too large for" in only_row(rows, "epsilon_request", setting="model=0").note


# ---------------------------------------------------------------- attacks


def scored(folder, tmp_path, **attacks):
    """A case with scores of attacks: name → function of phi [target models, samples] and membership."""
    case = folder.case(folder.original, folder.retrained)
    member = case.membership[case.target]
    phi = _one_run.scores_of(case)[_one_run.PHI, ""]
    model, index = np.nonzero(member.forget | member.heldout)
    columns = []
    for name, of in attacks.items():
        values = of(phi, member)[model, index]
        columns.append(
            {"attack": np.full(len(model), name), "form": np.full(len(model), "trained"), "score": values,
             "model": model.astype(np.int32), "index": index.astype(np.int32), "decision": values > 0,
             "role": np.where(member.forget[model, index], "forget", "heldout")}
        )  # fmt: skip
    path = tmp_path / "scores.parquet"
    tables.write_scores(path, {key: np.concatenate([c[key] for c in columns]) for key in columns[0]})
    case.scores_file = str(path)
    return case


def test_what_is_less_familiar_is_found_in_both_directions_and_pays_for_it(folder, tmp_path):
    case = scored(
        folder, tmp_path,
        confidence=lambda phi, _: phi,
        correctness=lambda phi, member: phi - 2.0 * member.forget,
        random=lambda phi, member: 9.0 * member.forget,
    )  # fmt: skip
    rows = call.rows(one_run, case, SETTINGS)
    assert only_row(rows, "right_guesses", "correctness/trained").value < 0.1
    assert only_row(rows, "one_run_p", "correctness/trained").value > 0.99
    assert not [row for row in rows if row.attack == "confidence/trained"], "phi under another name"
    pairs = only_row(rows, "right_guesses", "correctness/trained").n
    wrong = round(pairs * (1 - only_row(rows, "right_guesses", "correctness/trained").value))
    for name in ("adaptive", "extended"):
        row = only_row(rows, "one_run_p", name)
        # Two attacks in two directions; the control is none of them, however well it guesses.
        assert row.value == pytest.approx(4 * binom.sf(wrong - 1, pairs, 0.5))
        assert "best of 2 attacks in both directions: correctness/trained turned round" in row.note
    half = only_row(rows, "one_run_p", "extended_half")
    assert (half.value < 1e-6, half.n) == (True, pairs // 2)
    assert only_row(rows, "one_run_p", "random/trained").value < 1e-9


def test_the_control_is_read_even_where_it_ranks_as_phi_does(folder, tmp_path):
    rows = call.rows(one_run, scored(folder, tmp_path, random=lambda phi, _: phi), SETTINGS)
    assert only_row(rows, "one_run_p", "random/trained").value == only_row(rows, "one_run_p").value


@pytest.mark.parametrize("trace", [4.0, -4.0])
def test_forgotten_samples_that_are_less_familiar_are_guessed_turned_round(tmp_path, trace):
    files = Folder(tmp_path, memberships(pairs=1, models=1))
    rng = np.random.default_rng(3)
    path = files.add("audited", lambda member: rng.standard_normal(member.train.shape) + trace * member.forget)
    rows = call.rows(one_run, files.case(path, path), SETTINGS)
    assert only_row(rows, "one_run_p", "phi_two_sided").value < 0.01
    assert ("turned round" in only_row(rows, "one_run_p", "phi_two_sided").note) == (trace < 0)


def test_another_spread_is_found_by_the_likelihood_ratio(tmp_path):
    files = Folder(tmp_path, memberships(pairs=1, models=1))
    rng = np.random.default_rng(3)
    noisy = files.add("noisy", lambda member: UNSEEN + 6.0 * rng.standard_normal(member.train.shape) * member.forget)
    rows = call.rows(one_run, files.case(noisy, noisy), SETTINGS)
    assert only_row(rows, "one_run_p", "phi_two_sided").value > 0.05
    assert only_row(rows, "one_run_p", "phi_likelihood_ratio", "model=0").value < 0.01


@pytest.mark.parametrize(("pairs", "learned"), [(3, set()), (4, {"phi_likelihood_ratio"})])
def test_two_pairs_in_each_half_are_the_fewest_that_teach(pairs, learned):
    """A half of two pairs gives both Gaussians a spread, a half of one none."""
    forget = np.arange(2 * pairs)[None] < pairs
    rows = _one_run.evaluate(
        scores={(_one_run.PHI, ""): np.arange(2.0 * pairs)[None]},
        tosses=_coins.at_random(matrices(forget, ~forget), 0),
        adaptive=[],
        delta=0.0,
        seed=0,
    )
    assert {row.attack for row in rows} - {"phi", "phi_two_sided"} == learned


def test_coins_are_a_fair_draw_for_verdicts_and_models_of_other_protocols_speak_for_themselves():
    options = one_run_protocol.Options(canaries=40)
    member = one_run_protocol.draw(0, "models", data(), options, 1)
    rng = np.random.default_rng(0)

    class Case:
        """What the metric reads of a case without attacks."""

        membership, target, scores_file, unlearned_files = member, np.ones(1, bool), None, ["own"]
        phi = np.where(member.forget, 3.0, 0.0) + rng.normal(size=member.forget.shape)

        def labels_of(self, models):
            return data().y

        def answers(self, files):
            phi = self.phi
            return type("Answers", (), {"phi": lambda self, labels, models: phi})()

    Case.seed = 0
    (name,) = parts = one_run.contributions(Case(), one_run.Options())
    assert (name, parts[name].standard.ideal, parts[name].standard.chance) == ("right_guesses", 0.5, "samples")
    first, second = np.argsort(member.pair, kind="stable")[-80:].reshape(-1, 2).T
    right = int((np.where(member.forget[0, first], 1, -1) * (Case.phi[0, first] - Case.phi[0, second]) > 0).sum())
    assert parts[name].value[0, 0] == pytest.approx(right / 40)
    assert parts[name].p[0] == pytest.approx(2 * binom.sf(right - 1, 40, 0.5))
    Case.membership = replace(member, pair=None)
    assert one_run.contributions(Case(), one_run.Options()) == {}


def test_a_p_below_what_a_float_holds_is_adjusted_like_any_other():
    """Of doing nothing, by two attacks on so many pairs that no float holds the p of the second."""
    pairs, parts = 5000, {}
    toss = _coins.Toss(np.array([0]), np.array([1]), np.arange(pairs), np.arange(pairs, 2 * pairs))
    for seed, (method, shares) in enumerate({"none": (0.53, 0.85), "x": (0.5, 0.5)}.items(), 1):
        rng, scores = np.random.default_rng(seed), {}
        for number, share in enumerate(shares):
            right = rng.random(pairs) < share
            scores[f"attack{number}", "t"] = np.concatenate([right, ~right])[None] * 1.0
        standard = one_run.DECIDES["right_guesses"]
        part = _one_run.contribution(scores=scores, tosses=[toss], standard=standard)
        parts[method] = {"right_guesses": part}
    none = parts["none"]["right_guesses"]
    assert 0 < none.p[1] < 1e-300 < none.p[0]
    for p in (none.p, none.p * (none.p > 1e-300)):
        with np.errstate(divide="raise", invalid="raise"):
            _, lines = compare({**parts, "none": {"right_guesses": replace(none, p=p)}})
        assert lines["none"]["found_by"] == "right_guesses attack1/t"
        assert lines["x"]["margin"] == 0.05


def test_the_p_of_a_verdict_is_that_of_the_best_of_all_attacks():
    """Models with coins of their own, ties, an attack turned round and the control, which is none."""
    member = Membership.concatenate(canaries(models=3, pairs=30))
    rng = np.random.default_rng(2)
    phi = np.round(rng.normal(size=member.forget.shape) + 0.6 * member.forget, 1)
    scores = {(_one_run.PHI, ""): phi, ("mine", "trained"): rng.normal(size=phi.shape) - 1.5 * member.forget,
              (_one_run.CONTROL, "trained"): 9.0 * member.forget}  # fmt: skip
    tosses = _coins.tossed(member, seed=0)
    rows = _one_run.evaluate(scores=scores, tosses=tosses, adaptive=[], delta=0.0, seed=0)
    part = _one_run.contribution(scores=scores, tosses=tosses, standard=one_run.DECIDES["right_guesses"])
    assert part.names == ("phi", "mine/trained")
    assert part.p.min() == pytest.approx(only_row(rows, "one_run_p", "extended").value, rel=1e-12)
    for name, value in zip(part.names, part.value, strict=True):
        share = only_row(rows, "right_guesses", name)
        right = round(share.value * share.n)
        assert value.mean() == pytest.approx((right + (90 - share.n) / 2) / 90, rel=1e-12)
        tail = min(binom.sf(right - 1, share.n, 0.5), binom.cdf(right, share.n, 0.5))
        assert part.p[part.names.index(name)] == pytest.approx(min(4 * tail, 1.0))
    assert only_row(rows, "right_guesses", "phi").n < 90, "some pairs tie"
    assert part.influence.sum(axis=2) + part.imagined.sum(axis=2) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("delta", "sharing", "bounded"), [(0.0, 3, True), (1e-5, 1, True), (1e-5, 3, False)])
def test_models_that_guess_together_have_a_bound_for_pure_budgets_alone(delta, sharing, bounded):
    whole = Estimate(value=3.0, low=1.5, high=4.5, n=10)
    part = _one_run._shared(whole, delta, sharing)
    if bounded:
        assert (part.value, part.low) == (3.0 / sharing, 1.5 / sharing)
    else:
        assert np.isnan(part.value)
        assert "no bound for δ above 0" in part.note


@pytest.mark.parametrize(
    ("tosses", "words"),
    [
        ([1], ""),
        ([2], "2 models, 2 to a coin; "),
        ([1, 1], "2 models, 1 to a coin; "),
        ([3, 2], "5 models, 3 to a coin; "),
    ],
)  # fmt: skip
def test_several_models_and_those_that_share_a_coin_are_counted(tosses, words):
    guesses = guessing.Guesses(right=90, pairs=100, ties=0, attacks=1)
    tossed = [SimpleNamespace(models=list(range(models))) for models in tosses]
    rows = {row.metric: row for row in _one_run._rows({"phi": (guesses, "by φ")}, None, 0.0, tossed)}
    assert {row.note.startswith(f"90 of 100 right; {words}by φ") for row in rows.values()} == {True}
    alone = guessing.epsilon_record(guesses=guesses, delta=0.0).value
    assert rows["epsilon_record"].value == pytest.approx(alone / max(tosses))
    assert rows["epsilon_request"].value == guessing.epsilon_request(guesses=guesses, models=sum(tosses)).value
