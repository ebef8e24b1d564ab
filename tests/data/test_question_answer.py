"""Questions with answers, data sets of the hub, and views: what becomes a row, and who may see it."""

import json
from pathlib import Path

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Image, Value
from PIL import Image as Pillow
from tokenizers import Tokenizer
from unlearning_audit.data import Source, _tokens, hub, passages, prepare, question_answer
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


def jsonl(path: Path, rows) -> None:
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")


@pytest.fixture
def tofu(tmp_path):
    (tmp_path / "tofu").mkdir()
    (tmp_path / "empty").mkdir()
    jsonl(tmp_path / "tofu" / "train.jsonl", ROWS)
    jsonl(tmp_path / "tofu" / "test.jsonl", [{"question": "Where is it?", "answer": "Not here."}])
    return tmp_path


def load(root, **options):
    return question_answer.load(question_answer.Options(**{"path": "tofu", "length": 60, **options}), root)


def spoken(source, row):
    """(what is read, what is scored) of a row, as text."""
    tokenizer = Tokenizer.from_str(source.tokenizer.tobytes().decode())
    x = source.x[row]
    x = x[x != _tokens.PADDING]
    return tokenizer.decode(_tokens.ids(x[x < 0]).tolist()), tokenizer.decode(x[x >= 0].tolist())


def test_questions_are_read_and_answers_scored(tofu):
    source = load(tofu, refusals=True)
    assert source.x.dtype == np.int32
    assert not source.y.any()
    assert np.bincount(source.part).tolist() == [28, 1, 28 * 5 + 1]
    for row in range(28):
        before, after = spoken(source, row)
        number = before.split("book ")[1].split("?")[0]
        assert before == f"Question: Who wrote book {number}?\nAnswer: "
        assert after == f"Author {number} wrote it."
        related = {kind: views.of(kind, source.parent, source.view, len(source.x))[row] for kind in views.VIEWS}
        assert spoken(source, related["paraphrase"][0]) == (before, f"It is by author {number}.")
        wrong = [spoken(source, r)[1] for r in related["perturbed"]]
        assert wrong == [f"Author {int(number) + 7 + k} wrote it." for k in range(3)]
        assert spoken(source, related["refusal"][0])[1] in question_answer.REFUSALS
        assert related["neighbour"].size == 0
    assert spoken(source, 28)[1] == "Not here."


def test_what_is_public_is_nobodys_question(tofu):
    source = load(tofu)
    assert len(source.public) == 12
    samples = {row.tobytes() for row in source.x}
    assert not any(row.tobytes() in samples for row in source.public)
    second = load(tofu, draw=1)
    assert not np.array_equal(source.public, second.public)


def test_views_go_with_their_samples_and_into_no_part_that_is_trained_on(tofu):
    source = load(tofu, refusals=True)
    subset = prepare(source, seed=3, size=20)
    assert np.bincount(subset.part).tolist() == [20, 1, 101]
    data = {"x": subset.x, "y": subset.y, "part": subset.part, "y_clean": subset.y_clean, "index": subset.index}
    whole = Data(**data, classes=2, parent=subset.parent, view=subset.view)
    for row in range(20):
        paraphrase = whole.views("paraphrase")[row, 0]
        before, after = spoken(source, subset.index[row])
        assert spoken(source, subset.index[paraphrase]) == (before, after.replace("Author", "It is by author")
                                                            .replace(" wrote it", ""))  # fmt: skip
    membership = swap.draw(0, "pairs", whole, swap.Options(alpha=0.25, pairs=1, models_per_split=1), 0)
    mask = membership.train | membership.forget | membership.heldout
    assert not mask[:, subset.part == 2].any()


def test_a_file_by_itself_or_a_saved_data_set_is_the_same_data(tofu):
    DatasetDict({"train": Dataset.from_list(ROWS), "test": Dataset.from_list(
        [{"question": "Where is it?", "answer": "Not here."}])}).save_to_disk(str(tofu / "saved"))  # fmt: skip
    a = load(tofu)
    b = load(tofu, path=None, repository="saved", test="test")
    assert np.array_equal(a.x, b.x)
    assert np.array_equal(a.parent, b.parent)
    c = load(tofu, path="tofu/train.jsonl")
    assert np.array_equal(c.x[:28], a.x[:28])
    options = question_answer.Options(repository=str(tofu / "saved"), tokenizer="a/name of the hub")
    assert question_answer.content(options) == [tofu / "saved"]


