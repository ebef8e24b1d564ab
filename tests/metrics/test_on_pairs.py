"""All systems' metrics on swapped pairs, against simulated models of which everything is known."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import (
    _pairs,
    accuracy_on_pairs,
    competition_on_pairs,
    efficacy_on_pairs,
    ruli,
    ruli_on_pairs,
)
from unlearning_audit.protocols import random_splits, swap
from unlearning_audit.protocols import ruli as thirds
from unlearning_audit.stats.readings import readings

import metric_calls as call
from row_places import about
from ruli_cases import SEEN, UNSEEN, Folder, data, retrained, trained
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


def only_row(rows, metric, setting="", attack=""):
    """The only row of a metric whose setting holds ``setting``; no pair's, if none is named."""
    matches = [r for r in rows if (r.metric, r.attack) == (metric, attack) and setting in about(r)]
    (row,) = [r for r in matches if "pair=" in setting or "pair=" not in about(r)]
    return row


def holds(row, value):
    return row.ci_low <= value <= row.ci_high


# ---------------------------------------------------------------- pairs


def test_every_split_forgets_what_its_twins_never_saw():
    member = Membership.concatenate(memberships())
    groups = _pairs.groups(member)
    assert [group.block for group in groups] == [b for b in range(PAIRS) for _ in range(2)]
    for group in groups:
        assert len(group.models) == len(group.twins) == MODELS
        assert not member.shadow[group.models].any()
        assert np.array_equal(np.flatnonzero(member.forget[group.models].all(axis=0)), group.forget)
        assert member.heldout[group.twins][:, group.forget].all()
        assert not member.train[group.twins][:, group.forget].any()
        # what both keep is the same, so that models retrained for either are trained alike
        assert (member.retain[group.models] == member.retain[group.twins]).all()
    assert sorted(np.concatenate([group.models for group in groups])) == np.flatnonzero(~member.shadow).tolist()


def test_what_is_no_swapped_pair_is_refused():
    with pytest.raises(ValueError, match="pair 0 does not swap what is forgotten and what is held out"):
        _pairs.groups(memberships(1, random_splits)[0])
    options = thirds.Options(target_size=90, attack_size=100)
    with pytest.raises(ValueError, match="pair 0 has not equally many models of two splits"):
        _pairs.groups(thirds.draw(0, "target", data(), options, 1))
    member = memberships(1)[0]
    with pytest.raises(ValueError, match="pair 0 has not equally many models of two splits"):
        _pairs.groups(member[np.arange(len(member.seed)) > 0])


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
    sides = [(group.models, group.twins) for group in _pairs.groups(member)]
    scores = ruli_on_pairs.leave_pair_out(population, sides, ruli.Options(density="pooled", minimum=2))
    return {test: readings(question, fpr=())["auc"] for test, question in scores.items()}


@pytest.mark.parametrize(("pairs", "shared"), [(1, 0.0), (4, 1.0)], ids=["fewest models", "pairs differ"])
def test_what_was_never_learned_reads_half_however_few_the_models(pairs, shared):
    """Models that forgot a sample and models that never saw it are equally many in every reference."""
    rng = np.random.default_rng(0)
    draws = [simulated(rng, pairs=pairs, models=3, shift=0.0, shared=shared) for _ in range(40)]
    for test in ruli_on_pairs.TESTS:
        values = np.array([draw[test].value for draw in draws])
        assert values.mean() == pytest.approx(0.5, abs=4 * values.std() / math.sqrt(len(values)))
        assert values.std() < 0.05
        assert np.mean([draw[test].low <= 0.5 <= draw[test].high for draw in draws]) >= 0.85


