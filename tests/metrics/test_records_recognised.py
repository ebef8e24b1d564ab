"""Which forgotten samples, and whose, are still recognised, and with what content they are shown."""

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
from unlearning_audit.data import _tokens
from unlearning_audit.evaluation import records as lists
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.evaluation.shadow import LOGP
from unlearning_audit.metrics import _contents, records
from unlearning_audit.store.files import ArtifactError
from unlearning_audit.store.tables import write_rows

from ruli_cases import Folder, retrained, swapped_pairs, trained
from stat_cases import at_most


def members(forget, block=None) -> Membership:
    """Models that forgot some samples and never saw the others."""
    nothing = np.zeros(len(forget), np.int64)
    block = np.arange(len(forget)) if block is None else block
    return Membership(forget, forget, ~forget, np.arange(len(forget)), nothing, block, nothing > 0)


def evaluation_of(samples: int, subject=None):
    return SimpleNamespace(data=SimpleNamespace(index=np.arange(samples), y=np.zeros(samples, int), subject=subject))


def test_the_attack_of_a_pair_is_chosen_in_other_pairs():
    first, other = (SimpleNamespace(block=k, means="ab", leads={"a": 1 - k, "b": k}) for k in (0, 1))
    assert records._strongest_attack(first, [first, other]) == ("b", 1)


def test_models_that_forgot_nothing_are_recognised_and_retrained_ones_are_not(tmp_path):
    folder = Folder(tmp_path, swapped_pairs())
    original, anew = folder.add("original", trained), folder.add("retrained", retrained)
    whole, *pairs = records.rows(folder.evaluation(original, original), records.Options())
    assert whole.value > 0.5
    assert [row.pair for row in pairs] == [0, 1]
    assert whole.n == sum(row.n for row in pairs)
    assert whole.note.startswith(f"{round(whole.value * whole.n)} of {whole.n}; in such lists at most 10% are false")
    assert "samples" in whole.note
    assert not any("false" in row.note for row in pairs), "a part of a list has no rate of its own"
    none, *pairs = records.rows(folder.evaluation(original, anew), records.Options())
    assert none.value < 0.05
    assert sum(row.value > 0 for row in pairs) <= 1
    held = folder.evaluation(original, original, anew)
    alone = folder.evaluation(original, anew)
    for evaluation in (held, alone):  # nothing is held out to compare with
        evaluation.__dict__["membership"] = replace(held.membership, heldout=held.membership.heldout & False)
    assert records.rows(held, records.Options())[0].value > 0.5
    assert records.rows(alone, records.Options()) == []


def test_attacks_that_read_every_sample_of_both_sides_may_speak_and_the_control_may_not():
    forget, heldout = np.array([[True, False, False]]), np.array([[False, True, False]])
    whole, partly = np.array([[0.1, 0.2, np.nan]]), np.array([[np.nan, 0.2, 0.3]])
    named = {("confidence", ""): whole, ("random", ""): whole, ("shadow", "seen"): whole, ("kde", ""): partly}
    evaluation = SimpleNamespace(scores={key: (score, None) for key, score in named.items()})
    member = SimpleNamespace(forget=forget, heldout=heldout)
    assert list(records.usable_scores(evaluation, whole, member)) == ["phi", "confidence", "shadow/seen"]


@pytest.mark.parametrize(("pairs", "attack"), [(1, "phi"), (2, "confidence turned round")])
def test_the_attack_and_its_direction_are_chosen_in_other_splits(pairs, attack):
    """Where there are none, φ speaks as it is, although confidence tells both sides apart as well."""
    forget, rng = np.tile(np.arange(60) < 10, (pairs, 1)), np.random.default_rng(9)
    phi, confidence = (rng.random((pairs, 60)) + strength * forget for strength in (2 * (pairs == 1), -2))
    scores = {"phi": phi, "confidence": confidence}
    lines, _ = records.against_heldout(evaluation_of(60), members(forget), scores, rate=0.1)
    assert [line["attack"] for line in lines] == [attack] * 10 * pairs
    assert all(line["recognised"] for line in lines)