def test_further_sets_make_the_test_part_and_are_told_apart(tofu):
    """TOFU's real authors and world facts, whose answers have no paraphrase."""
    sets = {"train": ROWS, "authors": ROWS[:3], "facts": [{k: ROWS[9][k] for k in ("question", "answer")}] * 2}
    for name, rows in sets.items():
        jsonl(tofu / "tofu" / f"{name}.jsonl", rows)
        Dataset.from_list(rows).save_to_disk(str(tofu / "saved" / name))
    source = load(tofu, tests=["authors", "facts"])
    assert np.bincount(source.part).tolist() == [28, 5, 31 * 4]
    assert source.group.tolist() == [*[0] * 28, 1, 1, 1, 2, 2, *[0] * 31 * 4]
    assert spoken(source, 28)[1] == "Author 0 wrote it."
    saved = load(tofu, path=None, repository="saved", subset="train", tests=["authors", "facts"])
    assert np.array_equal(saved.x, source.x)
    subset = prepare(source, seed=3, size=20, test_size=4)
    assert np.array_equal(subset.group, source.group[subset.index])
    assert np.bincount(subset.part).tolist()[:2] == [20, 4]


def test_refusals_may_come_from_a_file(tofu):
    (tofu / "no.txt").write_text("Pass.\n\nNo idea.\n")
    source = load(tofu, refusals="no.txt")
    rows = np.flatnonzero(source.view == views.VIEWS["refusal"])
    assert {spoken(source, row)[1] for row in rows} == {"Pass.", "No idea."}
    options = question_answer.Options(path="tofu", refusals=str(tofu / "no.txt"))
    assert question_answer.content(options) == [tofu / "no.txt"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tests": ["facts"]}, "facts.jsonl cannot be read"),
        ({"tests": ["facts"], "path": "tofu/train.jsonl"}, "must be a folder that holds these files"),
        ({"refusals": "none.txt"}, "none.txt cannot be read"),
        ({"answer": "reply"}, "train.jsonl: row 1 has no text in the column 'reply'"),
        ({"length": 12}, "length: 12 tokens leave no room for an answer to 'Who wrote"),
        ({"path": "nothing.jsonl"}, "nothing.jsonl cannot be read"),
        ({"path": None, "repository": "empty"}, "empty cannot be read"),
        ({"public": 0.99}, "make public smaller"),
    ],
)
def test_what_cannot_be_used_is_named(tofu, change, message):
    with pytest.raises(ValueError, match=message):
        load(tofu, **change)


def test_choices_that_exclude_each_other_are_refused():
    for options, message in (
        ({}, "either path or repository"),
        ({"path": "a", "repository": "b"}, "either path or repository"),
        ({"path": "a", "public": 0}, "name a tokenizer"),
        ({"path": "a", "template": "Q"}, "must hold"),
        ({"repository": "a", "test": "b", "tests": ["c"]}, "either test or tests"),
        (
            {"path": "a", "test": "validation"},
            "test is for a repository; leave it out: from a folder, train.jsonl",
        ),
        ({"path": "a", "train": "validation"}, "train is for a repository"),
        ({"path": "a", "subset": "forget10"}, "subset is for a repository"),
        ({"path": "a", "revision": "main"}, "revision is for a repository"),
    ):
        with pytest.raises(ValueError, match=message):
            question_answer.Options(**options)


def test_passages_come_from_a_data_set_of_the_hub_or_a_saved_one(tofu):
    texts = [" ".join(f"word{i * k % 91}" for k in range(40)) for i in range(12)]
    Dataset.from_dict({"body": texts, "year": list(range(12))}).save_to_disk(str(tofu / "news"))
    options = {"corpus": "hub", "repository": "news", "length": 8, "vocabulary": 300}
    source = passages.load(passages.Options(**options, text="body"), tofu)
    assert len(source.x) > 20
    assert len(source.public) > 20
    with pytest.raises(ValueError, match="no column 'text'; it has body, year"):
        passages.load(passages.Options(**options), tofu)
    with pytest.raises(ValueError, match="does not hold text"):
        passages.load(passages.Options(**options, text="year"), tofu)
    with pytest.raises(ValueError, match="corpus: hub belong together"):
        passages.Options(repository="news")


def test_neighbours_differ_from_their_passage_in_scored_tokens_only():
    source = passages.load(passages.Options(neighbours=3, changed=0.2, scored=10, length=16), Path())
    at = views.of("neighbour", source.parent, source.view, len(source.x))
    with_neighbours = at[:, 0] >= 0
    assert at.shape[1] == 3
    assert with_neighbours.sum() == (source.part < 2).sum()
    plain = passages.load(passages.Options(scored=10, length=16), Path())
    assert np.array_equal(source.x[with_neighbours], plain.x)
    for k in range(3):
        differ = source.x[at[with_neighbours, k]] != source.x[with_neighbours]
        assert not differ[:, :6].any()
        assert 1.5 < differ.sum(1).mean() <= 2


def test_neighbours_need_public_text_to_draw_from(tmp_path):
    (tmp_path / "a.txt").write_text("short.")
    for name in ("b", "c"):
        (tmp_path / f"{name}.txt").write_text(" ".join(f"{name}{i} is here" for i in range(300)))
    sentence = (
        "neighbours: their tokens are drawn from the public text, which is shorter than a passage of 16 tokens; make "
        "public larger or length smaller"
    )
    options = {"corpus": "folder", "path": ".", "length": 16, "vocabulary": 260, "public": 0.01}
    told = set()
    for draw in range(8):  # each of the documents is the public one
        without = passages.load(passages.Options(**options, draw=draw), tmp_path)
        try:
            passages.load(passages.Options(**options, draw=draw, neighbours=1), tmp_path)
        except ValueError as error:
            told.add(str(error))
            assert not without.public.size
    assert told == {sentence}


