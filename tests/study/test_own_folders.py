"""Folders of a user's own models under other names, and files in other formats: what nothing would read is refused."""

from pathlib import Path

import numpy as np
import pytest
from unlearning_audit.protocols import external
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError

from external_cases import GOOD, config, save


def folder(name="logits", **changes):
    """A sound folder of one method, with models before unlearning and retrained ones."""
    save(f"{name}/target", **{key: array for key, array in {**GOOD, **changes}.items() if array is not None})
    for kind in ("original", "retrain"):
        save(f"{name}/{kind}", logits=GOOD["logits"] + 1, labels=GOOD["labels"])
    return Path(name)


def refusal(*methods: str) -> str:
    """The sentence with which a study of the folder is refused."""
    with pytest.raises(StudyError) as error:
        reading.read(config(methods or ("mine",)))
    return str(error.value)


@pytest.mark.parametrize(
    ("method", "meaning"),
    [
        ("none", "the models before unlearning"),
        ("retrain", "the models that were retrained without the forget set"),
        ("retrain_control", "more models that were retrained without the forget set"),
    ],
)
def test_models_after_unlearning_cannot_have_the_name_of_a_yardstick(workdir, method, meaning):
    folder()
    sentence = f"target: the name '{method}' is reserved for {meaning}; give the audited method another name"
    assert f"logits/{sentence}" in refusal(method)
    save(f"logits/{method}/target", **GOOD)
    assert f"logits/{method}/{sentence}" in refusal("mine", method)


def test_a_yardstick_may_be_named_beside_the_method_and_alone_without_a_target(workdir):
    root = folder()
    assert list(reading.read(config(["none", "mine", "retrain"])).scenarios[0].methods) == ["none", "mine", "retrain"]
    save("logits/original", **{name: GOOD[name] for name in ("train", "forget")})
    save("logits/retrain", **{name: GOOD[name] for name in ("train", "forget")})
    (root / "target").rename("elsewhere")
    assert list(reading.read(config(["none"])).scenarios[0].methods) == ["none", "retrain"]


# ---------------------------------------------------------------- folders that nothing would read


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("retrained", "there is no population 'retrained', did you mean 'retrain'? (known: "),
        ("oracle", "there is no population 'oracle' (known: mine, original, retrain, retrain_control, shadow, "),
        ("mine/retrain", "retrain is shared by all methods; move this folder to logits"),
        ("mine/shadows", "there is no population 'shadows', did you mean 'shadow'?"),
    ],
)
def test_a_folder_of_models_that_is_no_population_is_refused(workdir, name, words):
    root = folder()
    if name.startswith("mine"):
        (root / "mine").mkdir()
        (root / "target").rename(root / "mine/target")
    save(root / name, logits=GOOD["logits"])
    assert f"logits/{name}: {words}" in refusal()


@pytest.mark.parametrize("place", ["", "mine", "target"])
def test_an_array_that_nothing_would_read_is_refused_wherever_it_lies(workdir, place):
    root = folder()
    if place == "mine":
        (root / "mine").mkdir()
        (root / "target").rename(root / "mine/target")
    path = root / place / "held_out.npy"
    np.save(path, GOOD["forget"])
    known = ["logits"] * (place == "target") + ["pair", "split", "test", "train", "weight"]
    names = ", ".join(["block", "forget", "heldout", "labels", *known])
    told = (
        f"{path}: there is no array of this name, did you mean 'heldout'? (known: {names}); rename it or move it away"
    )
    assert told in refusal()
    path.rename(path.with_name("._labels.npy"))  # as some systems leave beside a copy
    assert reading.read(config())


def test_other_folders_and_methods_that_the_study_does_not_name_may_lie_there(workdir):
    root = folder()
    for name in ("notes", ".cache", "gpt2"):
        (root / name).mkdir()
    (root / "gpt2/config.json").write_text("{}")  # the model that adapters are merged into
    save(root / "scrub/target", **GOOD)
    assert list(reading.read(config(["mine"])).scenarios[0].methods) == ["none", "mine", "retrain"]


# ---------------------------------------------------------------- files in another format


@pytest.mark.parametrize("kind", ["target", "original", "retrain"])
def test_weights_that_are_not_read_are_named_with_the_line_that_converts_them(workdir, kind):
    root = folder()
    (root / kind / "logits.npy").unlink()
    for number in range(5):
        (root / kind / f"{number}.pt").touch()
    at = f"logits/{kind}"
    assert (
        f"{at}: 0.pt, 1.pt, 2.pt and 2 more cannot be read; models are read from .safetensors and logits from "
        f"logits.npy; for each of them safetensors.torch.save_file(torch.load('{at}/0.pt', weights_only=True), "
        f"'{at}/0.safetensors')"
    ) in refusal()