def test_a_known_shift_gives_the_auc_of_two_gaussians():
    """Per sample Φ(d/√2), whatever samples differ by; for one threshold on all samples Φ(d/√(2(1 + s²))). Three models
    a side place each sample's threshold badly: a lower bound of the leak, which is how it is read."""
    d, s = 1.0, 2.0
    truth, pooled = ndtr(d / math.sqrt(2)), ndtr(d / math.sqrt(2 * (1 + s**2)))
    read = simulated(np.random.default_rng(1), pairs=2, models=20, shift=d, spread=s)
    for attack, name in (("ruli", "privacy"), ("ruli", "efficacy"), ("u_lira", "privacy")):
        assert read[attack, name].value == pytest.approx(truth, abs=0.02)
    assert read["population", "privacy"].low <= pooled <= read["population", "privacy"].high
    rng = np.random.default_rng(2)
    values = [simulated(rng, pairs=4, models=3, shift=d)["ruli", "privacy"].value for _ in range(10)]
    assert 0.6 < np.mean(values) < truth - 0.03


def test_retraining_reads_half_and_doing_nothing_what_was_learned(folder):
    retrain, none = (
        call.rows(ruli_on_pairs, folder.case(folder.original, files, folder.retrained, folder.control), SETTINGS)
        for files in (folder.retrained, folder.original)
    )
    for attack, name in ruli_on_pairs.TESTS:
        assert holds(only_row(retrain, f"{name}_auc", attack=attack), 0.5)
        row = only_row(none, f"{name}_auc", attack=attack)
        # d = 3 and, but for noise in the references, no other spread than that of models
        assert row.value == pytest.approx(ndtr((SEEN - UNSEEN) / math.sqrt(2)), abs=0.02)
        pairs = [only_row(none, f"{name}_auc", f"pair={b}", attack).value for b in range(PAIRS)]
        assert np.mean(pairs) == pytest.approx(row.value, abs=1e-12)


# ---------------------------------------------------------------- too few models


@pytest.mark.parametrize(
    ("metric", "options", "refused"),
    [
        (ruli_on_pairs, {}, "fewer than 2: train more"),
        (ruli_on_pairs, {"minimum": 4}, "fewer than 4: train more"),
        (competition_on_pairs, {}, "at least two unlearned and two"),
    ],
    ids=["ruli", "ruli of more", "competition"],
)
def test_the_least_number_of_models_that_is_declared_is_the_least_that_can_be_scored(
    tmp_path, metric, options, refused
):
    (option, declared), *others = metric.PROTOCOL_MINIMUM.items()
    chosen = metric.Options(**options)
    name, more = declared if isinstance(declared, tuple) else (None, declared)
    least = more + (getattr(chosen, name) if name else 0)
    assert not others
    for number in (least, least - 1):
        files = Folder(tmp_path / str(number), memberships(1, **{option: number}))
        retrain = files.add("retrained", retrained)
        case = files.case(files.add("original", trained), retrain, retrain, files.add("control", retrained))
        if number == least:
            assert any(np.isfinite(row.value) for row in metric.rows(case, chosen, np.random.default_rng(0)))
        else:
            with pytest.raises(ValueError, match=refused):
                metric.rows(case, chosen, np.random.default_rng(0))


# ---------------------------------------------------------------- competition


def test_retraining_scores_like_its_null_and_what_is_far_from_it_scores_nothing(folder):
    def scored(files):
        case = folder.case(folder.original, files, folder.retrained, folder.control)
        return call.rows(competition_on_pairs, case, SETTINGS)

    rows = scored(folder.retrained)
    assert holds(only_row(rows, "forgetting_quality_over_null"), 1.0)
    f, score = only_row(rows, "forgetting_quality"), only_row(rows, "score")
    # All populations are right on Φ(3) of what they keep, and on half of what they never saw.
    assert score.value == pytest.approx(f.value, rel=0.15)
    pairs = [only_row(rows, "forgetting_quality", f"pair={b}").value for b in range(PAIRS)]
    assert np.mean(pairs) == pytest.approx(f.value)
    rows = scored(folder.add("far", lambda member: np.where(member.forget, 50.0, UNSEEN)))
    for name in ("forgetting_quality", "forgetting_quality_over_null", "score"):
        assert only_row(rows, name).value == 0
    assert only_row(rows, "forgetting_quality_null").value > 0.2


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
            splits.append(competition_on_pairs.Split(block, h, null, (0.9, 0.9), (0.8, 0.8)))
    return splits


