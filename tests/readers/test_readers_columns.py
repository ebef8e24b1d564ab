"""Which columns of a table mean what, which way they are read, and which samples were to be forgotten."""

import re
from pathlib import Path

import numpy as np
import pandas
import pytest
from unlearning_audit import readers
from unlearning_audit.readers import _columns

from reader_cases import read_one, shape, study_table, table


def one_model(**columns):
    """A table of one model, with some columns changed."""
    return table(np.random.default_rng(11), 1).assign(**columns)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("loss", -1), ("train_loss", -1), ("NLL", -1), ("neg_log_likelihood", -1), ("negative_log_likelihood", -1),
        ("neg_logp", -1), ("one_minus_prob", -1), ("1-prob", 0), ("loss_minus_reference", -1),
        ("neg_loss", 1), ("Negative Loss", 1), ("minus_loss", 1), ("-loss", 1), ("loss_neg", 1), ("neg_nll", 1),
        ("inverse_perplexity", 1), ("score", 1), ("log_likelihood", 1), ("accuracy", 0),
    ],
)  # fmt: skip
def test_a_column_that_negates_a_loss_is_a_score(tmp_path, name, near):
    frame = study_table().rename(columns={"loss": name})
    if near == 0:
        with pytest.raises(ValueError, match="called loss or score"):
            read_one(tmp_path / "losses.csv", frame)
        return
    group = read_one(tmp_path / "losses.csv", frame)
    first = frame[(frame["kind"] == "full") & (frame["side"] != "retain")]
    (scores,) = group.none[0].scores.values()
    np.testing.assert_allclose(scores, near * first[name])
    word = "greater" if near > 0 else "smaller"
    assert group.notes == [f"{name}: a {word} value is taken for a member's."]


def test_the_page_lists_all_names_of_columns():
    page = (Path(__file__).parents[2] / "docs/read_results.md").read_text(encoding="utf-8")
    for meaning, names in _columns.COLUMNS.items():
        assert f"| `{meaning}` | {', '.join(f'`{name}`' for name in names)} | |" in page
    for kind, pattern in (("a loss", _columns.LOSSES), ("a score", _columns.SCORES)):
        words = pattern.pattern.split("(")[2].split(")")[0].split("|")
        assert f"\n| {kind} | {', '.join(f'`{word}`' for word in words)} |" in page


@pytest.mark.parametrize(
    ("file", "names"),
    [("a.csv", ("loss_npo", "loss_retrain_1", "loss_retrain_2")), ("nll.csv", ("npo", "retrained_1", "retrained_2"))],
)
def test_a_column_for_each_model_is_read(tmp_path, file, names):
    values = {name: np.random.default_rng(i).random(40) for i, name in enumerate(names)}
    frame = pandas.DataFrame({"id": range(40), "split": ["D_f"] * 20 + ["heldout"] * 20, **values})
    group = read_one(tmp_path / file, frame)
    assert shape(group) == (0, 2, {"npo": 1})
    np.testing.assert_allclose(group.methods["npo"][0].scores["loss"], -frame[names[0]])


def test_what_the_columns_of_models_hold_is_asked(tmp_path):
    samples = {"id": range(40), "split": ["forget"] * 20 + ["heldout"] * 20}
    frame = pandas.DataFrame({**samples, "unlearned": np.arange(40.0), "retrained": np.arange(40.0) + 1})
    with pytest.raises(ValueError, match="belong to several models; say what they hold with --columns loss=unlearned"):
        read_one(tmp_path / "mine.csv", frame)
    group = read_one(tmp_path / "mine.csv", frame, options={"columns": {"score": "unlearned"}})
    np.testing.assert_allclose(group.methods["unlearned"][0].scores["score"], frame["unlearned"])
    with pytest.raises(ValueError, match="columns retrained and nll_retrained belong to one model, retrained"):
        read_one(tmp_path / "mine.csv", frame.assign(nll_retrained=1.0))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("TOFU_SUMMARY.json", "{}", "holds means only; the *_EVAL.json of the same run"),
        ("aggregate_stat.csv", "Method,Forget Quality\n", "one line for each model; ask its publisher"),
        ("trainer_state.json", "{}", "the log of a training run, step by step"),
        ("roc.csv", "fpr,tpr\n0,0\n", "it is a curve, which has no score"),
        ("attacks.csv", "attack,auc\nloss,0.6\n", "one line for each attack"),
        ("log.csv", "slice,epoch,loss\n0,1,0.5\n", "the log of a training run, epoch by epoch"),
        ("results.json", '{"results": {}, "versions": {}}', "run it with --log_samples"),
        ("export.csv", "_step,_runtime,loss\n1,2,3\n", "the export of a logged run"),
        ("scores.pkl", "x", "a pickle may run code"),
        ("logits.npy", "x", "give arrays of numpy.save with --target, --retrain and --labels"),
        ("model.pth", "x", "save an array with numpy.save"),
    ],
)
def test_files_that_hold_no_samples_are_told_what_to_give(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    for place in (tmp_path / name, tmp_path):
        with pytest.raises(ValueError, match=f"{re.escape(name)}: .*{re.escape(sentence)}"):
            readers.imported([place])


@pytest.mark.parametrize("word", ["test", "validation"])
@pytest.mark.parametrize("heldout", ["heldout", "nonmember"])
def test_the_test_part_is_not_what_was_held_out(tmp_path, word, heldout):
    frame = one_model().replace({"side": {"heldout": heldout}})
    beside = frame[frame["side"] == heldout].assign(side=word, loss=9.0, sample=np.arange(40) + 10_000)
    group = read_one(tmp_path / "retrained.csv", pandas.concat([frame, beside]), alone=True)
    (model,) = group.models
    assert (model.forget.sum(), model.heldout.sum()) == (40, 40)
    assert model.scores["loss"].min() > -9
    reading = model.readings["test_loss"]
    assert (reading.part, len(reading.ids), set(reading.value)) == ("other", 40, {9.0})


@pytest.mark.parametrize("words", [("yes", "no"), (1, 0)])
@pytest.mark.parametrize("name", ["split", "non_member", "member_or_not"])
def test_what_may_be_true_of_either_side_is_refused(tmp_path, words, name):
    """Read the wrong way round it would turn every verdict."""
    frame = one_model().query("side != 'retain'").replace({"side": {"forget": words[0], "heldout": words[1]}})
    option = ", as by --columns member=split," if name == "split" else ""
    sentence = (
        f"losses.csv: column {name!r} says '{words[0]}', '{words[1]}', which may mean either side; write forget and "
        f"heldout, or, if they mark the samples to be forgotten, call the column member{option}"
    )
    with pytest.raises(ValueError, match=re.escape(sentence) + "$"):
        read_one(tmp_path / "losses.csv", frame.rename(columns={"side": name}), options={"columns": {"side": name}})


CELLS = ["vielleicht", None, "maybe 7", "so", "so", "la", *["yes"] * 57, *["no"] * 57]


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (one_model(**{"loss ": 0.5}), "two columns are called 'loss'; rename one of them"),
        (one_model(side="kept"), "column 'side' marks neither forgotten nor held-out samples"),
        (one_model(member=CELLS).drop(columns="side"), "column 'member' says 'vielleicht', nothing, 'maybe 7' and "
         "2 more; it must say forget, heldout, retain or test, or member and nonmember, or yes and no in a column "
         "member"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_meant_are_refused(tmp_path, frame, sentence):
    with pytest.raises(ValueError, match=rf"losses\.csv: {re.escape(sentence)}$"):
        read_one(tmp_path / "losses.csv", frame, alone=True)
