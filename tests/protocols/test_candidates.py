"""Forget sets of some classes, or of what models memorise: chance alone divides them into forgotten and held out."""

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Selection
from unlearning_audit.plugins import registry

from protocol_cases import block_of, options_of, samples

NAMES = ["swap", "random_splits", "one_run"]


def memorised(count, seed=3) -> Selection:
    ratio = np.random.default_rng(seed).normal(size=count)
    return Selection(ratio > 1, ratio < -1, ratio)


def given_up(member) -> np.ndarray:
    """Which samples any model forgets or never saw though it could have: bool [models, samples]."""
    return member.forget | member.heldout


@pytest.mark.parametrize("name", NAMES)
def test_only_samples_of_the_classes_are_forgotten_or_held_out(name):
    data = samples(n=800)
    size = {"canaries": 25} if name == "one_run" else {"alpha": 0.05}
    member = block_of(name, data=data, classes=[3, 7], **size)
    assert set(data.y[given_up(member).any(0)]) == {3, 7}
    assert set(data.y[member.retain.any(0)]) == set(range(10))
    assert set(member.forget.sum(1)) == set(member.heldout.sum(1)) == {25 if name == "one_run" else 19}


@pytest.mark.parametrize("name", ["swap", "random_splits"])
def test_a_large_share_lets_models_forget_a_whole_class(name):
    data = samples(n=823)
    member = block_of(name, data=data, classes=[3], alpha=0.5)
    assert not (data.y[member.retain.any(0)] == 3).any()
    of_class = int(((data.y == 3) & (data.part == 0)).sum())
    assert set(member.forget.sum(1)) == set(member.heldout.sum(1)) == {of_class // 2 // 2}
    assert len(set(member.retain.sum(1))) == 1, "models of both halves keep equally many"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("end", ["most", "least"])
def test_the_most_or_the_least_memorised_are_forgotten(name, end):
    data = samples(n=400)
    selection = memorised(len(data.y))
    size = {"canaries": 20} if name == "one_run" else {"alpha": 0.1}
    member = block_of(name, data=data, selection=selection, memorised=end, select_from="halves", **size)
    for side in (False, True) if name != "one_run" else (False,):
        part = member[member.shadow == side]
        targets = given_up(part).any(0)
        rest = (part.train | part.heldout).any(0) & ~targets
        low, high = (targets, rest) if end == "least" else (rest, targets)
        assert selection.ratio[low].max() < selection.ratio[high].min()


@pytest.mark.parametrize("name", NAMES)
def test_chance_divides_the_chosen_samples(name):
    """Each is forgotten by a half of the models that forget or hold it out: exchangeable, as the null needs."""
    data, blocks = samples(n=400), 300
    selection = memorised(len(data.y))
    size = {"canaries": 10} if name == "one_run" else {"alpha": 0.08, "shadow_models_per_split": 0}
    draws = [
        block_of(name, block, data, selection=selection, memorised="most", select_from="halves", **size)[[0]]
        for block in range(blocks)
    ]
    forgot, targets = (sum(rows(m)[0].astype(int) for m in draws) for rows in (lambda m: m.forget, given_up))
    assert (targets[targets > 0] == blocks).all()
    assert abs(forgot[targets > 0] / blocks - 0.5).max() < 4.5 * 0.5 / np.sqrt(blocks)


def test_only_memorisation_needs_a_selection():
    module = registry.load("protocols", "swap")
    for fields, scenario in (
        ({}, None), ({"classes": [3]}, None), ({"memorised": "most"}, ""),
        ({"memorised": "least", "select_from": "halves"}, "halves"),
    ):  # fmt: skip
        assert module.selects_from(options_of("swap", **fields)) == scenario
