"""All systems' metrics on swapped pairs, against simulated models of which everything is known."""

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import t as student
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import (
    _pairs,
    accuracy_on_pairs,
    competition,
    competition_on_pairs,
    efficacy_on_pairs,
    ruli,
    ruli_on_pairs,
)
from unlearning_audit.metrics.competition_on_pairs import NO_NULL, Split, estimates
from unlearning_audit.protocols import random_splits, swap
from unlearning_audit.protocols import ruli as thirds
from unlearning_audit.stats.readings import readings

import metric_calls as call
from attack_cases import logits_of
from held_answers import Held
from row_places import only
from ruli_cases import SEEN, UNSEEN, Folder, data, retrained, trained
from slow_cases import slow
from swap_games import layout

PAIRS, MODELS = 4, 3
SETTINGS = {"seed": 0, "bootstrap": 200}


def memberships(pairs=PAIRS, protocol=swap, **changes):
    """Target and shadow models of so many pairs, in two batches."""
    options = protocol.Options(**{"alpha": 0.25, "pairs": pairs, "models_per_split": MODELS} | changes)
    members = [protocol.draw(b, "pairs", data(), options, 1) for b in range(pairs)]
    return [Membership.concatenate(batch) for batch in (members[:1], members[1:]) if batch]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four pairs: retrained models know what they keep, those of ``none`` the forget set as well."""
    files = Folder(tmp_path_factory.mktemp("pairs"), memberships())
    files.original = files.add("original", trained)
    files.retrained, files.control = files.add("retrained", retrained), files.add("control", retrained)
    return files


def holds(row, value):
    return row.ci_low <= value <= row.ci_high


# ---------------------------------------------------------------- pairs


def test_every_split_forgets_what_its_twins_never_saw():
    member = Membership.concatenate(memberships())
    groups = _pairs.swapped_splits(member)
    assert [group.block for group in groups] == [b for b in range(PAIRS) for _ in range(2)]
    for group in groups:
        assert len(group.models) == len(group.twins) == MODELS
        assert np.array_equal(np.flatnonzero(member.forget[group.models].all(axis=0)), group.forget)
        assert member.heldout[group.twins][:, group.forget].all()
    assert sorted(np.concatenate([group.models for group in groups])) == np.flatnonzero(~member.shadow).tolist()


def test_what_is_no_swapped_pair_is_refused():
    with pytest.raises(ValueError, match="pair 0 does not swap what is forgotten and what is held out"):
        _pairs.swapped_splits(memberships(1, random_splits)[0])
    options = thirds.Options(target_size=90, attack_size=100)
    with pytest.raises(ValueError, match="pair 0 has not equally many models of two splits"):
        _pairs.swapped_splits(thirds.draw(0, "target", data(), options, 1))
    member = memberships(1)[0]
    with pytest.raises(ValueError, match="pair 0 has not equally many models of two splits"):
        _pairs.swapped_splits(member[np.arange(len(member.seed)) > 0])


# ---------------------------------------------------------------- RULI


def simulated(rng, *, pairs, models, shift, spread=2.0, samples=800, k=80, shared=0.0):
    """Scores of phi = sample + what a pair's models share + standard noise + ``shift`` where it was forgotten."""
    masks = layout(rng, samples=samples, pairs=pairs, k=k, models=models)
    forget, heldout = masks["forget"], masks["heldout"]
    member = Membership(~heldout, forget, heldout, np.arange(len(forget)), masks["split"], masks["block"],
                        np.zeros(len(forget), bool))  # fmt: skip
    base = spread * rng.standard_normal(samples) + shared * rng.standard_normal((pairs, samples))[member.block]
    original, unlearned, anew = (
        base + rng.standard_normal(forget.shape) + high for high in (3 * ~heldout, shift * forget, 0)
    )
    population = ruli.Population(original, unlearned, member.train, forget, heldout, anew)
    sides = [(group.models, group.twins) for group in _pairs.swapped_splits(member)]
    scores = ruli_on_pairs.leave_pair_out(population, sides, ruli.Options(density="pooled", minimum=2))
    return {test: readings(question, fpr=())["auc"] for test, question in scores.items()}


