"""The folders of a user's own models: who plays which part, which files are lent, what is missing, and what nothing
would read."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit.protocols import external
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError

from external_cases import GOOD, config, save

SHARED = {name: name for name in ("original", "retrain", "retrain_control", "shadow_original")}


def parts(path, method="mine", names=("mine",)):
    options = external.Options(path=str(path))
    return external.populations(options, method, external.methods(options, list(names)))


def kinds(path, method):
    """Which folder's models play each part."""
    return {part: folder.kind for part, folder in parts(path, method).items()}


def test_every_population_plays_its_part(tmp_path):
    root = tmp_path / "logits"
    for name in ("target", "shadow", *SHARED):
        save(root / name, **GOOD)
    before = {"shadow_original": "shadow_original"}
    assert {method: kinds(root, method) for method in ("mine", "none", "retrain", "retrain_control")} == {
        "mine": {"target": "target", "shadow": "shadow", **SHARED},
        "none": {**SHARED, "target": "original", "shadow": "shadow_original"},
        "retrain": {"target": "retrain", "retrain": "retrain_control", **before},
        "retrain_control": {"target": "retrain_control", "retrain": "retrain", **before},
    }
    for name in ("shadow", "shadow_original", "retrain_control"):
        shutil.rmtree(root / name)
    assert {method: kinds(root, method) for method in ("mine", "none", "retrain")} == {
        "mine": {"target": "target", "original": "original", "retrain": "retrain"},
        "none": {"target": "original", "original": "original", "retrain": "retrain"},
        "retrain": {"target": "retrain"},
    }


def test_one_method_may_lie_in_the_folder_itself_and_several_in_folders_of_their_own(tmp_path):
    save(tmp_path, labels=GOOD["labels"])
    save(tmp_path / "target", logits=GOOD["logits"], train=GOOD["train"], forget=GOOD["forget"])
    populations = parts(tmp_path)
    assert list(populations) == ["target"]
    assert populations["target"].files["labels"] == tmp_path / "labels.npy"
    for name in ("one", "two"):
        save(tmp_path / name / "target", logits=GOOD["logits"])
    save(tmp_path, train=GOOD["train"], forget=GOOD["forget"])
    save(tmp_path / "two", forget=GOOD["forget"])
    both = {name: parts(tmp_path, name, ("one", "two"))["target"].files for name in ("one", "two")}
    assert both["one"]["forget"] == tmp_path / "forget.npy"
    assert both["two"]["forget"] == tmp_path / "two/forget.npy"
    assert both["two"]["logits"] == tmp_path / "two/target/logits.npy"


def test_populations_lend_memberships_to_those_with_the_same_models(tmp_path):
    for name in ("target", "shadow"):
        save(tmp_path / name, **GOOD)
    for name in ("original", "retrain", "shadow_original"):
        save(tmp_path / name, logits=GOOD["logits"], labels=GOOD["labels"])
    lent = {name: folder.files["train"].parent.name for name, folder in parts(tmp_path).items()}
    assert lent == {"target": "target", "shadow": "shadow", "original": "target", "retrain": "target",
                    "shadow_original": "shadow"}  # fmt: skip


def test_models_are_in_the_order_of_their_names_and_numbers(tmp_path):
    names = ["a_3", "adam_2", "b_long_1", "control", "model_01", "model_1", "model_9", "model_10", "retain", "sgd_1"]
    for name in names[::-1]:
        (tmp_path / f"{name}.safetensors").touch()
    assert [path.stem for path in external.checkpoints(tmp_path)] == names


# ---------------------------------------------------------------- what is refused before anything runs


@pytest.fixture
def root(workdir):
    """A sound folder of one method, with models before unlearning and retrained ones."""
    save("logits/target", **GOOD)
    for kind in ("original", "retrain"):
        save(f"logits/{kind}", logits=GOOD["logits"] + 1, labels=GOOD["labels"])
    return Path("logits")


def refusal(*methods: str) -> str:
    """The sentence with which a study of the folder is refused."""
    with pytest.raises(StudyError, match=r"own\.yaml: scenarios\.audit\.protocol\.path") as error:
        reading.read(config(methods or ("mine",)), "own.yaml")
    return str(error.value)


def without(name):
    return lambda root: (root / name).unlink()


def of_method(root, name):
    """Put the method into a folder of its own, with another folder of models beside its target."""
    (root / "mine").mkdir()
    (root / "target").rename(root / "mine/target")
    save(root / "mine" / name, logits=GOOD["logits"])


