"""The folders of a user's logits: who plays which part, which files are lent, and what is missing."""

import os

import pytest
from unlearning_audit.protocols import external

from external_cases import GOOD, save

EVERY = ("target", "shadow", "original", "retrain", "retrain_control", "shadow_original")


def options(path):
    return external.Options(path=str(path))


def kinds(path, method, names=("mine",)):
    """Which folder's models play each part."""
    populations = external.populations(options(path), method, external.methods(options(path), list(names)))
    return {part: folder.kind for part, folder in populations.items()}


@pytest.fixture
def whole(tmp_path):
    """A folder with every population, each with files of its own."""
    for name in EVERY:
        save(tmp_path / name, **GOOD)
    return tmp_path


def test_nothing_is_drawn(whole):
    assert external.blocks(options(whole)) == {}
    with pytest.raises(ValueError, match="protocol external draws no memberships; these lie beside the logits"):
        external.draw(0, "target", None, options(whole), 0)


def test_every_population_plays_its_part(whole):
    shared = {name: name for name in ("original", "retrain", "retrain_control", "shadow_original")}
    assert kinds(whole, "mine") == {"target": "target", "shadow": "shadow", **shared}
    assert kinds(whole, "none") == {**shared, "target": "original", "shadow": "shadow_original"}
    assert kinds(whole, "retrain") == {
        "target": "retrain", "retrain": "retrain_control", "shadow_original": "shadow_original"
    }  # fmt: skip
    assert kinds(whole, "retrain_control") == {
        "target": "retrain_control", "retrain": "retrain", "shadow_original": "shadow_original"
    }  # fmt: skip
    for name in ("shadow", "shadow_original", "retrain_control"):
        (whole / name / "logits.npy").unlink()
        if name == "shadow":
            with pytest.raises(ValueError, match=r"shadow/logits\.npy: this file is missing"):
                kinds(whole, "mine")
            (whole / name).rename(whole.parent / "gone")
    assert kinds(whole, "mine") == {"target": "target", "original": "original", "retrain": "retrain"}
    assert kinds(whole, "none") == {"target": "original", "original": "original", "retrain": "retrain"}
    assert kinds(whole, "retrain") == {"target": "retrain"}


@pytest.mark.parametrize("name", ["train", "heldout"])
def test_one_of_what_was_seen_and_what_was_not_must_be_there(tmp_path, name):
    save(tmp_path / "target", **{name: GOOD["train"]}, **{k: v for k, v in GOOD.items() if k != "train"})
    assert name in external.populations(options(tmp_path), "mine", ["mine"])["target"].files
    (tmp_path / "target" / f"{name}.npy").unlink()
    with pytest.raises(ValueError, match=r"/target/train\.npy: this file is missing, and so is heldout\.npy; one of"):
        external.populations(options(tmp_path), "mine", ["mine"])


@pytest.mark.parametrize("name", ["logits", "heldout", "weight"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "lost link", "device"])
def test_what_is_no_file_is_named_and_not_passed_over(whole, name, kind):
    """Without its weights, for one, a study would be another."""
    path = whole / "target" / f"{name}.npy"
    path.unlink(missing_ok=True)
    {
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "lost link": lambda: path.symlink_to("nowhere.npy"),
        "device": lambda: path.symlink_to("/dev/zero"),
    }[kind]()
    with pytest.raises(ValueError, match=f"/target/{name}.npy: this is a folder, a pipe, a device or a broken"):
        kinds(whole, "mine")
