"""Banks as files: what survives, and what is refused by name."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from unlearning_audit.store.files import ArtifactError

from bank_cases import SEEDS, conv, fresh, same, trained


@pytest.fixture
def stored(tmp_path):
    bank = trained(conv, SEEDS[:3])
    bank.write(tmp_path / "node" / "models.safetensors")
    return bank, tmp_path / "node" / "models.safetensors"


def change(path, **tensors):
    """Rewrite the file with some tensors replaced, or removed if None."""
    content = {k: v for k, v in {**load_file(path), **tensors}.items() if v is not None}
    save_file(content, path, metadata={"node": path.parent.name})


def test_a_bank_survives_its_file(stored, tmp_path):
    bank, path = stored
    loaded = fresh(conv, SEEDS[:3])
    loaded.load(path)
    assert same(loaded, bank)
    assert loaded.updates.keys() == bank.updates.keys()
    assert all(torch.equal(v, bank.updates[k]) for k, v in loaded.updates.items())
    loaded.write(tmp_path / "again" / "node" / "models.safetensors")
    assert (tmp_path / "again" / "node" / "models.safetensors").read_bytes() == path.read_bytes()


def test_no_record_no_updates(stored):
    bank, path = stored
    bank.updates = None
    bank.write(path)
    loaded = trained(conv, SEEDS[:3])
    loaded.load(path)
    assert loaded.updates is None


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"0.weight": None}, r"tensor '0\.weight' is missing"),
        ({"update/5.bias": None}, r"tensor 'update/5\.bias' is missing"),
        ({"1.running_var": torch.ones(3, 7)}, r"tensor '1\.running_var' has shape \(3, 7\), expected \(3, 5\)"),
        ({"5.weight": torch.ones(2, 4, 5)}, r"tensor '5\.weight' has shape \(2, 4, 5\), expected \(3, 4, 5\)"),
        ({"9.weight": torch.ones(3)}, r"tensor '9\.weight' belongs to another model"),
    ],
)
def test_wrong_tensors_are_named_and_nothing_is_taken(stored, tensors, message):
    _, path = stored
    change(path, **tensors)
    loaded = fresh(conv, SEEDS[:3])
    before = loaded.copy()
    with pytest.raises(ArtifactError, match=message) as error:
        loaded.load(path)
    assert str(path) in str(error.value)
    assert same(loaded, before)


def test_a_damaged_file_is_named(stored):
    _, path = stored
    content = path.read_bytes()
    for broken in (content[: len(content) // 2], b"", b"\xff" * 200):
        path.write_bytes(broken)
        with pytest.raises(ArtifactError, match=r"models\.safetensors: this file is damaged"):
            fresh(conv, SEEDS[:3]).load(path)
    path.unlink()
    with pytest.raises(ArtifactError, match=r"models\.safetensors: this file does not exist"):
        fresh(conv, SEEDS[:3]).load(path)


def test_a_file_of_another_node_is_refused(stored, tmp_path):
    _, path = stored
    (tmp_path / "other").mkdir()
    path.rename(tmp_path / "other" / "models.safetensors")
    with pytest.raises(ArtifactError, match="made for 'node', not for 'other'"):
        fresh(conv, SEEDS[:3]).load(tmp_path / "other" / "models.safetensors")