def other_format(suffix):
    return lambda root: (root / "target/logits.npy").rename(root / f"target/logits{suffix}")


def of_other_files(root):
    (root / "retrain/logits.npy").unlink()
    for number in range(5):
        (root / f"retrain/{number}.pt").touch()


def of_models_with_numbers_for_masks(root):
    save(root / "target", forget=GOOD["forget"].astype(int))
    for kind in ("target", "original", "retrain"):
        (root / kind / "logits.npy").rename(root / kind / "0.safetensors")


REFUSED = [
    (lambda root: shutil.rmtree(root / "target"), "logits/target: there is no such folder"),
    (without("target/labels.npy"), "target/labels.npy: this file is missing"),
    (without("target/train.npy"), "target/train.npy: this file is missing, and so is heldout.npy; one of"),
    # folders and arrays that nothing would read
    (lambda root: save(root / "target", lables=GOOD["labels"]), "lables.npy: there is no array of this name, did you"),
    (lambda root: save(root / "retrained", logits=GOOD["logits"]),
     "logits/retrained: there is no population 'retrained', did you mean 'retrain'? (known: "),
    (lambda root: of_method(root, "retrain"), "logits/mine/retrain: retrain is shared by all methods; move this"),
    (lambda root: save(root, held_out=GOOD["forget"]), "there is no array of this name, did you mean 'heldout'? "),
    # files in other formats
    (of_other_files, "logits/retrain: 0.pt cannot be read; models are read from .safetensors, which "),
    (other_format(".npz"), "target/logits.npz: logits is read from logits.npy only; save the array with numpy.save"),
    (other_format(".dat"), "logits.npy: this file is missing, and there are no models either (state dicts in"),
    (of_models_with_numbers_for_masks, "forget has dtype int64, but must be a mask of bool; numbers 0 and 1 become one "
     "by forget.astype(bool), a list of indices by mask[index] = True"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "words"), REFUSED, ids=[words[-60:] for _, words in REFUSED])
def test_a_folder_that_lacks_something_or_holds_what_nothing_reads_is_refused(root, edit, words):
    edit(root)
    assert words in refusal()


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        (["mine", "yours"], "mine/target: there is no such folder"),
        (["shadow"], "shadow is a population, not a method"),
        (["retrain"], "logits/target: the method 'retrain' has the models of logits/retrain; give the audited"),
    ],
)  # fmt: skip
def test_a_method_without_models_or_by_the_name_of_others_is_refused(root, methods, words):
    assert words in refusal(*methods)


def test_a_yardstick_may_be_named_beside_the_method_and_alone_without_a_target(root):
    def methods(*names):
        return list(reading.read(config(names)).scenarios[0].methods)

    assert methods("none", "mine", "retrain") == ["none", "mine", "retrain"]
    save("logits/none/target", **GOOD)
    assert "logits/none/target: the method 'none' has the models of logits/original" in refusal("mine", "none")
    shutil.rmtree("logits/none")
    for kind in ("original", "retrain"):
        save(f"logits/{kind}", train=GOOD["train"], forget=GOOD["forget"])
    (root / "target").rename("elsewhere")
    assert methods("none") == ["none", "retrain"]


def test_other_folders_and_methods_that_the_study_does_not_name_may_lie_there(root):
    for name in ("notes", ".cache", "gpt2", "retrain_control"):
        (root / name).mkdir()
    (root / "gpt2/config.json").write_text("{}")  # the model that adapters are merged into
    (root / "target/._labels.npy").touch()  # as some systems leave beside a copy
    save(root / "scrub/target", **GOOD)
    assert list(reading.read(config(["mine"])).scenarios[0].methods) == ["none", "mine", "retrain"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-7]), "(mmap length is greater than file size); save it"),
        (lambda path: np.savez(path.open("wb"), a=np.ones(3)), "logits is an archive of several arrays"),
        (lambda path: np.save(path, np.zeros((4, 12))), "logits has shape [4, 12], but must be [models, samples, cl"),
    ],
)
def test_a_broken_file_of_logits_is_refused_before_anything_runs(root, damage, words):
    path = root / "retrain/logits.npy"
    damage(path)
    sentence = refusal()
    assert f"{path}: logits " in sentence
    assert words in sentence


def test_a_broken_link_is_named_and_not_passed_over(root):
    """Without its held-out samples a study would be another."""
    (root / "target/heldout.npy").symlink_to("nowhere.npy")
    assert "target/heldout.npy: this is a folder or a broken link, not a file; save the array with" in refusal()