@pytest.mark.parametrize(
    ("name", "suffix", "words"),
    [
        ("logits", ".npz", "logits are read from logits.npy only; numpy.save('logits/target/logits.npy', "
         "numpy.load('logits/target/logits.npz')['logits'])"),
        ("logits", ".pt", "logits are read from logits.npy only; numpy.save("),
        ("labels", ".csv", "labels is read from labels.npy only; numpy.save('logits/target/labels.npy', "),
        ("forget", ".pkl", "forget is read from forget.npy only"),
        ("heldout", ".npz", "heldout is read from heldout.npy only"),
    ],
)  # fmt: skip
def test_an_array_in_another_format_is_named_with_the_line_that_converts_it(workdir, name, suffix, words):
    target = folder() / "target"
    (target / f"{name}.npy").unlink(missing_ok=True)
    (target / f"{name}{suffix}").touch()
    assert f"{target}/{name}{suffix}: {words}" in refusal()


def test_masks_of_numbers_become_masks_of_bool_where_models_are_asked(workdir):
    root = folder(forget=GOOD["forget"].astype(int))
    for kind in ("target", "original", "retrain"):
        (root / kind / "logits.npy").rename(root / kind / "0.safetensors")
    advice = "numbers 0 and 1 become one by forget.astype(bool), a list of indices by mask[index] = True"
    assert f"forget has dtype int64, but must be a mask of bool; {advice}" in refusal()


def test_a_folder_without_logits_is_told_with_what_it_holds(workdir):
    root = folder()
    (root / "target/logits.npy").rename(root / "target/outputs.dat")
    missing = (
        "logits/target/logits.npy: this file is missing, and there are no models either (state dicts in .safetensors, "
        "or folders of transformers or peft); save it with numpy.save; "
    )
    assert f"{missing}the folder holds forget.npy, labels.npy, outputs.dat and 1 more" in refusal()
    (root / "target/labels.npy").rename(root / "labels.npy")
    assert refusal().endswith("save it with numpy.save; the folder holds forget.npy, outputs.dat, train.npy")
    (root / "labels.npy").rename(root / "target/labels.npy")
    (root / "notes").mkdir()
    (root / "retrain_control").mkdir()  # empty: there are none
    (root / "target/outputs.dat").rename(root / "target/logits.npy")
    assert reading.read(config())
    for path in (root / "target").iterdir():
        path.unlink()
    assert f"{missing}the folder is empty" in refusal()


# ---------------------------------------------------------------- files that are broken


def truncated(path):
    path.write_bytes(path.read_bytes()[:-7])


def saved(array):
    return lambda path: np.save(path, array)


OBJECTS = np.array([{}, [1]], dtype=object)
PICKLED = "cannot be read (it holds pickled objects, which may run code when they are read); save it with numpy.save"


@pytest.mark.parametrize("kind", ["target", "original", "retrain"])
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (truncated, "logits cannot be read (mmap length is greater than file size); save it with numpy.save"),
        (lambda path: path.write_bytes(path.read_bytes()[:20]), "logits cannot be read ("),
        (lambda path: path.write_bytes(b""), "logits cannot be read (No data left in file)"),
        (lambda path: path.write_bytes(b"\x80\x04K\x01."), f"logits {PICKLED}"),
        (lambda path: np.savez(path.open("wb"), a=np.ones(3)), "logits is an archive of several arrays"),
        (lambda path: np.save(path, OBJECTS, allow_pickle=True), f"logits {PICKLED}"),
        (saved(np.zeros((0, 12, 3))), "logits has shape [0, 12, 3]; it needs a model, a sample and two classes"),
        (saved(np.zeros((4, 12))), "logits has shape [4, 12], but must be [models, samples, classes]; for a single"),
        (saved(np.zeros((4, 12, 3), int)), "logits has dtype int64, but must be float16, float32 or float64"),
    ],
)
def test_a_broken_file_of_logits_is_refused_before_anything_runs(workdir, kind, damage, words):
    path = folder() / kind / "logits.npy"
    damage(path)
    assert f"{path}: {words}" in refusal()


def test_models_are_in_the_order_of_their_names_and_numbers(tmp_path):
    names = ["a_3", "adam_2", "b_long_1", "control", "model_1", "model_01", "model_9", "model_10", "retain", "sgd_1"]
    for name in names[::-1]:
        (tmp_path / f"{name}.safetensors").touch()
    names[4:6] = sorted(names[4:6])  # of equal numbers as they are written
    assert [path.stem for path in external.checkpoints(tmp_path)] == names
