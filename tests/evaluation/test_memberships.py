"""Which models forgot what: sequences of requests, pairs of canaries, copies, and batches of models."""

from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import ArtifactError, Membership
from unlearning_audit.store.files import write_arrays

#: Two models that forgot one half of samples 0 to 3 each, in two requests; the last sample is in no request.
REQUEST = np.array([[1, 1, 2, 2, 0]] * 2)
FORGET = np.array([[1, 0, 1, 0, 0], [0, 1, 0, 1, 0]], bool)
HELDOUT = np.array([[0, 1, 0, 1, 0], [1, 0, 1, 0, 0]], bool)
WHOLE = Membership(
    train=~HELDOUT, forget=FORGET, heldout=HELDOUT, seed=np.array([7, 8]), split=np.array([0, 1]),
    block=np.zeros(2, int), shadow=np.zeros(2, bool), pair=np.array([0, 0, 1, 1, -1]), request=REQUEST,
)  # fmt: skip


def test_after_the_first_request_the_second_is_still_to_come():
    first = WHOLE.until(1)
    assert first.request_count == 1
    assert first.forget.tolist() == [[True] + [False] * 4, [False, True] + [False] * 3]
    assert first.heldout.tolist() == [[False, True] + [False] * 3, [True] + [False] * 4]
    assert first.pair.tolist() == [0, 0, -1, -1, -1]
    assert first.queries.tolist() == [[True] * 4 + [False]] * 2
    assert replace(WHOLE, pair=None).until(1).pair is None


def test_the_first_request_is_unlearned_as_a_single_one_and_later_ones_by_other_seeds():
    assert WHOLE.until(1).unlearning_seeds() == replace(WHOLE, request=None).unlearning_seeds() == [7, 8]
    assert not set(WHOLE.unlearning_seeds()) & {7, 8}


def test_sequences_and_canaries_are_read_as_they_were_written(tmp_path):
    WHOLE.write(tmp_path / "m.npz")
    member = Membership.read(tmp_path / "m.npz", samples=5)
    np.testing.assert_array_equal(member.request, REQUEST, strict=True)
    np.testing.assert_array_equal(member.pair, WHOLE.pair, strict=True)
    assert member.memorised is None
    memorised = np.linspace(-1, 3, 5)
    replace(WHOLE, memorised=memorised).write(tmp_path / "n.npz")
    np.testing.assert_array_equal(Membership.read(tmp_path / "n.npz")[:1].memorised, memorised, strict=True)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("request", np.where(REQUEST == 2, 0, REQUEST), "'forget' has 2 entries that are part of no request"),
        ("request", np.where(FORGET, -1, REQUEST), "'forget' has 4 entries that are part of no request"),
        ("request", REQUEST[:1], r"'request' has shape \(1, 5\), expected \(2, 5\)"),
        ("pair", np.array([0, 0, 0, 1, -1]), "'pair' gives the number 0 to 3 samples"),
        ("pair", np.array([0, 0, 1, 1]), r"'pair' has shape \(4,\), expected \(5\)"),
        ("memorised", np.zeros(4), r"'memorised' has shape \(4,\), expected \(5\)"),
    ],
)
def test_a_broken_sequence_or_pair_is_told(tmp_path, field, value, problem):
    arrays = {name: array for name, array in vars(WHOLE).items() if array is not None}
    write_arrays(tmp_path / "m.npz", **{**arrays, field: value})
    with pytest.raises(ArtifactError, match=f"m.npz: field {problem}"):
        Membership.read(tmp_path / "m.npz")


def test_copies_have_the_memberships_of_their_original(tmp_path):
    """Models 0 and 2 are copies of one original, model 1 is another: in the file the originals are in no order."""
    member = WHOLE[np.array([1, 0, 1])]
    copies = replace(member, pair=None, request=None, replicate=np.array([0, 0, 1]))
    copies.write(tmp_path / "m.npz")
    first, of = Membership.read(tmp_path / "m.npz").originals()
    assert (first.tolist(), of.tolist()) == ([1, 0], [1, 0, 1])
    with pytest.raises(ArtifactError, match="'replicate' calls models copies that were trained on different samples"):
        replace(copies, seed=np.array([8, 8, 7])).write(tmp_path / "m.npz")
