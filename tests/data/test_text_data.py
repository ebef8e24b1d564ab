"""Passages and sentences: what becomes a row, what is public, what is refused."""

import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit.data import _tokens, passages, prepare, sst5


@pytest.fixture(scope="module")
def reference():
    return passages.load(passages.Options(), Path())


def decoded(source):
    from tokenizers import Tokenizer

    return Tokenizer.from_str(source.tokenizer.tobytes().decode())


def test_the_reference_of_python_gives_enough_passages_of_whole_tokens(reference):
    x = reference.x
    assert x.dtype == np.int32
    assert len(x) > 2000
    assert len(reference.public) > 2000
    assert x.min() >= 1, "token 0 is padding, and there is none"
    assert x.max() < 512
    assert not reference.y.any()
    assert not reference.part.any()


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
    assert mostly_public(passages.load(passages.Options(), Path())) > 0.1, "or there would be nothing to drop"


def test_text_comes_back_from_tokens_and_its_size_after_compression_is_kept(reference):
    tokenizer = decoded(reference)
    texts = _tokens.texts(tokenizer, reference.x[:50])
    for row, text in zip(reference.x, texts, strict=False):
        assert tokenizer.decode(row.tolist()) == text
    assert reference.compressed[:50].tolist() == [len(zlib.compress(text.encode())) for text in texts]
    line = "Unseen: ünïcödé, 漢字 and\ttabs.\n"
    assert tokenizer.decode(tokenizer.encode(line).ids) == line


def test_the_same_options_give_the_same_passages_and_another_draw_other_ones(reference):
    again = passages.load(passages.Options(), Path())
    assert np.array_equal(again.x, reference.x)
    second = passages.load(passages.Options(draw=1), Path())
    assert not np.array_equal(second.x[:100], reference.x[:100])


def test_text_goes_through_the_choices_of_a_study(reference):
    subset = prepare(reference, seed=0, size=100, test_size=20)
    assert subset.x.shape == (120, 32)
    assert np.array_equal(subset.compressed, reference.compressed[subset.index])
    assert subset.public is reference.public


# ---------------------------------------------------------------- marks