@pytest.mark.parametrize(("shift", "split_sd"), [(0.0, 0.0), (1.0, 0.5)], ids=["perfect", "splits differ"])
def test_intervals_over_pairs_cover(shift, split_sd):
    rng = np.random.default_rng(3)
    estimates = [competition_on_pairs.estimates(parts_of(rng, shift=shift, split_sd=split_sd)) for _ in range(40)]
    read = [estimate["forgetting_quality_over_null"] for estimate in estimates]
    truth = 1.0 if shift == 0 else np.mean([estimate.value for estimate in read])
    assert np.mean([estimate.value for estimate in read]) == pytest.approx(truth, abs=0.05)
    assert np.mean([estimate.low <= truth <= estimate.high for estimate in read]) >= 0.85


def test_accuracies_count_as_the_ratio_of_their_means():
    """F = 1/4, RA = (.6 + .8)/(.8 + 1.2)… as in the document: averages first, then the ratio."""
    h, null = np.array([1.0, 0.0]), np.array([1.0, 1.0])
    parts = [
        competition_on_pairs.Split(0, h, null, (0.6, 0.8), (0.5, 1.0)),
        competition_on_pairs.Split(1, 0 * h, null, (0.8, 1.0), (0.25, 1.0)),
    ]
    read = competition_on_pairs.estimates(parts)
    assert read["forgetting_quality"].value == 0.25
    assert read["forgetting_quality_over_null"].value == 0.25
    assert read["score"].value == pytest.approx(0.25 * (1.4 / 1.8) * (0.75 / 2))
    assert "too few models for an interval over models" in read["score"].note


# ---------------------------------------------------------------- accuracy


def test_a_gap_is_that_of_its_own_pair(folder):
    """Retrained models guess on forgotten samples, right half of the time; models of pair b know all if b is odd."""
    odd = folder.add("odd", lambda m: np.where(m.retain | (m.forget & (m.block % 2 == 1)[:, None]), 40.0, UNSEEN))
    rows = call.rows(accuracy_on_pairs, folder.case(folder.original, odd, folder.retrained), SETTINGS)
    for block in range(PAIRS):
        row = only_row(rows, "accuracy_gap", f"pair={block};role=forget")
        assert holds(row, -0.5 if block % 2 else 0.0)
        assert row.value == pytest.approx(-0.5 if block % 2 else 0.0, abs=0.12)


# ---------------------------------------------------------------- efficacy


def test_a_split_counts_once_by_the_median_of_its_models():
    """ι of a model is its gradients' mean squared norm: splits of pair b have 1/(b + 1), 1/(b + 1) and something."""
    member = Membership.concatenate(memberships())
    iota, first = 1.0 / (member.block + 1), np.flatnonzero(~member.shadow)[::MODELS]
    iota[first] = np.where(member.block[first] > 0, 1e-3, 1e3)
    case = SimpleNamespace(membership=member, gradients=(np.tile(iota[:, None], (1, 9)), iota / 4))
    rows = call.rows(efficacy_on_pairs, case, SETTINGS)
    for block in range(PAIRS):
        row = only_row(rows, "efficacy_median", f"pair={block}")
        assert (row.value, row.n) == (pytest.approx(block + 1), 2)
        assert only_row(rows, "efficacy_upper_bound_median", f"pair={block}").value == pytest.approx(4 * (block + 1))
    row = only_row(rows, "efficacy_median")
    assert (row.value, row.ci_low, row.ci_high) == pytest.approx((2.5, 1, 4))
    assert row.n == 2 * PAIRS
    assert {row.model for row in rows} == {None}