@pytest.mark.parametrize(("pairs", "shared"), [(1, 0.0), *slow((4, 1.0))])
def test_what_was_never_learned_reads_half_however_few_the_models(pairs, shared):
    """Models that forgot a sample and models that never saw it are equally many in every reference."""
    rng = np.random.default_rng(0)
    draws = [simulated(rng, pairs=pairs, models=3, shift=0.0, shared=shared) for _ in range(20)]
    for test in ruli_on_pairs.TESTS:
        values = np.array([draw[test].value for draw in draws])
        assert values.mean() == pytest.approx(0.5, abs=4 * values.std() / math.sqrt(len(values)))
        assert values.std() < 0.05
        assert np.mean([draw[test].low <= 0.5 <= draw[test].high for draw in draws]) >= 0.85


def test_a_known_shift_gives_the_auc_of_two_gaussians():
    """Per sample Φ(d/√2), whatever samples differ by; for one threshold on all samples Φ(d/√(2(1 + s²)))."""
    d, s = 1.0, 2.0
    truth, pooled = ndtr(d / math.sqrt(2)), ndtr(d / math.sqrt(2 * (1 + s**2)))
    read = simulated(np.random.default_rng(1), pairs=2, models=20, shift=d, spread=s)
    for attack, name in (("ruli", "privacy"), ("ruli", "efficacy"), ("u_lira", "privacy")):
        assert read[attack, name].value == pytest.approx(truth, abs=0.02)
    assert read["population", "privacy"].low <= pooled <= read["population", "privacy"].high


def test_retraining_reads_half_and_doing_nothing_what_was_learned(folder):
    retrain, none = (
        call.rows(ruli_on_pairs, folder.evaluation(folder.original, files, folder.retrained, folder.control), SETTINGS)
        for files in (folder.retrained, folder.original)
    )
    for attack, name in ruli_on_pairs.TESTS:
        assert holds(only(retrain, f"{name}_auc", attack=attack), 0.5)
        row = only(none, f"{name}_auc", attack=attack)
        # d = 3 and, but for noise in the references, no other spread than that of models
        assert row.value == pytest.approx(ndtr((SEEN - UNSEEN) / math.sqrt(2)), abs=0.02)
        pairs = [only(none, f"{name}_auc", f"pair={b}", attack).value for b in range(PAIRS)]
        assert np.mean(pairs) == pytest.approx(row.value, abs=1e-12)


# ---------------------------------------------------------------- too few models


@pytest.mark.parametrize(
    ("metric", "least", "refused"),
    [(ruli_on_pairs, ruli_on_pairs.Options().minimum + 1, "fewer than 2: train more"),
     (competition_on_pairs, 2, "at least two unlearned and two")],
    ids=["ruli", "competition"],
)  # fmt: skip
def test_the_least_number_of_models_that_is_declared_is_the_least_that_can_be_scored(tmp_path, metric, least, refused):
    declared = 2 if metric is competition_on_pairs else ("minimum", 1)
    assert {"models_per_split": declared} == metric.PROTOCOL_MINIMUM
    for number in (least, least - 1):
        files = Folder(tmp_path / str(number), memberships(1, models_per_split=number))
        retrain = files.add("retrained", retrained)
        evaluation = files.evaluation(files.add("original", trained), retrain, retrain, files.add("control", retrained))
        if number == least:
            assert any(np.isfinite(row.value) for row in call.rows(metric, evaluation, {}))
        else:
            with pytest.raises(ValueError, match=refused):
                call.rows(metric, evaluation, {})


# ---------------------------------------------------------------- competition


ONE = (1.0, 1.0)
NO_SCORE = "the final score needs the accuracy of retrained models on a test part, above 0"