def test_windows_drop_or_pad_what_is_left():
    rows = [np.arange(7, dtype=np.int32), np.arange(2, dtype=np.int32)]
    assert _tokens.windows(rows, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    expected = [[0, 1, 2], [3, 4, 5], [0, 1, -1]]
    assert _tokens.windows(rows, 3, shortest=2).tolist() == expected
    assert _tokens.windows([], 3).shape == (0, 3)


def test_only_the_last_tokens_are_scored_and_padding_never():
    x = np.array([[5, 6, 7, 8, 9], [5, 6, 7, -1, -1], [5, -1, -1, -1, -1]], np.int32)
    marked = _tokens.last_scored(x, 2)
    assert _tokens.scored(marked).tolist() == [
        [False, False, False, True, True], [False, True, True, False, False], [False] * 5,
    ]  # fmt: skip
    assert np.array_equal(_tokens.ids(marked), np.where(x == -1, 0, x))


# ---------------------------------------------------------------- corpora


def test_a_folder_of_texts_and_lines_of_json(tmp_path):
    words = [f"Document {i} speaks of {w}.\n\nShared paragraph.\n" for i, w in enumerate("abcdefghij")]
    (tmp_path / "one.txt").write_text(words[0] * 1)
    (tmp_path / "more.jsonl").write_text("".join(json.dumps({"text": w}) + "\n" for w in words[1:]))
    texts = passages.folder(tmp_path)
    assert texts == [*words[1:], words[0]]
    (unique,) = passages.without_repeats([texts])
    assert sum("Shared" in text for text in unique) == 1
    options = passages.Options(corpus="folder", path=".", length=8, shortest=3, scored=3, vocabulary=260)
    source = passages.load(options, tmp_path)
    assert source.x.shape[1] == 8
    assert (_tokens.scored(source.x).sum(1) <= 3).all()
    assert _tokens.scored(source.x).any(1).all()


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
        passages.load(passages.Options(corpus="folder", path="."), tmp_path)


def test_a_path_and_the_corpus_folder_belong_together():
    with pytest.raises(ValueError, match="give both or neither"):
        passages.Options(path="texts")
    with pytest.raises(ValueError, match="give both or neither"):
        passages.Options(corpus="folder")


@pytest.mark.parametrize("name", ["subset", "revision", "split", "text"])
def test_what_is_said_of_a_repository_is_refused_of_another_corpus(name):
    said = {name: "other"}
    assert getattr(passages.Options(corpus="hub", repository="a/b", **said), name) == "other"
    for corpus in ({}, {"corpus": "wikitext2"}, {"corpus": "folder", "path": "texts"}):
        with pytest.raises(ValueError, match=f"{name} has an effect with corpus: hub only, not with .*; leave it out"):
            passages.Options(**corpus, **said)


def test_wikitext_is_cut_into_articles_and_keeps_its_test_part(tmp_path):
    article = " \n = {} = \n \n Some text about {} . \n \n = = Section = = \n \n More on {} and the rest . \n"
    folder = tmp_path / "data" / "wikitext-2"
    folder.mkdir(parents=True)
    for part, names in (("train", "ABCDEFGH"), ("test", "XY")):
        (folder / f"wiki.{part}.tokens").write_text("".join(article.format(*[n * 3] * 3) for n in names))
    assert len(passages.articles((folder / "wiki.train.tokens").read_text())) == 8
    source = passages.load(passages.Options(corpus="wikitext2", length=6, vocabulary=260), tmp_path)
    text = "".join(_tokens.texts(decoded(source), source.x[source.part == 1]))
    assert "XXX" in text
    assert "AAA" not in text
    with pytest.raises(ValueError, match=r"wikitext-103.*is missing; set download"):
        passages.load(passages.Options(corpus="wikitext103"), tmp_path)


def test_a_data_set_is_fetched_by_datasets_into_the_files_that_are_read(tmp_path):
    place = tmp_path / "hub"
    place.mkdir()
    for part in ("train", "test"):
        lines = [json.dumps({"text": f" = {part} = \n"}), json.dumps({"text": f" words of {part} \n"})]
        (place / f"{part}.jsonl").write_text("\n".join(lines))
    files = [tmp_path / "out" / f"wiki.{part}.tokens" for part in ("train", "test")]
    passages.fetch(str(place), None, files)
    assert files[0].read_text() == " = train = \n words of train \n"
    assert files[1].read_text() == " = test = \n words of test \n"
    with pytest.raises(ValueError, match="could not be fetched"):
        passages.fetch(str(tmp_path / "nothing"), None, files)


def test_the_tokenizer_of_a_models_folder_is_used(tmp_path, reference):
    decoded(reference).save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("if and only if the expression is evaluated " * 4)
    (tmp_path / "text" / "b.txt").write_text("a statement is compound and the class is new " * 4)
    options = {"corpus": "folder", "path": "text", "length": 8}
    source = passages.load(passages.Options(**options, tokenizer="."), tmp_path)
    assert source.tokenizer.tobytes() == reference.tokenizer.tobytes()
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        passages.load(passages.Options(**options, tokenizer="text"), tmp_path)


# ---------------------------------------------------------------- SST-5


def write_sst5(folder, sizes, label="2"):
    (folder / "sst5").mkdir()
    for part, size in sizes.items():
        rows = [f"the {part} of film number {i} is {'good' if i % 2 else 'bad'} .\t{i % 5}" for i in range(size)]
        rows[0] = rows[0][:-1] + label
        (folder / "sst5" / f"{part}.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")


def test_sst5_keeps_its_split_its_labels_and_quotation_marks(tmp_path):
    write_sst5(tmp_path, sst5.SIZES)
    file = tmp_path / "sst5" / "train.tsv"
    file.write_text(file.read_text().replace("the train of film number 1 is", 'the " train of film number 1 is', 1))
    source = sst5.load(sst5.Options(data_dir=".", length=16, vocabulary=300), tmp_path)
    assert source.x.shape == (8544 + 2210, 16)
    assert (source.part == 1).sum() == 2210
    assert source.y[:6].tolist() == [2, 1, 2, 3, 4, 0]
    assert source.classes == 5
    text = _tokens.texts(decoded(source), source.x[[1]])[0]
    assert text.startswith('the " train')
    assert (source.x[:, -1] == -1).any()


def test_sst5_refuses_other_files(tmp_path):
    with pytest.raises(ValueError, match=r"train\.tsv cannot be read"):
        sst5.load(sst5.Options(data_dir="."), tmp_path)
    write_sst5(tmp_path, {**sst5.SIZES, "dev": 1100})
    with pytest.raises(ValueError, match=r"dev\.tsv holds 1100 sentences instead of 1101"):
        sst5.load(sst5.Options(data_dir="."), tmp_path)
    write_sst5(tmp_path / "sst5", sst5.SIZES, label="7")
    with pytest.raises(ValueError, match="line 2 is not a sentence"):
        sst5.load(sst5.Options(data_dir="sst5"), tmp_path)
