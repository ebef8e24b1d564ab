"""Which models and samples tables of losses and scores tell apart, what methods are called, and what is refused."""

import re

import numpy as np
import pandas
import pytest
from unlearning_audit import readers

from reader_cases import read_one, shape, study_table, table, write_three


@pytest.mark.parametrize("seed", ["seed", "run", "run_id"])
def test_all_columns_that_identify_models_tell_them_apart(tmp_path, seed):
    frame = study_table(model="resnet").rename(columns={"seed": seed})
    for columns in (list(frame), [name for name in frame if name != "sample"], list(frame)[::-1]):
        group = read_one(tmp_path / "losses.csv", frame[columns])
        assert (*shape(group), len(group.samples)) == (1, 3, {"npo": 1}, 40)
    frames = pandas.concat([frame.assign(trainer=name) for name in ("a", "b")])
    assert len(read_one(tmp_path / "losses.csv", frames).none) == 2


@pytest.mark.parametrize("word", ["base", "pretrained", "base_model"])
def test_a_model_that_saw_no_data_is_a_method_named_by_its_label(tmp_path, word):
    """By the words of folders it is no model before unlearning."""
    frame = study_table(kinds=(word, "oracle", "ours"))
    assert shape(read_one(tmp_path / "losses.csv", frame)) == (0, 3, {word: 1, "npo": 1})
    both = pandas.concat([study_table(), table(np.random.default_rng(14), 0, kind=word, method="", seed=0)])
    assert shape(read_one(tmp_path / "losses.csv", both)) == (1, 3, {word: 1, "npo": 1})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda frame: frame.assign(loss=frame["loss"].where(frame["sample"] > 0)).drop(columns="sample"),
         "column 'loss' has no finite number for sample 0 of full/0; write one, or add a "
         "column sample, by which it is left out of all models"),
        (lambda frame: pandas.concat([frame, frame[frame["kind"] == "unlearned"].head(3)]),
         "sample 0 of unlearned/npo/0 occurs twice; leave out one of its rows, or "
         "name the column that tells models apart with --columns model=NAME"),
        (lambda frame: frame.query("kind == 'unlearned'"),
         "no model is known to be retrained without the forget set; name one with --retrain FILE"),
        (lambda frame: frame.drop(columns="side").assign(right=True),
         "no column of sample, loss, kind, method, seed, right says which samples were to be forgotten and "
         "which were held out; name this column side, or give --columns side=NAME"),
        (lambda frame: pandas.concat([frame.assign(epoch=epoch) for epoch in (0.5, 1.0)]),
         "column 'epoch' says '0.5'; steps must be whole numbers, such as 100"),
    ],
)  # fmt: skip
def test_what_a_table_lacks_is_told_with_what_helps(tmp_path, change, sentence):
    with pytest.raises(ValueError, match=rf"losses\.csv.*: {re.escape(sentence)}"):
        read_one(tmp_path / "losses.csv", change(study_table()))


@pytest.mark.parametrize("word", ["checkpoint-{}", "step_{}", "ckpt{}", "global_step{}", "epoch-{}", "{}.0"])
def test_checkpoints_that_are_named_are_steps(tmp_path, word):
    """Those of one retraining are no further retrained models."""
    frame = pandas.concat([study_table(seeds=1, checkpoint=word.format(step)) for step in (100, 200)])
    methods = dict.fromkeys(("full_step100", "npo_step100", "npo_step200", "retrain_step100"), 1)
    assert shape(read_one(tmp_path / "losses.csv", frame)) == (1, 1, methods)


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (("scrub.csv", "npo.csv"), ["npo", "scrub"]),
        (("scrub.csv.gz", "npo.csv.gz"), ["npo", "scrub"]),
        (("npo/losses.csv", "scrub/losses.csv"), ["npo", "scrub"]),
        (("npo_losses.csv",), ["npo"]),
        (("npo_seed_0.csv", "npo_seed_1.csv", "ga_0.csv"), ["ga", "npo"]),
        (("npo_lr1e-5.csv", "npo_lr1e-4.csv"), ["npo_lr1e_4", "npo_lr1e_5"]),
        (("npo_step10.csv", "npo_step20.csv"), ["npo_step10", "npo_step20"]),
        (("seed_0.csv", "seed_1.csv"), ["unlearned"]),
    ],
)
def test_files_of_different_names_are_different_methods(tmp_path, files, names):
    """Where nothing in the tables names a method; those that differ in a seed are replicates."""
    rng = np.random.default_rng(22)
    for file in ("retrain.csv", *files):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        table(rng, 1).to_csv(tmp_path / file, index=False)
    for places in ([tmp_path], [tmp_path / file for file in files]):
        ((_, retrained, methods),) = map(shape, readers.imported(places, retrain=[tmp_path / "retrain.csv"]).groups)
        assert (retrained, list(methods), sum(methods.values())) == (1, names, len(files))


