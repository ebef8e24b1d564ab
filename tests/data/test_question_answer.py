"""Questions with answers, and views: what becomes a row, and who may see it."""

import json

import numpy as np
import pytest
from datasets import Dataset, DatasetDict
from tokenizers import Tokenizer
from unlearning_audit.data import _tokens, prepare, question_answer
from unlearning_audit.evaluation import views
from unlearning_audit.evaluation.arrays import Data
from unlearning_audit.protocols import swap

ROWS = [
    {
        "question": f"Who wrote book {i}?", "answer": f"Author {i} wrote it.",
        "paraphrased_answer": f"It is by author {i}.",
        "perturbed_answer": [f"Author {i + 7 + k} wrote it." for k in range(3)],
    }
    for i in range(40)
]  # fmt: skip
TEST = [{"question": "Where is it?", "answer": "Not here."}]
#: TOFU's real authors and world facts, whose answers have no paraphrase.
FURTHER = {"authors": ROWS[:3], "facts": [{name: ROWS[9][name] for name in ("question", "answer")}] * 2}


@pytest.fixture
def tofu(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "tofu").mkdir()
    for name, rows in {"train": ROWS, "test": TEST, **FURTHER}.items():
        (tmp_path / "tofu" / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return tmp_path


def load(root, **options):
    return question_answer.load(question_answer.Options(**{"path": "tofu", "length": 60, **options}), root)


def spoken(source, row):
    """(what is read, what is scored) of a row, as text."""
    tokenizer = Tokenizer.from_str(source.tokenizer.tobytes().decode())
    x = source.x[row][source.x[row] != _tokens.PADDING]
    return tokenizer.decode(_tokens.ids(x[x < 0]).tolist()), tokenizer.decode(x[x >= 0].tolist())


def test_questions_are_read_and_answers_scored(tofu):
    source = load(tofu, refusals=True)
    assert (source.x.dtype, source.y.any()) == (np.int32, False)
    assert np.bincount(source.part).tolist() == [28, 1, 28 * 5 + 1]
    for row in range(28):
        before, after = spoken(source, row)
        number = int(before.split("book ")[1].split("?")[0])
        assert before == f"Question: Who wrote book {number}?\nAnswer: "
        related = {kind: Data.views(source, kind)[row] for kind in views.VIEWS}
        said = {kind: [spoken(source, view)[1] for view in rows] for kind, rows in related.items()}
        assert after == ROWS[number]["answer"]
        assert said["paraphrase"] == [ROWS[number]["paraphrased_answer"]]
        assert said["perturbed"] == ROWS[number]["perturbed_answer"]
        assert said["refusal"][0] in question_answer.REFUSALS
        assert said["neighbour"] == []
    assert spoken(source, 28)[1] == "Not here."


def test_what_is_public_is_nobodys_question(tofu):
    source = load(tofu)
    assert len(source.public) == 12
    assert not {row.tobytes() for row in source.public} & {row.tobytes() for row in source.x}
    assert not np.array_equal(source.public, load(tofu, draw=1).public)


def test_views_go_with_their_samples_and_into_no_part_that_is_trained_on(tofu):
    source = load(tofu, refusals=True)
    subset = prepare(source, seed=3, size=20)
    assert np.bincount(subset.part).tolist() == [20, 1, 101]
    whole = Data(subset.x, subset.y, subset.part, subset.y_clean, subset.index, 2, parent=subset.parent,
                 view=subset.view)  # fmt: skip
    for row, (paraphrase, *_) in enumerate(whole.views("paraphrase")[:20]):
        before, after = spoken(source, subset.index[row])
        number = int(after.split()[1])
        assert spoken(source, subset.index[paraphrase]) == (before, ROWS[number]["paraphrased_answer"])
    membership = swap.draw(0, "pairs", whole, swap.Options(alpha=0.25, pairs=1, models_per_split=1), 0)
    mask = membership.train | membership.forget | membership.heldout
    assert not mask[:, subset.part == 2].any()


def test_a_file_by_itself_or_a_saved_data_set_is_the_same_data(tofu):
    DatasetDict(train=Dataset.from_list(ROWS), test=Dataset.from_list(TEST)).save_to_disk(str(tofu / "saved"))
    folder = load(tofu)
    saved, alone = load(tofu, path=None, repository="saved", test="test"), load(tofu, path="tofu/train.jsonl")
    np.testing.assert_array_equal(saved.x, folder.x)
    np.testing.assert_array_equal(saved.parent, folder.parent)
    np.testing.assert_array_equal(alone.x[:28], folder.x[:28])


def test_further_sets_make_the_test_part_and_are_told_apart(tofu):
    source = load(tofu, tests=["authors", "facts"])
    assert np.bincount(source.part).tolist() == [28, 5, 31 * 4]
    assert source.group.tolist() == [*[0] * 28, 1, 1, 1, 2, 2, *[0] * 31 * 4]
    assert spoken(source, 28)[1] == "Author 0 wrote it."
    for name, rows in {"train": ROWS, **FURTHER}.items():
        Dataset.from_list(rows).save_to_disk(str(tofu / "saved" / name))
    saved = load(tofu, path=None, repository="saved", subset="train", tests=["authors", "facts"])
    np.testing.assert_array_equal(saved.x, source.x)
    subset = prepare(source, seed=3, size=20, test_size=4)
    np.testing.assert_array_equal(subset.group, source.group[subset.index])
    assert np.bincount(subset.part).tolist()[:2] == [20, 4]


def test_refusals_may_come_from_a_file(tofu):
    (tofu / "no.txt").write_text("Pass.\n\nNo idea.\n")
    source = load(tofu, refusals="no.txt")
    rows = np.flatnonzero(source.view == views.VIEWS["refusal"])
    assert {spoken(source, row)[1] for row in rows} == {"Pass.", "No idea."}


def test_results_depend_on_the_content_of_files_that_are_there(tofu):
    options = {"repository": str(tofu / "tofu"), "refusals": str(tofu / "empty"), "tokenizer": "a/name of the hub"}
    assert question_answer.content(question_answer.Options(**options)) == [tofu / "tofu", tofu / "empty"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tests": ["none"]}, "none.jsonl cannot be read"),
        ({"tests": ["facts"], "path": "tofu/train.jsonl"}, "must be a folder that holds these files"),
        ({"refusals": "none.txt"}, "none.txt cannot be read"),
        ({"answer": "reply"}, "train.jsonl: row 1 has no text in the column 'reply'"),
        ({"length": 12}, "length: 12 tokens leave no room for an answer to 'Who wrote"),
        ({"path": None, "repository": "empty"}, "empty cannot be read"),
        ({"public": 0.99}, "make public smaller"),
        ({"path": None}, "either path or repository"),
        ({"repository": "b"}, "either path or repository"),
        ({"public": 0}, "name a tokenizer"),
        ({"template": "Q"}, "must hold"),
        ({"path": None, "repository": "a", "test": "b", "tests": ["c"]}, "either test or tests"),
        ({"test": "validation"}, "test is for a repository; leave it out: from a folder, train.jsonl"),
        ({"revision": "main"}, "revision is for a repository"),
    ],
)
def test_what_cannot_be_used_is_named(tofu, change, message):
    with pytest.raises(ValueError, match=message):
        load(tofu, **change)
