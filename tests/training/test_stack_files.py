"""Stacks as files: what survives, and what is refused by name."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from unlearning_audit.store.files import ArtifactError

from stack_cases import SEEDS, conv, fresh, same, trained


@pytest.fixture
def stored(tmp_path):
    stack = trained(conv, SEEDS[:3])
    stack.write(tmp_path / "node" / "models.safetensors")
    return stack, tmp_path / "node" / "models.safetensors"


def test_a_stack_survives_its_file(stored, tmp_path):
    stack, path = stored
    loaded = fresh(conv, SEEDS[:3])
    loaded.load(path)
    assert same(loaded, stack)
    assert loaded.updates.keys() == stack.updates.keys()
    assert all(torch.equal(v, stack.updates[k]) for k, v in loaded.updates.items())
    loaded.write(tmp_path / "again" / "node" / "models.safetensors")
    assert (tmp_path / "again" / "node" / "models.safetensors").read_bytes() == path.read_bytes()
    stack.updates = None
    stack.write(path)
    loaded.load(path)
    assert loaded.updates is None


def changed(**tensors):
    """A harm: rewrite the file with some tensors replaced, or removed if None."""

    def harm(path):
        content = {k: v for k, v in {**load_file(path), **tensors}.items() if v is not None}
        save_file(content, path)

    return harm


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (changed(**{"0.weight": None}), r"tensor '0\.weight' of shape \(3, 5, 2, 3, 3\) is missing \(models first\)"),
        (changed(**{"update/5.bias": None}), r"tensor 'update/5\.bias' of shape \(3, 4\) is missing"),
        (changed(**{"1.running_var": torch.ones(3, 7)}), r"'1\.running_var' has shape \(3, 7\), expected \(3, 5\)"),
        (changed(**{"5.weight": torch.ones(2, 4, 5)}), r"'5\.weight' has shape \(2, 4, 5\), expected \(3, 4, 5\)"),
        (changed(**{"9.weight": torch.ones(3)}), r"tensor '9\.weight' of shape \(3,\) belongs to another model"),
        (lambda path: path.write_bytes(path.read_bytes()[:-99]), "this file is damaged"),
        (lambda path: path.unlink(), "this file does not exist"),
    ],
)
def test_what_is_wrong_with_a_file_is_named_and_nothing_is_taken(stored, harm, message):
    _, path = stored
    harm(path)
    loaded = fresh(conv, SEEDS[:3])
    before = loaded.copy()
    with pytest.raises(ArtifactError, match=message) as error:
        loaded.load(path)
    assert str(path) in str(error.value)
    assert same(loaded, before)
