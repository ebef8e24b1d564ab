"""Which forgotten samples are still recognised, by models of which all is known."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import records
from unlearning_audit.protocols import swap

from ruli_cases import Folder, data, retrained, trained


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    options = swap.Options(alpha=0.25, pairs=2, models_per_split=3)
    members = [swap.draw(block, "pairs", data(), options, 1) for block in range(2)]
    files = Folder(tmp_path_factory.mktemp("records"), members)
    files.original, files.retrained = files.add("original", trained), files.add("retrained", retrained)
    return files


def listed(folder, unlearned):
    case = folder.case(folder.original, unlearned)
    return records.rows(case, records.Options(), np.random.default_rng(0))


def test_models_that_forgot_nothing_are_recognised_and_retrained_ones_are_not(folder):
    whole, *pairs = listed(folder, folder.original)
    assert whole.value > 0.5
    assert [row.pair for row in pairs] == [0, 1]
    assert whole.n == sum(row.n for row in pairs)
    none, *_ = listed(folder, folder.retrained)
    assert none.value < 0.05
    assert "samples" in whole.note
    assert f"{round(whole.value * whole.n)} of {whole.n}" in whole.note


def test_retrained_models_list_nothing_in_nine_of_ten(folder):
    """Each split of each pair is a list of its own."""
    rows = listed(folder, folder.retrained)
    assert sum(row.value > 0 for row in rows[1:]) <= 1


def test_attacks_that_read_every_sample_of_both_sides_may_speak_and_the_control_may_not():
    forget, heldout = np.array([[True, False, False]]), np.array([[False, True, False]])
    member = Membership(
        train=forget, forget=forget, heldout=heldout, seed=np.zeros(1, int), split=np.zeros(1, int),
        block=np.zeros(1, int), shadow=np.zeros(1, bool),
    )  # fmt: skip
    whole, partly = np.array([[0.1, 0.2, np.nan]]), np.array([[np.nan, 0.2, 0.3]])
    named = {("confidence", ""): whole, ("random", ""): whole, ("shadow", "seen"): whole, ("kde", ""): partly}
    case = SimpleNamespace(scores_file="scores.npz", scores={key: (score, None) for key, score in named.items()})
    assert list(records.usable(case, whole, member)) == ["phi", "confidence", "shadow/seen"]
    case.scores_file = None
    assert list(records.usable(case, whole, member)) == ["phi"]


@pytest.mark.parametrize(("pairs", "attack"), [(1, "phi"), (2, "confidence turned round")])
def test_the_attack_and_its_direction_are_chosen_in_other_splits(pairs, attack):
    """Where there are none, φ speaks as it is, although confidence tells both sides apart as well."""
    forget, nobody = np.tile(np.arange(60) < 10, (pairs, 1)), np.zeros(pairs, int)
    member = Membership(forget, forget, ~forget, np.arange(pairs), nobody, np.arange(pairs), nobody > 0)
    rng = np.random.default_rng(9)
    phi, confidence = (rng.random((pairs, 60)) + strength * forget for strength in (2 * (pairs == 1), -2))
    data = SimpleNamespace(index=np.arange(60), y=np.zeros(60, int), subject=None)
    lines, _ = records.against_heldout(
        SimpleNamespace(data=data), member, {"phi": phi, "confidence": confidence}, rate=0.1
    )
    assert [line["attack"] for line in lines] == [attack] * 10 * pairs
    assert all(line["recognised"] for line in lines)


def test_a_list_of_many_splits_is_false_as_seldom_as_that_of_one():
    """Retrained models whose splits toss coins of their own: a list for each would be false in two audits of three."""
    audits, splits, forgotten, samples = 400, 8, 10, 210
    listed = 0
    for seed in range(audits):
        rng = np.random.default_rng(seed)
        forget = np.zeros((splits, samples), bool)
        for row in forget:
            row[rng.permutation(samples)[:forgotten]] = True
        member = Membership(
            forget, forget, ~forget, np.arange(splits), np.zeros(splits, int), np.arange(splits),
            np.zeros(splits, bool),
        )  # fmt: skip
        data = SimpleNamespace(index=np.arange(samples), y=np.zeros(samples, int), subject=np.arange(samples) // 2)
        scores = {"phi": rng.standard_normal((splits, samples))}
        lines, _ = records.against_heldout(SimpleNamespace(data=data), member, scores, 0.1)
        listed += any(line["recognised"] or line["person_recognised"] for line in lines)
    assert listed <= 0.2 * audits  # of two lists, of samples and of people, each at most a tenth
    whole, *_ = records.summary(lines, 0.1)
    assert "at most 10% are false, on average over audits" in whole.note
    pairs = [row for row in records.summary(lines, 0.1) if row.pair is not None]
    assert pairs
    assert not any("false" in row.note for row in pairs)


@pytest.mark.parametrize(("marked", "end"), [(50, "48, 49"), (51, "48, 49 …")])
def test_fifty_recognised_samples_are_named(marked, end):
    line = {"pair": 0, "person_recognised": True}
    lines = [{**line, "sample": sample, "recognised": sample < marked} for sample in reversed(range(80))]
    (row,) = records.summary(lines, 0.2)
    assert row.note.startswith(f"{marked} of 80; in such lists at most 20% are false, on average over audits: samples ")
    assert row.note.endswith(end)
    assert row.note.partition("samples ")[2].startswith("0, 1, 2")
    assert (row.value, row.n) == (marked / 80, 80)
    (nobody,) = records.summary([{**line, "sample": 3, "recognised": False}], 0.2)
    assert nobody.note == "0 of 1; in such lists at most 20% are false, on average over audits"


def test_models_that_forgot_a_part_of_a_set_did_not_forget_it():
    forget = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], bool)
    nothing = np.zeros(2, np.int64)
    member = Membership(forget, forget, ~forget, np.arange(2), nothing, np.arange(2), nothing > 0)
    case = SimpleNamespace(data=SimpleNamespace(index=np.arange(4), y=np.zeros(4, int), subject=None))
    phi, others = np.array([[3.0, 5.0, 0.0, 0.0], [7.0, 0.0, 0.0, 0.0]]), np.random.default_rng(0).normal(size=(6, 4))
    lines = records.against_retrained(case, member, phi, retrained=others, training=np.zeros((6, 4), bool), rate=0.1)
    assert {(line["sample"], line["models"], line["score"]) for line in lines} == {(0, 1, 3), (1, 1, 5), (0, 1, 7)}
