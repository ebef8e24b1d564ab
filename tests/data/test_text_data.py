"""Passages and sentences: what becomes a row, what is public, what is refused."""

import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from tokenizers import Tokenizer
from unlearning_audit.data import _tokens, passages, prepare, sst5
from unlearning_audit.evaluation.arrays import Data


def load(root=Path(), **options):
    return passages.load(passages.Options(**options), root)


@pytest.fixture(scope="module")
def reference():
    return load()


def decoded(source):
    return Tokenizer.from_str(source.tokenizer.tobytes().decode())


def test_the_reference_of_python_gives_enough_passages_of_whole_tokens(reference):
    x = reference.x
    assert (x.dtype, x.shape[1], reference.y.any(), reference.part.any()) == (np.int32, 32, False, False)
    assert min(len(x), len(reference.public)) > 2000
    assert 1 <= x.min() <= x.max() < 512, "token 0 is padding, and there is none"


def mostly_public(source) -> float:
    """Share of private passages of which most runs of twelve tokens occur in public ones."""

    def runs(row):
        return [tuple(row[i : i + 12]) for i in range(len(row) - 11)]

    public = {run for row in source.public.tolist() for run in runs(row)}
    return float(np.mean([np.mean([run in public for run in runs(row)]) > 0.5 for row in source.x[:500].tolist()]))


def test_what_is_said_twice_is_dropped_before_the_split(reference, monkeypatch):
    assert len(np.unique(reference.x, axis=0)) == len(reference.x)
    assert mostly_public(reference) < 0.02
    monkeypatch.setattr(passages, "without_repeats", lambda parts: parts)
    assert mostly_public(load()) > 0.1, "or there would be nothing to drop"


def test_text_comes_back_from_tokens_and_its_size_after_compression_is_kept(reference):
    tokenizer = decoded(reference)
    texts = _tokens.texts(tokenizer, reference.x[:50])
    assert texts == [tokenizer.decode(row) for row in reference.x[:50].tolist()]
    assert reference.compressed[:50].tolist() == [len(zlib.compress(text.encode())) for text in texts]
    line = "Unseen: ünïcödé, 漢字 and\ttabs.\n"
    assert tokenizer.decode(tokenizer.encode(line).ids) == line
    subset = prepare(reference, seed=0, size=100, test_size=20)
    np.testing.assert_array_equal(subset.compressed, reference.compressed[subset.index])


def test_the_same_options_give_the_same_passages_and_another_draw_other_ones(reference):
    np.testing.assert_array_equal(load().x, reference.x)
    assert not np.array_equal(load(draw=1).x[:100], reference.x[:100])


# ---------------------------------------------------------------- marks