def splits(*f: float, null: float = 1.0, test: tuple[float, float] = ONE) -> list[Split]:
    """One split of each of so many pairs, all of whose samples have the same points."""
    return [Split(block, np.full(4, point), np.full(4, null), ONE, test) for block, point in enumerate(f)]


def limits(estimate):
    return estimate.value, estimate.low, estimate.high


def test_three_pairs_are_enough_for_students_interval():
    results = estimates(splits(0.4, 0.5, 0.9))
    half = student(2).ppf(0.975) * math.sqrt(0.07 / 3)
    for name, end in (
        ("forgetting_quality", 1.0), ("forgetting_quality_over_null", 0.6 + half), ("score", 0.6 + half)
    ):  # fmt: skip
        assert limits(results[name]) == pytest.approx((0.6, max(0.6 - half, 0), end))
        assert (results[name].n, results[name].note) == (12, "")
    narrow = estimates(splits(0.5, 0.6, 0.7))["forgetting_quality"]
    assert narrow.low == pytest.approx(0.6 - student(2).ppf(0.975) * 0.1 / math.sqrt(3))


def test_two_pairs_have_an_interval_over_samples():
    h, null = np.array([0.0, 1, 0, 1, 0, 1, 0, 1]), np.full(8, 0.5)
    results = estimates([Split(b, h[4 * b :][:4], null[:4], (0.8, 0.9), (0.6, 0.9)) for b in range(2)])
    half = student(7).ppf(0.975) * math.sqrt(2 / 7 / 8)
    for name, scale in (
        ("forgetting_quality", 1), ("forgetting_quality_over_null", 2), ("score", 0.8 / 0.9 * 0.6 / 0.9)
    ):  # fmt: skip
        assert limits(results[name]) == pytest.approx((0.5 * scale, (0.5 - half) * scale, (0.5 + half) * scale))
        assert "too few models for an interval over models" in results[name].note
    assert limits(results["forgetting_quality_null"]) == (0.5, 0.5, 0.5)
    rare = estimates([Split(0, np.eye(8)[0], null, ONE, ONE)])
    assert {rare[name].low for name in ("forgetting_quality", "forgetting_quality_over_null", "score")} == {0}


#: F₀ of two samples, of which one has no points, and of three pairs, of which two have none.
ONE_SAMPLE = [Split(0, np.array([1.0, 0.5]), np.array([0.5, 0.0]), ONE, ONE)]
ONE_PAIR = [Split(0, np.full(4, 0.5), np.full(4, 1.0), ONE, ONE), *splits(0.5, 0.5, 0.5, null=0.0)[1:]]


@pytest.mark.parametrize(
    ("some", "name", "value", "note"),
    [
        (splits(0.5, 0.5, null=0.0), "forgetting_quality_over_null", math.nan, "F₀ is 0"),
        (splits(0.5, 0.5, null=math.nan), "forgetting_quality_over_null", math.nan, NO_NULL),
        (splits(0.5, 0.5, null=math.nan), "forgetting_quality_null", math.nan, NO_NULL),
        *((splits(0.5, 0.5, 0.5, test=test), "score", math.nan, NO_SCORE) for test in ((0.5, 0.0), (math.nan,) * 2)),
        (ONE_SAMPLE, "forgetting_quality_over_null", 3, competition.NO_INTERVAL),
        (ONE_PAIR, "forgetting_quality_over_null", 1.5, "without one of the pairs there is no number, so no interval"),
    ],
)
def test_what_is_missing_is_said(some, name, value, note):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = estimates(some)
    np.testing.assert_array_equal(limits(results[name]), (value, math.nan, math.nan))
    assert (results[name].n, results[name].note) == (sum(len(split.h) for split in some), note)
    assert results["forgetting_quality"].value >= 0.5, "the others are there"


