"""Which forgotten samples are still recognised, by models of which all is known."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import records

from ruli_cases import Folder, retrained, swapped_pairs, trained


def members(forget, block=None) -> Membership:
    """Models that forgot some samples and never saw the others."""
    nothing = np.zeros(len(forget), np.int64)
    block = np.arange(len(forget)) if block is None else block
    return Membership(forget, forget, ~forget, np.arange(len(forget)), nothing, block, nothing > 0)


def case_of(samples: int, subject=None):
    return SimpleNamespace(data=SimpleNamespace(index=np.arange(samples), y=np.zeros(samples, int), subject=subject))


def test_models_that_forgot_nothing_are_recognised_and_retrained_ones_are_not(tmp_path):
    folder = Folder(tmp_path, swapped_pairs())
    original, anew = folder.add("original", trained), folder.add("retrained", retrained)
    whole, *pairs = records.rows(folder.case(original, original), records.Options(), None)
    assert whole.value > 0.5
    assert [row.pair for row in pairs] == [0, 1]
    assert whole.n == sum(row.n for row in pairs)
    assert whole.note.startswith(f"{round(whole.value * whole.n)} of {whole.n}; in such lists at most 10% are false")
    assert "samples" in whole.note
    assert not any("false" in row.note for row in pairs), "a part of a list has no rate of its own"
    none, *pairs = records.rows(folder.case(original, anew), records.Options(), None)
    assert none.value < 0.05
    assert sum(row.value > 0 for row in pairs) <= 1


def test_attacks_that_read_every_sample_of_both_sides_may_speak_and_the_control_may_not():
    forget, heldout = np.array([[True, False, False]]), np.array([[False, True, False]])
    whole, partly = np.array([[0.1, 0.2, np.nan]]), np.array([[np.nan, 0.2, 0.3]])
    named = {("confidence", ""): whole, ("random", ""): whole, ("shadow", "seen"): whole, ("kde", ""): partly}
    case = SimpleNamespace(scores={key: (score, None) for key, score in named.items()})
    member = SimpleNamespace(forget=forget, heldout=heldout)
    assert list(records.usable(case, whole, member)) == ["phi", "confidence", "shadow/seen"]


@pytest.mark.parametrize(("pairs", "attack"), [(1, "phi"), (2, "confidence turned round")])
def test_the_attack_and_its_direction_are_chosen_in_other_splits(pairs, attack):
    """Where there are none, φ speaks as it is, although confidence tells both sides apart as well."""
    forget, rng = np.tile(np.arange(60) < 10, (pairs, 1)), np.random.default_rng(9)
    phi, confidence = (rng.random((pairs, 60)) + strength * forget for strength in (2 * (pairs == 1), -2))
    scores = {"phi": phi, "confidence": confidence}
    lines, _ = records.against_heldout(case_of(60), members(forget), scores, rate=0.1)
    assert [line["attack"] for line in lines] == [attack] * 10 * pairs
    assert all(line["recognised"] for line in lines)


def test_a_list_of_many_splits_is_false_as_seldom_as_that_of_one():
    """Retrained models whose splits toss coins of their own: a list for each would be false in two audits of three."""
    audits, splits, samples, listed = 400, 8, 210, 0
    case = case_of(samples, np.arange(samples) // 2)
    for seed in range(audits):
        rng = np.random.default_rng(seed)
        forget = np.stack([rng.permutation(samples) < 10 for _ in range(splits)])
        scores = {"phi": rng.standard_normal((splits, samples))}
        lines, _ = records.against_heldout(case, members(forget), scores, 0.1)
        listed += any(line["recognised"] or line["person_recognised"] for line in lines)
    assert listed <= 0.2 * audits  # of two lists, of samples and of people, each at most a tenth


@pytest.mark.parametrize(("marked", "end"), [(50, "48, 49"), (51, "48, 49 …")])
def test_fifty_recognised_samples_are_named(marked, end):
    line = {"pair": 0, "person_recognised": True}
    lines = [{**line, "sample": sample, "recognised": sample < marked} for sample in reversed(range(80))]
    (row,) = records.summary(lines, 0.2)
    false = "in such lists at most 20% are false, on average over audits"
    assert row.note.startswith(f"{marked} of 80; {false}: samples 0, 1, 2")
    assert row.note.endswith(end)
    assert (row.value, row.n) == (marked / 80, 80)
    (nobody,) = records.summary([{**line, "sample": 3, "recognised": False}], 0.2)
    assert nobody.note == f"0 of 1; {false}"
    assert records.summary([], 0.2) == []


def test_people_are_counted_once():
    lines = [
        {"pair": 0, "split": 0, "sample": n, "recognised": n < 3, "person": n // 2, "person_recognised": n < 4}
        for n in range(6)
    ]
    whole, people = records.summary(lines, 0.1)
    assert (whole.value, people.metric) == (0.5, "people_recognised")
    assert (people.value, people.n, people.note) == (2 / 3, 3, "2 of 3")


# ---------------------------------------------------------------- against retrained models


def test_models_that_forgot_a_part_of_a_set_did_not_forget_it():
    forget = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], bool)
    phi, others = np.array([[3.0, 5.0, 0.0, 0.0], [7.0, 0.0, 0.0, 0.0]]), np.random.default_rng(0).normal(size=(6, 4))
    how = {"retrained": others, "training": np.zeros((6, 4), bool), "rate": 0.1}
    lines = records.against_retrained(case_of(4), members(forget), phi, **how)
    assert {(line["sample"], line["models"], line["score"]) for line in lines} == {(0, 1, 3), (1, 1, 5), (0, 1, 7)}


@pytest.mark.parametrize(
    ("others", "halves"), [([0, 1, 3, 4], {0, 1}), ([0, 3], set()), ([0, 1, 3], {0}), ([0, 3, 4], {1})]
)
def test_only_two_retrained_models_that_never_saw_the_forget_set_speak_for_it(others, halves):
    """Two splits forget a half of the samples each; what one forgets the other's retrained models were trained on."""
    rng = np.random.default_rng(4)
    forget = np.repeat(np.stack([np.arange(200) < 100, np.arange(200) >= 100]), 3, axis=0)
    noise = rng.standard_normal(200) + rng.standard_normal((2, 6, 200))
    phi, retrained_phi = noise[0] + 6, noise[1] + 6 * ~forget
    how = {"retrained": retrained_phi[others], "training": ~forget[others], "rate": 0.1}
    lines = records.against_retrained(case_of(200), members(forget, np.zeros(6, int)), phi, **how)
    assert {line["sample"] // 100 for line in lines} == halves
    assert not lines or np.mean([line["recognised"] for line in lines]) > 0.9
    assert {line["yardstick"] for line in lines} <= {"retrain"}
