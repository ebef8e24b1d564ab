"""What a seed draws is a part of the contract: other draws would rename nothing and change every result."""

import hashlib
from dataclasses import fields

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Membership, Selection
from unlearning_audit.plugins import registry
from unlearning_audit.protocols import lira_selection

from protocol_cases import block_of, samples

#: Protocol, population and options → the first digits of the SHA-256 of three blocks.
DRAWN = {
    ("competition", "models", ("originals", "one"), ("models_per_block", 3)): "6a1e6212e8bbf81b",
    ("competition", "models", ("originals", "many"), ("models_per_block", 3)): "ff1ea85e68799a60",
    ("efficacy", "seeds", ("fraction", 0.3), ("models_per_block", 3)): "e5dbdca1f8101da6",
    ("interclass_confusion", "confusions", ("classes", (3, 8)), ("share", 0.3)): "8e1d97f696b8b126",
    ("interclass_confusion", "confusions", ("classes", (1, 0)), ("models", 2)): "8389ee09cb38d2a0",
    ("lira_selection", "pairs"): "784d5c27345829be",
    ("one_run", "models", ("canaries", 9), ("requests", 3)): "4c581124430af1a2",
    ("one_run", "models", ("canaries", 9), ("requests", 1)): "a827d6a959e3fc0e",
    ("one_run", "models", ("canaries", 10), ("memorised", "most"), ("select_from", "x")): "e51a527e5c85810a",
    ("random_splits", "pairs", ("models_per_split", 2), ("shadow_models_per_split", 2)): "71413ebefa4eed3d",
    ("ruli", "targets", ("target_set", "random"), ("target_size", 15)): "e001afa33702cabe",
    ("ruli", "shadows", ("target_set", "vulnerable_and_protected"), ("target_size", 15)): "f34c13fc4419698c",
    ("ruli", "shadows", ("target_set", "canary"), ("target_size", 12), ("attack_size", 60)): "29d37c5d386ea2cc",
    ("ruli", "targets", ("target_set", "class"), ("target_class", 4), ("target_size", 12)): "7b3840af8372e4bf",
    ("swap", "pairs", ("alpha", 0.25), ("models_per_split", 2), ("requests", 2)): "d0e40cb87e92150e",
    ("swap", "pairs", ("alpha", 0.3), ("requests", 1), ("classes", (2, 7))): "66716d9441237bda",
    ("swap", "pairs", ("alpha", 0.1), ("memorised", "least"), ("select_from", "x")): "4f62e9cb05249ce8",
}  # fmt: skip


def digest(members: list[Membership]) -> str:
    """Of everything that a file of these memberships would hold."""
    checksum = hashlib.sha256()
    for name, value in ((field.name, getattr(member, field.name)) for member in members for field in fields(member)):
        if value is not None:
            checksum.update(f"{name} {value.dtype} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    return checksum.hexdigest()[:16]


@pytest.mark.parametrize("case", DRAWN, ids=lambda case: "-".join(str(part) for part in case))
def test_draws_are_the_same_in_every_version(case):
    name, population, *options = case
    data = samples(n=201)
    number = np.arange(len(data.y))
    # every third sample is vulnerable, every third protected, and the later ones are memorised more
    selection = Selection(number % 3 == 0, number % 3 == 1, number / len(number))
    choice = selection if hasattr(registry.load("protocols", name), "selects_from") else None
    members = [block_of(name, block, data, 11, population, choice, **dict(options)) for block in (0, 1, 5)]
    assert digest(members) == DRAWN[case]


# ---------------------------------------------------------------- at the edge of what fits


def test_two_samples_are_two_halves_and_one_is_none():
    data = samples(n=2)
    assert lira_selection.draw(0, "pairs", data, lira_selection.Options(), 0).train.sum(1).tolist() == [1, 1]
    with pytest.raises(ValueError, match="random halves need two training samples, the data have 1; use more data"):
        lira_selection.draw(0, "pairs", samples(n=1), lira_selection.Options(), 0)