def evaluation(*, control=True, test=True, method="own"):
    """A shadow model, then one pair: two models forget samples 0 to 3, two 4 to 7; 8 and 9 are kept, 10 to 13 tested.

    Unlearned models tell two of each four apart from retrained ones; retrained ones of the other split and the control
    tell one apart."""
    count, samples = 5, 14
    forget, heldout = np.zeros((2, count, samples), bool)
    forget[1:3, :4] = heldout[3:, :4] = forget[3:, 4:8] = heldout[1:3, 4:8] = True
    train = ~heldout & (np.arange(samples) < 10)
    split = np.array([0, 0, 0, 1, 1])
    member = Membership(train, forget, heldout, np.arange(count), split, np.zeros(count, int), np.arange(count) == 0)
    y = np.tile([0, 1, 1, 0, 1, 0, 1], 2)
    phi = np.full((count, samples), 5.0)
    unlearned, retrain, second = phi.copy(), phi.copy(), phi.copy()
    unlearned[:, [0, 1, 4, 5]] = 9
    retrain[1:3, 4] = retrain[3:, 0] = 1  # what a split of the other side says of one sample
    second[:, [0, 4]] = 7
    unlearned[1:3, 8], unlearned[:, 10:12], retrain[:, 10] = -5, -5, -5
    populations = {"own": unlearned, "retrain": retrain, "control": second}
    arrays = {name: logits_of(of, y, classes=2) for name, of in populations.items()}
    return SimpleNamespace(
        membership=member, labels=y, unlearned_files=[method], retrained_files=["retrain"],
        control_files=["control"] if control else None, arrays=arrays, outputs=lambda files: Held(arrays[files[0]]),
        labels_of=lambda models: y,
        data=SimpleNamespace(part=(np.arange(samples) >= (10 if test else 99)) * 1, y_clean=y),
    )  # fmt: skip


def read(example: SimpleNamespace, split: int = 0) -> Split:
    return competition_on_pairs.read_split(example, _pairs.swapped_splits(example.membership)[split], "exact")


def test_accuracies_are_those_of_a_split_and_of_models_retrained_for_it():
    result = read(evaluation())
    assert (result.block, result.retain, result.test) == (0, [0.5, 1], [0.5, 0.75])
    assert read(evaluation(), 1).retain == [1, 1]
    assert math.isnan(read(evaluation(test=False)).test[0])
    assert result.h.tolist() == [0, 0, 0, 0], "two models on a side have no bins: ⌈ln 1⌉ = 0"


def more(example: SimpleNamespace) -> SimpleNamespace:
    """The same with every model three times."""
    again = np.repeat(np.arange(5), 3)
    example.membership = example.membership[again]
    example.arrays.update({name: logits[again] for name, logits in example.arrays.items()})
    return example


@pytest.mark.parametrize(
    ("method", "control", "h", "null"),
    [
        ("own", True, [0, 0, 1, 1], [0, 1, 1, 1]),
        ("retrain", True, [0, 1, 1, 1], [0, 1, 1, 1]),
        ("retrain", False, [0, 1, 1, 1], [math.nan] * 4),
    ],
)
def test_points_and_their_null(method, control, h, null):
    for split in (0, 1):
        result = read(more(evaluation(method=method, control=control)), split)
        np.testing.assert_array_equal([result.h, result.null], [h, null])


def test_rows_of_a_case_say_how_many_models_were_compared():
    rows = {row.metric: row for row in call.rows(competition_on_pairs, more(evaluation()), {})}
    assert {name: row.value for name, row in rows.items()} == pytest.approx({
        "forgetting_quality": 0.5, "forgetting_quality_null": 0.75, "forgetting_quality_over_null": 0.5 / 0.75,
        "score": 0.5 * 0.75 * (0.5 / 0.75),
    })  # fmt: skip
    assert rows["score"].note.startswith("6 against 6 models for each of 2 forget sets; ")
    assert rows["score"].n == 8