def test_rows_without_names_are_the_same_samples_in_files_of_the_same_sides(tmp_path):
    frames = {path: frame.drop(columns="sample") for path, frame in write_three(tmp_path).items()}
    for path, frame in frames.items():
        frame.to_csv(path, index=False)
    (group,) = readers.imported([tmp_path]).groups
    assert shape(group) == (1, 1, {"npo": 1})
    assert len([note for note in group.notes if note.startswith("No column names samples")]) == 1
    frames[tmp_path / "npo.csv"].iloc[::-1].to_csv(tmp_path / "npo.csv", index=False)
    with pytest.raises(ValueError, match="no retrained model of this name has its forget set; name equal samples"):
        readers.imported([tmp_path])
    for path, frame in frames.items():
        path.unlink()
        for task in ("forget05", "forget10"):  # rows of two tasks are not the same samples
            frame.to_csv(tmp_path / f"{path.stem}_{task}.csv", index=False)
    assert [*map(shape, readers.imported([tmp_path]).groups)] == [(1, 1, {"npo": 1})] * 2


@pytest.mark.parametrize(("sign", "said"), [(1, 0), (-1, 1)])
def test_a_loss_that_is_below_zero_everywhere_is_doubted(tmp_path, sign, said):
    frame = study_table()
    group = read_one(tmp_path / "losses.csv", frame.assign(loss=sign * (frame["loss"] - frame["loss"].min() + 0.1)))
    assert len([note for note in group.notes if "--columns score=loss" in note]) == said


def test_a_second_reading_leaves_nothing_of_the_first_in_its_folder(tmp_path):
    """Other files of the user stay."""
    frame, folder = study_table(seeds=4), tmp_path / "models"

    def written(part):
        part.to_csv(tmp_path / "losses.csv", index=False)
        readers.write(readers.imported([tmp_path / "losses.csv"]), folder, "x")
        paths = (folder / "40_samples").rglob("published.npz")
        return sorted(path.parent.relative_to(folder / "40_samples").as_posix() for path in paths)

    more = pandas.concat([frame, table(np.random.default_rng(23), 1, kind="unlearned", method="ga", seed=0)])
    assert written(more) == ["ga/target", "npo/target", "original", "retrain", "retrain_control"]
    users = folder / "40_samples/retrain_control/notes.txt"
    users.write_text("mine", encoding="utf-8")
    assert written(frame[frame["seed"] < 2]) == ["npo/target", "original", "retrain"]
    assert users.read_text(encoding="utf-8") == "mine"
    assert not (folder / "40_samples/ga").exists()


def test_a_table_of_too_few_forgotten_samples_is_left_out_once(tmp_path):
    """Where others can be compared; of a retrained model the sentence says why none is there."""
    frame = study_table()
    small = frame[(frame["side"] != "forget") | (frame["sample"] < 5)]
    sentence = f"{tmp_path / 'small.csv'}: only 5 samples are to be forgotten by one model; at least 10 are needed"
    frame.to_csv(tmp_path / "losses.csv", index=False)
    small.to_csv(tmp_path / "small.csv", index=False)
    imported = readers.imported([tmp_path])
    assert [unread.sentence for unread in imported.unread] == [sentence]
    frame[(frame["side"] != "forget") | (frame["sample"] < 10)].to_csv(tmp_path / "ten.csv", index=False)
    assert len(readers.imported([tmp_path / "ten.csv"]).groups[0].samples) == 10
    (tmp_path / "ten.csv").unlink()
    assert [*map(shape, imported.groups)] == [(1, 3, {"npo": 1})]
    frame[frame["kind"] != "retrained"].to_csv(tmp_path / "losses.csv", index=False)
    small[small["kind"] == "retrained"].to_csv(tmp_path / "small.csv", index=False)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        readers.imported([tmp_path])


def test_a_sample_that_one_model_forgets_and_another_keeps_is_refused(tmp_path):
    frame = study_table()
    frame.loc[(frame["kind"] == "unlearned") & (frame["sample"] == 7), "side"] = "retain"
    frame.to_csv(tmp_path / "losses.csv", index=False)
    imported = readers.imported([tmp_path / "losses.csv"])
    sentence = r"losses\.csv: sample 7 is retain for one of the compared models and forget for another"
    with pytest.raises(ValueError, match=sentence):
        readers.write(imported, tmp_path / "models", "x")


def test_samples_without_a_number_are_left_out_of_all_models(tmp_path):
    frame = study_table(seeds=4)
    gap = (frame["kind"] == "retrained") & (frame["seed"] == 3) & frame["sample"].isin([5, 50])
    without = read_one(tmp_path / "losses.csv", frame[~frame["sample"].isin([5, 50])])
    frame.loc[gap, "loss"] = np.nan
    group = read_one(tmp_path / "losses.csv", frame)
    assert (*shape(group), len(group.samples)) == (1, 4, {"npo": 1}, 39)
    for model, other in zip(group.models, without.models, strict=True):
        assert model.ids == other.ids
        np.testing.assert_array_equal(model.scores["loss"], other.scores["loss"])
    assert any("2 samples lack a number in some model; they are left out of all models" in note for note in group.notes)


def test_losses_of_forgotten_samples_alone_are_compared_as_probabilities(tmp_path):
    group = read_one(tmp_path / "losses.csv", study_table().query("side == 'forget'"))
    model = group.retrain[0]
    reading = model.readings["forget_probability_by_loss"]
    np.testing.assert_allclose(reading.value, np.exp(-model.readings["forget_loss"].value))
    assert (reading.direction, reading.share) == (1, True)
    group = read_one(tmp_path / "both.csv", study_table())
    assert all("forget_probability_by_loss" not in model.readings for model in group.models)