def test_a_list_of_many_splits_is_false_as_seldom_as_that_of_one():
    """Retrained models whose splits toss coins of their own: a list for each would be false in two audits of three."""
    audits, splits, samples, listed = 60, 8, 210, 0
    evaluation = evaluation_of(samples, np.arange(samples) // 2)
    for seed in range(audits):
        rng = np.random.default_rng(seed)
        forget = np.stack([rng.permutation(samples) < 10 for _ in range(splits)])
        scores = {"phi": rng.standard_normal((splits, samples))}
        lines, _ = records.against_heldout(evaluation, members(forget), scores, 0.1)
        listed += any(line["recognised"] or line["person_recognised"] for line in lines)
    assert listed / audits <= at_most(0.2, audits)  # of two lists, of samples and of people, each at most a tenth


@pytest.mark.parametrize(("marked", "end"), [(50, "48, 49"), (51, "48, 49 …")])
def test_fifty_recognised_samples_are_named(marked, end):
    line = {"pair": 0, "person_recognised": True}
    lines = [{**line, "sample": sample, "recognised": sample < marked} for sample in reversed(range(80))]
    (row,) = records.summary(lines, 0.2)
    false = "in such lists at most 20% are false, on average over audits"
    assert row.note.startswith(f"{marked} of 80; {false}: samples 0, 1, 2")
    assert row.note.endswith(end)
    assert (row.value, row.n) == (marked / 80, 80)
    (nobody,) = records.summary([{**line, "sample": 3, "recognised": False}], 0.2)
    assert nobody.note == f"0 of 1; {false}"
    assert records.summary([], 0.2) == []


def test_people_are_counted_once():
    lines = [
        {"pair": 0, "split": 0, "sample": n, "recognised": n < 3, "person": n // 2, "person_recognised": n < 4}
        for n in range(6)
    ]
    whole, people = records.summary(lines, 0.1)
    assert (whole.value, people.metric) == (0.5, "people_recognised")
    assert (people.value, people.n, people.note) == (2 / 3, 3, "2 of 3")


# ---------------------------------------------------------------- against retrained models


def test_models_that_forgot_a_part_of_a_set_did_not_forget_it():
    forget = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], bool)
    phi, others = np.array([[3.0, 5.0, 0.0, 0.0], [7.0, 0.0, 0.0, 0.0]]), np.random.default_rng(0).normal(size=(6, 4))
    how = {"retrained": others, "training": np.zeros((6, 4), bool), "rate": 0.1}
    lines = records.against_retrained(evaluation_of(4), members(forget), phi, **how)
    assert {(line["sample"], line["models"], line["score"]) for line in lines} == {(0, 1, 3), (1, 1, 5), (0, 1, 7)}


@pytest.mark.parametrize(
    ("others", "halves"), [([0, 1, 3, 4], {0, 1}), ([0, 3], set()), ([0, 1, 3], {0}), ([0, 3, 4], {1})]
)
def test_only_two_retrained_models_that_never_saw_the_forget_set_speak_for_it(others, halves):
    """Two splits forget a half of the samples each; what one forgets the other's retrained models were trained on."""
    rng = np.random.default_rng(4)
    forget = np.repeat(np.stack([np.arange(200) < 100, np.arange(200) >= 100]), 3, axis=0)
    noise = rng.standard_normal(200) + rng.standard_normal((2, 6, 200))
    phi, retrained_phi = noise[0] + 6, noise[1] + 6 * ~forget
    how = {"retrained": retrained_phi[others], "training": ~forget[others], "rate": 0.1}
    lines = records.against_retrained(evaluation_of(200), members(forget, np.zeros(6, int)), phi, **how)
    assert {line["sample"] // 100 for line in lines} == halves
    assert not lines or np.mean([line["recognised"] for line in lines]) > 0.9
    assert {line["yardstick"] for line in lines} <= {"retrain"}


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
    assert [content(np.float32(value), 16)[0] for value in (-0.5, 1.5)] == ["values", "values"]
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
    write_rows(path, table, lists.UNION)
    summary = lists.summaries(lists.read(path, lists.UNION))["a", ""]["none"]
    assert (summary.looked, summary.recognised, summary.people, summary.classes) == (4, 3, None, {0: 1, 1: 2})
    assert summary.false == pytest.approx(0.3)
    assert [record["sample"] for record in summary.records] == [1, 0]
    path.write_text(path.read_text().replace("0.01", "much"))
    with pytest.raises(ArtifactError, match="could not convert string to float: '-much'"):
        lists.summaries(lists.read(path, lists.UNION))
    people = [line(0, 0.01, person=7), line(1, 0.02, person=7), line(2, 0.5, 0, person=8)]
    assert lists.summary(people).people == (1, 2), "people are counted once"


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
    write_rows(path, [{**STUDY, **entry} for entry in table], lists.UNION)
    exposed = lists.summaries(lists.read(path, lists.UNION))["a", ""]["none"]
    assert (exposed.looked, exposed.recognised, [entry["sample"] for entry in exposed.records]) == (4, 3, [1, 0, 5])
    contents = {key: entry["content"] for key, entry in exposed.unseen.items()}
    assert contents == {(0, 0, 1): "3", (0, 0, 0): "6", (0, 0, 5): "4"}


def test_tokens_have_their_text_and_surprise():
    """A letter of two bytes is two tokens; the question is not scored; the first token is predicted from nothing."""
    tokenizer = _tokens.trained(["b"], 257)
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
    evaluation = SimpleNamespace(
        unlearned_files=["own"], target=np.array([False, True, True, True, True]),
        membership=SimpleNamespace(block=np.array([3, 3, 3, 3, 4]), split=np.array([1, 1, 1, 0, 1])),
        outputs=lambda files: SimpleNamespace(of_signal=lambda name: SimpleNamespace(index=np.array([7, 8]))),
        signal=lambda name, files, models, samples: reading_of[models][:, samples - 7],
    )  # fmt: skip
    surprise = _contents.surprise(evaluation)
    assert surprise((3, 1), 8).tolist() == [2, 4]
    assert surprise((3, 1), 9) is None, "nobody read its tokens"
    evaluation.outputs = lambda files: SimpleNamespace(of_signal=lambda name: None)
    assert _contents.surprise(evaluation)((3, 1), 8) is None