def parts_of(rng, *, shift, pairs=4, k=40, models=3, split_sd=0.0):
    """Splits whose phi is known, with ``split_sd`` of how much the shift differs among them."""
    splits = []
    for block in range(pairs):
        for _ in range(2):
            base = 2 * rng.standard_normal(k)
            split_shift = shift + split_sd * rng.standard_normal()
            u, r, control = (base + rng.standard_normal((models, k)) + x for x in (split_shift, 0.0, 0.0))
            h, null = (
                competition_on_pairs.points(competition_on_pairs.epsilons(unlearned=a, retrained=b), models=models)
                for a, b in ((u, r), (r, control))
            )
            splits.append(Split(block, h, null, (0.9, 0.9), (0.8, 0.8)))
    return splits


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "split_sd"), [(0.0, 0.0), (1.0, 0.5)], ids=["perfect", "splits differ"])
def test_intervals_over_pairs_cover(shift, split_sd):
    rng = np.random.default_rng(3)
    parts = [parts_of(rng, shift=shift, split_sd=split_sd) for _ in range(40)]
    found = [estimates(part)["forgetting_quality_over_null"] for part in parts]
    truth = 1.0 if shift == 0 else np.mean([estimate.value for estimate in found])
    assert np.mean([estimate.value for estimate in found]) == pytest.approx(truth, abs=0.05)
    assert np.mean([estimate.low <= truth <= estimate.high for estimate in found]) >= 0.85


def test_accuracies_count_as_the_ratio_of_their_means():
    """F = 1/4, RA = (.6 + .8)/(.8 + 1.2)… as in the document: averages first, then the ratio."""
    h, null = np.array([1.0, 0.0]), np.array([1.0, 1.0])
    parts = [Split(0, h, null, (0.6, 0.8), (0.5, 1.0)), Split(1, 0 * h, null, (0.8, 1.0), (0.25, 1.0))]
    numbers = estimates(parts)
    assert numbers["forgetting_quality"].value == 0.25
    assert numbers["forgetting_quality_over_null"].value == 0.25
    assert numbers["score"].value == pytest.approx(0.25 * (1.4 / 1.8) * (0.75 / 2))


# ---------------------------------------------------------------- accuracy


def test_a_gap_is_that_of_its_own_pair(folder):
    """Retrained models guess on forgotten samples, right half of the time; models of pair b know all if b is odd."""
    odd = folder.add("odd", lambda m: np.where(m.retain | (m.forget & (m.block % 2 == 1)[:, None]), 40.0, UNSEEN))
    rows = call.rows(accuracy_on_pairs, folder.evaluation(folder.original, odd, folder.retrained), SETTINGS)
    for block in range(PAIRS):
        row = only(rows, "accuracy_gap", f"pair={block};role=forget")
        assert holds(row, -0.5 if block % 2 else 0.0)
        assert row.value == pytest.approx(-0.5 if block % 2 else 0.0, abs=0.12)


# ---------------------------------------------------------------- efficacy


def test_a_split_counts_once_by_the_median_of_its_models():
    """ι of a model is its gradients' mean squared norm: splits of pair b have 1/(b + 1), 1/(b + 1) and something."""
    member = Membership.concatenate(memberships())
    iota, first = 1.0 / (member.block + 1), np.flatnonzero(~member.shadow)[::MODELS]
    iota[first] = np.where(member.block[first] > 0, 1e-3, 1e3)
    evaluation = SimpleNamespace(membership=member, gradients=(np.tile(iota[:, None], (1, 9)), iota / 4))
    rows = call.rows(efficacy_on_pairs, evaluation, SETTINGS)
    for block in range(PAIRS):
        row = only(rows, "efficacy_median", f"pair={block}")
        assert (row.value, row.n) == (pytest.approx(block + 1), 2)
        assert only(rows, "efficacy_upper_bound_median", f"pair={block}").value == pytest.approx(4 * (block + 1))
    row = only(rows, "efficacy_median")
    assert (row.value, row.ci_low, row.ci_high) == pytest.approx((2.5, 1, 4))
    assert row.n == 2 * PAIRS
    assert {row.model for row in rows} == {None}