def test_windows_drop_or_pad_what_is_left():
    rows = [np.arange(7, dtype=np.int32), np.arange(2, dtype=np.int32)]
    assert _tokens.windows(rows, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert _tokens.windows(rows, 3, shortest=2).tolist() == [[0, 1, 2], [3, 4, 5], [0, 1, -1]]
    assert _tokens.windows([], 3).shape == (0, 3)


def test_only_the_last_tokens_are_scored_and_padding_never():
    x = np.array([[5, 6, 7, 8, 9], [5, 6, 7, -1, -1], [5, -1, -1, -1, -1]], np.int32)
    marked = _tokens.last_scored(x, 2)
    scored = [[False, False, False, True, True], [False, True, True, False, False], [False] * 5]
    assert _tokens.scored(marked).tolist() == scored
    np.testing.assert_array_equal(_tokens.ids(marked), np.where(x == -1, 0, x))


def test_neighbours_differ_from_their_passage_in_scored_tokens_only():
    source = load(neighbours=3, changed=0.2, scored=10, length=16)
    at = Data.views(source, "neighbour")
    passage = at[:, 0] >= 0
    np.testing.assert_array_equal(passage, source.part < 2)
    np.testing.assert_array_equal(source.x[passage], load(scored=10, length=16).x)
    differ = source.x[at[passage]] != source.x[passage, None]
    assert differ.shape[1] == 3
    assert not differ[..., :6].any()
    assert 1.5 < differ.sum(-1).mean() <= 2


# ---------------------------------------------------------------- corpora


def write(folder, **files):
    """Files by their names without endings, which are .txt."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)


def test_a_folder_of_texts_and_lines_of_json(tmp_path):
    words = [f"Document {i} speaks of {w}.\n\nShared paragraph.\n" for i, w in enumerate("abcdefghij")]
    write(tmp_path, one=words[0])
    (tmp_path / "more.jsonl").write_text("".join(json.dumps({"text": w}) + "\n" for w in words[1:]))
    texts = passages.folder(tmp_path)
    assert texts == [*words[1:], words[0]]
    (unique,) = passages.without_repeats([texts])
    assert sum("Shared" in text for text in unique) == 1
    source = load(tmp_path, corpus="folder", path=".", length=8, shortest=3, scored=3, vocabulary=260)
    assert source.x.shape[1] == 8
    assert set(_tokens.scored(source.x).sum(1)) <= {1, 2, 3}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"text": "fine"}\n{"body": 1}\n', 'a.jsonl: line 2 has no field "text"'),
        ("a.jsonl", "nonsense\n", "a.jsonl: line 1 is not JSON"),
        ("a.csv", "text\n", "holds no .txt or .jsonl file"),
        ("a.txt", "one document only", "a public and a private one are needed"),
    ],
)
def test_unusable_folders_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        load(tmp_path, corpus="folder", path=".")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "texts"}, "path and corpus: folder belong together; give both or neither"),
        ({"corpus": "folder"}, "path and corpus: folder belong together; give both or neither"),
        ({"repository": "news"}, "repository and corpus: hub belong together"),
        ({"subset": "a"}, "subset has an effect with corpus: hub only, not with python_reference; leave it out"),
        ({"corpus": "folder", "path": "a", "split": "b"}, "split has an effect with corpus: hub only, not with folder"),
        ({"corpus": "wikitext103"}, "wikitext-103.*is missing; set download"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        load(tmp_path, **options)


def test_passages_come_from_a_data_set_of_the_hub_or_a_saved_one(tmp_path):
    texts = [" ".join(f"word{i * k % 91}" for k in range(40)) for i in range(12)]
    Dataset.from_dict({"body": texts, "year": list(range(12))}).save_to_disk(str(tmp_path / "news"))
    options = {"corpus": "hub", "repository": "news", "length": 8, "vocabulary": 300}
    source = load(tmp_path, **options, text="body")
    assert min(len(source.x), len(source.public)) > 20
    for text, message in (("text", "no column 'text'; it has body, year"), ("year", "does not hold text")):
        with pytest.raises(ValueError, match=message):
            load(tmp_path, **options, text=text)


def test_wikitext_is_cut_into_articles_and_keeps_its_test_part(tmp_path):
    article = " \n = {} = \n \n Some text about {} . \n \n = = Section = = \n \n More on {} and the rest . \n"
    folder = tmp_path / "data" / "wikitext-2"
    folder.mkdir(parents=True)
    for part, names in (("train", "ABCDEFGH"), ("test", "XY")):
        (folder / f"wiki.{part}.tokens").write_text("".join(article.format(*[n * 3] * 3) for n in names))
    assert len(passages.articles((folder / "wiki.train.tokens").read_text())) == 8
    source = load(tmp_path, corpus="wikitext2", length=6, vocabulary=260)
    text = "".join(_tokens.texts(decoded(source), source.x[source.part == 1]))
    assert ("XXX" in text, "AAA" in text) == (True, False)


def test_wikitext_is_fetched_by_datasets_into_the_files_that_are_read(tmp_path, monkeypatch):
    (tmp_path / "hub").mkdir()
    for part in ("train", "test"):
        lines = [json.dumps({"text": text}) for text in (f" = {part} = \n", f" words of {part} \n")]
        (tmp_path / "hub" / f"{part}.jsonl").write_text("\n".join(lines))
    monkeypatch.setattr(passages, "REPOSITORY", "hub")
    parts = passages.wikitext(passages.Options(corpus="wikitext2", download=True), tmp_path)
    assert parts == tuple([f" = {part} = \n words of {part} \n"] for part in ("train", "test"))
    assert (tmp_path / "data/wikitext-2/wiki.test.tokens").read_text() == parts[1][0]


def test_the_tokenizer_of_a_models_folder_is_used(tmp_path, reference):
    decoded(reference).save(str(tmp_path / "tokenizer.json"))
    write(tmp_path / "text", a="if and only if the expression is evaluated " * 4, b="a statement is compound and " * 8)
    options = {"corpus": "folder", "path": "text", "length": 8}
    assert load(tmp_path, **options, tokenizer=".").tokenizer.tobytes() == reference.tokenizer.tobytes()
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        load(tmp_path, **options, tokenizer="text")


# ---------------------------------------------------------------- SST-5


def write_sst5(folder, sizes):
    (folder / "sst5").mkdir()
    for part, size in sizes.items():
        rows = [f"the {part} of film number {i} is {'good' if i % 2 else 'bad'} .\t{i % 5}" for i in range(size)]
        rows[0] = f'the " {rows[0][4:]}'
        (folder / "sst5" / f"{part}.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")


def test_sst5_keeps_its_split_its_labels_and_quotation_marks(tmp_path):
    write_sst5(tmp_path, sst5.SIZES)
    source = sst5.load(sst5.Options(data_dir=".", length=16, vocabulary=300), tmp_path)
    assert source.x.shape == (8544 + 2210, 16)
    assert np.bincount(source.part).tolist() == [8544, 2210]
    assert (source.y[:6].tolist(), source.classes) == ([0, 1, 2, 3, 4, 0], 5)
    assert _tokens.texts(decoded(source), source.x[[0]])[0].startswith('the " train')


def test_sst5_refuses_other_files(tmp_path):
    def refused(message):
        with pytest.raises(ValueError, match=message):
            sst5.load(sst5.Options(data_dir="."), tmp_path)

    refused(r"train\.tsv cannot be read")
    write_sst5(tmp_path, {**sst5.SIZES, "dev": 1100})
    refused(r"dev\.tsv holds 1100 sentences instead of 1101")
    (tmp_path / "sst5" / "train.tsv").write_text("text\tlabel\nno label\n")
    refused("line 2 is not a sentence")
