"""Records as a file of a stage: who is listed, by what yardstick, with picture, text or values, and whose they are."""

import base64
import io
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from unlearning_audit.data._tokens import trained
from unlearning_audit.evaluation import records as lists
from unlearning_audit.evaluation.arrays import Data
from unlearning_audit.evaluation.reference import LOGP
from unlearning_audit.metrics import _contents
from unlearning_audit.store.files import ArtifactError


def data(x, **more):
    n = len(x)
    y = np.zeros(n, np.int64)
    return Data(x, y, np.zeros(n, np.uint8), y, np.arange(n), 2, **more)


def decoded(uri):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition("base64,")[2]))))


def test_contents_are_pictures_texts_and_values():
    grey = np.arange(64, dtype=np.float32).reshape(1, 64) / 63
    kind, uri = _contents.content(data(grey), 0)
    assert kind == "picture"
    np.testing.assert_array_equal(decoded(uri), np.round(grey.reshape(8, 8) * 255))
    colours = np.arange(48, dtype=np.uint8).reshape(1, 3, 4, 4)
    np.testing.assert_array_equal(decoded(_contents.content(data(colours), 0)[1]), colours[0].transpose(1, 2, 0))
    np.testing.assert_array_equal(decoded(_contents.picture(colours[0, :2])), colours[0, 0])
    four = np.concatenate([colours[0], colours[0, :1]])
    np.testing.assert_array_equal(decoded(_contents.picture(four)), colours[0].transpose(1, 2, 0))
    assert _contents.content(data(np.array([[1.5, -2.0]], np.float32)), 0) == ("values", "1.5, -2")
    words = Tokenizer(WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    tokenizer = np.frombuffer(words.to_str().encode(), np.uint8)
    x = np.array([[~1, 0, -1], [~0, ~0, 1]], np.int32)  # a token 0 before the scored ones is none of padding
    texts = [_contents.content(data(x, tokenizer=tokenizer), row) for row in (0, 1)]
    assert texts == [("text", "b a"), ("text", "a a b")]


def test_contents_are_cut_where_a_table_would_be_wide():
    def content(value, count):
        return _contents.content(data(np.full((1, count), value)), 0)

    assert [content(np.float32(0.5), count)[0] for count in (9, 16, 17)] == ["values", "picture", "values"]
    assert [content(1.5, count) for count in (64, 65)] == [
        ("values", ", ".join(["1.5"] * 64) + end) for end in ("", " …")
    ]
    texts = [content(np.int32(~1), count) for count in (1000, 1001)]  # one letter and a space for each
    assert [(kind, len(text)) for kind, text in texts] == [("text", 1999), ("text", 2000)]


STUDY = {"study": "s", "scenario": "a", "setting": "", "method": "none"}


def line(sample, p, recognised=1, person=np.nan, split=0):
    return {
        **STUDY, "pair": 0, "split": split, "models": 1, "sample": sample, "row": sample, "label": sample % 2,
        "person": person, "attack": "phi", "score": -p, "p": p, "recognised": recognised, "p_person": p,
        "person_recognised": recognised, "rate": 0.1, "yardstick": "heldout", "kind": "", "content": "",
        "beside": np.nan,
    }  # fmt: skip


def test_the_most_exposed_are_shown_once_and_the_file_reads_back(tmp_path):
    lines = [line(0, 0.2), line(1, 0.01), line(1, 0.02, split=1), line(2, 0.5, 0)]
    table = _contents.with_contents(lines, data(np.array([[1.0], [2.0], [3.0]], np.float32)), 2)
    assert [entry["content"] for entry in table] == ["1", "2", "", ""]
    path = tmp_path / "records.csv"
    lists.write(path, table, lists.UNION)
    summary = lists.exposed(path)["a", ""]["none"]
    assert (summary.looked, summary.recognised, summary.people, summary.classes) == (4, 3, None, {0: 1, 1: 2})
    assert summary.false == pytest.approx(0.3)
    assert [record["sample"] for record in summary.records] == [1, 0]
    path.write_text(path.read_text().replace("0.01", "much"))
    with pytest.raises(ArtifactError, match="could not convert string to float: '-much'"):
        lists.exposed(path)
    people = [line(0, 0.01, person=7), line(1, 0.02, person=7), line(2, 0.5, 0, person=8)]
    assert lists.summed(people).people == (1, 2), "people are counted once"


def test_beside_each_stands_the_most_familiar_unseen_record_of_its_label(tmp_path):
    """Even and odd samples have labels 0 and 1; only one unseen record has the label of two that are shown."""
    x = replace(data(np.arange(8.0, dtype=np.float32)[:, None]), y=np.arange(8) % 2)
    unseen = {(0, 0): _contents.Unseen(np.array([3, 4, 6]), np.array([0.9, 0.1, 0.4]))}
    forgotten = [line(1, 0.01), line(0, 0.02), line(5, 0.03), line(2, 0.5, 0)]
    more = [dict(one) for one in (*forgotten, line(7, 0.04))]
    assert len(_contents.with_contents(more, x, 4, unseen)) == 5 + 3  # none is left for the last
    table = _contents.with_contents(forgotten, x, 3, unseen)
    beside = [entry for entry in table if not lists.forgotten({"beside": np.nan, **entry})]
    expected = [(1, 3, 0.9), (0, 6, 0.4), (5, 4, 0.1)]
    assert [(entry["beside"], entry["sample"], entry["score"]) for entry in beside] == expected
    path = tmp_path / "records.csv"
    lists.write(path, [{**STUDY, **entry} for entry in table], lists.UNION)
    exposed = lists.exposed(path)["a", ""]["none"]
    assert (exposed.looked, exposed.recognised, [entry["sample"] for entry in exposed.records]) == (4, 3, [1, 0, 5])
    contents = {key: entry["content"] for key, entry in exposed.unseen.items()}
    assert contents == {(0, 0, 1): "3", (0, 0, 0): "6", (0, 0, 5): "4"}


def test_tokens_have_their_text_and_surprise():
    """A letter of two bytes is two tokens; the question is not scored; the first token is predicted from nothing."""
    tokenizer = trained(["b"], 257)
    x = np.array(tokenizer.encode("aqéa").ids, np.int32)
    assert len(x) == 5
    x[1] = ~x[1]
    text = data(np.append(x, -1)[None], tokenizer=np.frombuffer(tokenizer.to_str().encode(), np.uint8))
    kind, content = _contents.content(text, 0, np.array([1.25, 2.25, 3.25]))
    assert kind == "tokens"
    assert json.loads(content) == [["a", None], ["q", None], ["é", 2.25], ["a", 3.25]]


def test_the_surprise_of_tokens_is_a_mean_over_the_models_of_a_list():
    """Of five models the second and the third are audited in pair 3, split 1; padding has no surprise."""
    logp = np.array([[-9.0, -9], [-1, -2], [-3, -6], [-9, -9], [-9, -9]])
    reading_of = np.full((5, 2, 3, 4), np.nan)
    reading_of[:, 1, :2, LOGP] = logp
    case = SimpleNamespace(
        unlearned_files=["own"], target=np.array([False, True, True, True, True]),
        membership=SimpleNamespace(block=np.array([3, 3, 3, 3, 4]), split=np.array([1, 1, 1, 0, 1])),
        answers=lambda files: SimpleNamespace(of_signal=lambda name: SimpleNamespace(index=np.array([7, 8]))),
        signal=lambda name, files, models, samples: reading_of[models][:, samples - 7],
    )  # fmt: skip
    surprise = _contents.surprise(case)
    assert surprise((3, 1), 8).tolist() == [2, 4]
    assert surprise((3, 1), 9) is None, "nobody read its tokens"
    case.answers = lambda files: SimpleNamespace(of_signal=lambda name: None)
    assert _contents.surprise(case)((3, 1), 8) is None