# ---------------------------------------------------------------- views


PART, PARENT = np.uint8([0, 0, 1, 2, 2]), np.array([-1, -1, -1, 0, 2])


@pytest.mark.parametrize(
    ("part", "parent", "view", "message"),
    [
        (PART, PARENT, np.uint8([0, 0, 0, 1, 1]), ""),
        (PART, None, np.uint8([0, 0, 0, 1, 1]), "belong together"),
        (PART, np.array([-1, -1, 0, 0, 2]), np.uint8([0, 0, 1, 1, 1]), "exactly where part is 2"),
        (PART, np.array([-1, -1, -1, 4, 2]), np.uint8([0, 0, 0, 1, 1]), "no views themselves"),
        (PART, PARENT, np.uint8([0, 0, 0, 9, 1]), "above 5"),
    ],
)
def test_views_must_have_parents_that_are_none(part, parent, view, message):
    assert (message in views.wrong(part, parent, view)) if message else views.wrong(part, parent, view) == ""
    if message:
        with pytest.raises(ValueError, match=message):
            Source(np.zeros((5, 3), np.int32), np.zeros(5, np.int64), part, 2, parent=parent, view=view)


# ---------------------------------------------------------------- the hub


def pictures(n, names=("cat", "dog"), size=9):
    rng = np.random.default_rng(n)
    features = Features({"img": Image(), "what": ClassLabel(names=list(names)), "note": Value("string")})
    rows = [{"img": Pillow.fromarray(rng.integers(0, 256, (size, size, 3), dtype=np.uint8)), "what": i % 2,
             "note": f"row {i}"} for i in range(n)]  # fmt: skip
    return Dataset.from_list(rows, features=features)


@pytest.fixture
def saved(tmp_path):
    DatasetDict({"train": pictures(12), "test": pictures(5)}).save_to_disk(str(tmp_path / "pets"))
    films = {"train": range(10), "test": range(90, 96)}
    texts = {
        part: Dataset.from_dict({
            "review": [f"a {'good' if i % 2 else 'bad'} film, number {i}" for i in numbers],
            "grade": ["up" if i % 2 else "down" for i in numbers],
        })
        for part, numbers in films.items()
    }  # fmt: skip
    DatasetDict(texts).save_to_disk(str(tmp_path / "films"))
    return tmp_path


def test_images_of_a_saved_data_set_keep_their_pixels_and_labels(saved):
    options = hub.Options(repository="pets", image="img", label="what", image_size=9)
    source = hub.load(options, saved)
    assert source.x.dtype == np.uint8
    assert source.x.shape == (17, 3, 9, 9)
    assert np.bincount(source.part).tolist() == [12, 5]
    first = np.asarray(pictures(12)[0]["img"])
    assert np.array_equal(source.x[0], first.transpose(2, 0, 1))
    assert source.y[:4].tolist() == [0, 1, 0, 1]
    grey = hub.load(hub.Options(repository="pets", image="img", label="what", image_size=4, grey=True, most=6), saved)
    assert grey.x.shape == (11, 1, 4, 4)


def test_columns_that_are_not_named_are_found_by_their_types(saved):
    explicit = hub.load(hub.Options(repository="pets", image="img", label="what", image_size=9), saved)
    as_it_is = hub.load(hub.Options(repository="pets", image_size=9), saved)
    for field in ("x", "y", "part"):
        np.testing.assert_array_equal(getattr(as_it_is, field), getattr(explicit, field))
    explicit = hub.load(hub.Options(repository="films", text="review", label="grade", length=20, vocabulary=280), saved)
    as_it_is = hub.load(hub.Options(repository="films", label="grade", length=20, vocabulary=280), saved)
    np.testing.assert_array_equal(as_it_is.x, explicit.x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repository": "pets", "image": "picture"}, "no column 'picture'; it has img, what, note"),
        ({"repository": "pets", "image": "note", "label": "what"}, "row 1 of train: note is str, not an image"),
        (
            {"repository": "pets", "text": "note", "label": "what", "test": "validation"},
            "no split 'validation'; it has",
        ),
        ({"repository": "films", "text": "grade", "label": "review"}, "has no label"),
        ({"repository": "films"}, "the column with labels could be review, grade; name it"),
    ],
)
def test_what_the_data_set_does_not_hold_is_named(saved, options, message):
    with pytest.raises(ValueError, match=message):
        hub.load(hub.Options(**options), saved)


def test_a_name_that_is_nowhere_is_refused_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="nobody/nothing is neither a folder nor a data set that can be downloaded"):
        hub.load(hub.Options(repository="nobody/nothing", text="text"), tmp_path)
    with pytest.raises(ValueError, match="either image or text"):
        hub.Options(repository="a", image="x", text="y")
