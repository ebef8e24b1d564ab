"""Passages of running text, for language models: the reference of Python's own language, WikiText, or a folder.

Documents are divided into public and private ones. The tokenizer and a base model learn from the public ones; models
are trained on passages of the private ones and have to forget some. Repeated paragraphs are dropped first.
"""

import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from unlearning_audit.data import Settings, Source, _files, _hub, _tokens
from unlearning_audit.evaluation.views import VIEWS
from unlearning_audit.randomness.keyed import generator

#: Corpus → its part of the names of WikiText's files, and its name on the hub of data sets.
WIKITEXT = {"wikitext2": ("wikitext-2", "wikitext-2-v1"), "wikitext103": ("wikitext-103", "wikitext-103-v1")}
REPOSITORY = "Salesforce/wikitext"

#: Options that select from a repository.
OF_HUB = ("subset", "revision", "split", "text")


class Options(Settings):
    """``corpus``: ``python_reference`` ships with Python (its text differs between versions of Python, and results
    depend on it); ``wikitext2`` and ``wikitext103`` lie in ``data_dir``, as ``wikitext-2/wiki.train.tokens`` and so on,
    or are downloaded into it (``download``); ``folder``: the .txt files (a document each) and .jsonl files (a document
    on each line, its field "text") of ``path``; ``hub``: the column ``text`` in the ``split`` of a ``repository`` (with
    ``subset`` and ``revision``) of the hub or, if a folder has that name, of a data set saved by the library datasets.

    ``length``: the number of tokens of a passage; the rest of a document is dropped or, from ``shortest`` tokens on,
    padded. ``scored``: how many tokens at the end of a passage count (None: all but the first). ``public``: the share
    of the text that is public; ``draw``: the number of the random choice of public documents. ``tokenizer``: a model's
    folder; without one, ``vocabulary`` tokens are learned from the public text. ``neighbours``: the number of views of
    each passage for the attack neighbourhood, in which the share ``changed`` of the scored tokens is replaced by random
    tokens of the public text.
    """

    corpus: Literal["python_reference", "wikitext2", "wikitext103", "folder", "hub"] = "python_reference"
    path: str | None = None
    repository: str | None = None
    subset: str | None = None
    revision: str | None = None
    split: str = "train"
    text: str = "text"
    data_dir: str = "data"
    download: bool = False
    length: int = Field(32, ge=2)
    shortest: int | None = Field(None, ge=2)
    scored: int | None = Field(None, ge=1)
    public: float = Field(0.55, gt=0, lt=1)
    draw: int = Field(0, ge=0)
    vocabulary: int = Field(512, ge=257)
    tokenizer: str | None = None
    neighbours: int = Field(0, ge=0)
    changed: float = Field(0.15, gt=0, le=1)

    @model_validator(mode="after")
    def _corpus_has_its_options(self) -> "Options":
        """Return the options. Raise ValueError unless those which belong to one corpus are given for it, and only for
        it."""
        if (self.corpus == "folder") != (self.path is not None):
            raise ValueError("path and corpus: folder belong together; give both or neither")
        if (self.corpus == "hub") != (self.repository is not None):
            raise ValueError("repository and corpus: hub belong together; give both or neither")
        own = type(self).model_fields
        of_hub = [name for name in OF_HUB if getattr(self, name) != own[name].default]
        if self.corpus != "hub" and of_hub:
            raise ValueError(f"{of_hub[0]} has an effect with corpus: hub only, not with {self.corpus}; leave it out")
        return self


def content(options: Options) -> list[Path]:
    """Return the files besides the options on which a result depends: the corpus, if it is Python's own or a folder
    saved by the library datasets, and the tokenizer."""
    from importlib.util import find_spec

    reference = find_spec("pydoc_data.topics") if options.corpus == "python_reference" else None
    return _tokens.existing_paths(reference.origin if reference else None, options.repository, options.tokenizer)


def load(options: Options, root: Path) -> Source:
    """Read tokens int32 [passages, length], all with label 0.

    The passages of the public text are the field ``public``; unless options name a tokenizer, it is learned from this
    text. Passages of the private text come first, in a random order and each once, then the passages of the test part,
    and last, if options request them, random variants of both, which are called views. Raises ValueError if there is
    too little text, or no scored token in a passage.
    """
    training, test = without_repeats([*documents(options, Path(root))])
    public, private = parted(training, options)
    tokenizer = _tokens.chosen(Path(root), options.tokenizer, public, options.vocabulary)

    def passages(texts: list[str]) -> np.ndarray:
        """Return the tokens of ``texts``, by the ``tokenizer`` of the function around this one, cut into passages:
        int32 [passages, length]."""
        return _tokens.windows(_tokens.encoded(tokenizer, texts), options.length, options.shortest)

    train, tested = np.unique(passages(private), axis=0), np.unique(passages(test), axis=0)
    if len(train) < 2:
        raise ValueError(f"length: {options.length} tokens leave {len(train)} passages; make it smaller or add text")
    train = train[generator("passages", options.draw).permutation(len(train))]
    x = np.concatenate([train, tested])
    if options.scored is not None:
        x = _tokens.last_scored(x, options.scored)
    if not _tokens.scored(x).any(1).all():
        raise ValueError("scored: some passages have no token that counts; make shortest or scored larger")
    part = np.repeat(np.array([0, 1], np.uint8), [len(train), len(tested)])
    public_passages = passages(public)
    fields: dict[str, Any] = {}
    if options.neighbours:
        if not (public_passages >= 0).any():
            raise ValueError(
                "neighbours: their tokens are drawn from the public text, which is shorter than a passage of "
                f"{options.length} tokens; make public larger or length smaller"
            )
        parent = np.repeat(np.arange(len(x)), options.neighbours)
        pool, rng = public_passages[public_passages >= 0], generator("neighbours", options.draw)
        views = _tokens.neighbours(x[parent], pool, options.changed, rng)
        fields["parent"] = np.concatenate([np.full(len(x), -1), parent])
        fields["view"] = np.repeat(np.array([0, VIEWS["neighbour"]], np.uint8), [len(x), len(views)])
        # Part 2 is that of views.
        x, part = np.concatenate([x, views]), np.concatenate([part, np.full(len(views), 2, np.uint8)])
    fields |= _tokens.source_fields(tokenizer, _tokens.texts(tokenizer, x))
    # The two classes are those of the logits (φ, 0) of language models. Label 0 is the text itself.
    return Source(x, np.zeros(len(x), np.int64), part, classes=2, public=public_passages, **fields)


def documents(options: Options, root: Path) -> tuple[list[str], list[str]]:
    """Return the texts of the training part and of the test part. Only WikiText has a test part; of any other corpus,
    it is empty.

    Blank texts of the hub are skipped. Raises ValueError that names the file or folder.
    """
    if options.corpus == "python_reference":
        from pydoc_data.topics import topics

        return [topics[name] for name in sorted(topics)], []
    if options.corpus == "folder":
        return folder(root / str(options.path)), []
    if options.corpus == "hub":
        rows = _hub.rows(root, str(options.repository), options.subset, options.revision, options.split, [options.text])
        texts = [row[options.text] for row in rows]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{options.repository}: the column {options.text!r} does not hold text")
        return [text for text in texts if text.strip()], []
    return wikitext(options, root)


def folder(path: Path) -> list[str]:
    """Return the documents of all .txt and .jsonl files below ``path``, in the order of their paths: a .txt file is
    one, a .jsonl file has one on each line. Raises ValueError if there is no such file."""
    files = sorted(file for file in path.rglob("*") if file.suffix in (".txt", ".jsonl") and file.is_file())
    if not files:
        raise ValueError(f"{path} holds no .txt or .jsonl file")
    texts_of_files = [[_files.text(file)] if file.suffix == ".txt" else _texts(file) for file in files]
    return [text for texts in texts_of_files for text in texts]


def _texts(file: Path) -> list[str]:
    """Return the texts in a .jsonl file. Raises ValueError that names the file and the line."""
    records = _files.json_lines(file)
    for number, record in records.items():
        if not isinstance(record, dict) or not isinstance(record.get("text"), str):
            raise ValueError(f'{file}: line {number} has no field "text" that holds text')
    return [record["text"] for record in records.values()]


def wikitext(options: Options, root: Path) -> tuple[list[str], list[str]]:
    """Return the articles of the training and of the test part. With ``options.download``, files that are missing are
    downloaded first. Raises ValueError if files are missing."""
    local_name, hub_name = WIKITEXT[options.corpus]
    parts = {part: root / options.data_dir / local_name / f"wiki.{part}.tokens" for part in ("train", "test")}
    for part, file in parts.items():
        if options.download and not file.is_file():
            # None: the newest version. The part is the split, of which the column text is read.
            lines = [row["text"] for row in _hub.rows(root, REPOSITORY, hub_name, None, part, ["text"])]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(lines), encoding="utf-8")
        if not file.is_file():
            raise ValueError(f"{file} is missing; set download: true, or put WikiText's files there")
    return articles(_files.text(parts["train"])), articles(_files.text(parts["test"]))


def articles(text: str) -> list[str]:
    """Return WikiText cut before each title of the first rank, `` = Title = ``: one text for each article, and one of
    what comes before the first title. Blank texts are left out."""
    lines_of_articles: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        title = line.strip()
        if title.startswith("= ") and title.endswith(" =") and not title.startswith("= ="):
            lines_of_articles.append([])
        lines_of_articles[-1].append(line)
    return ["".join(lines) for lines in lines_of_articles if "".join(lines).strip()]


def without_repeats(parts: list[list[str]]) -> list[list[str]]:
    """Return the documents of each of the ``parts`` with each paragraph (text between empty lines) only where it occurs
    first, in whatever part. Paragraphs that differ in white space alone are the same. Documents of which no paragraph
    remains are left out."""
    hashes: set[str] = set()
    unique: list[list[str]] = []
    for documents in parts:
        unique.append([])
        for text in documents:
            fresh = []
            for paragraph in re.split(r"\n[ \t]*\n", text):
                key = " ".join(paragraph.split())
                if key and key not in hashes:
                    hashes.add(key)
                    fresh.append(paragraph)
            if fresh:
                unique[-1].append("\n\n".join(fresh))
    return unique


def parted(documents: list[str], options: Options) -> tuple[list[str], list[str]]:
    """Divide the documents into public ones, from which tokens may be learned, and private ones, on which models are
    trained.

    In a random order, the first documents are public, as long as they have less than the share ``public`` of all
    characters. At least one document is public and at least one is private. Raises ValueError for fewer than two
    documents.
    """
    if len(documents) < 2:
        raise ValueError(f"the corpus has {len(documents)} document(s); a public and a private one are needed")
    order = generator("documents", options.draw).permutation(len(documents))
    ends = np.cumsum([len(documents[i]) for i in order])  # characters up to and with each document
    cut = int(np.clip(np.searchsorted(ends, options.public * ends[-1]), 1, len(order) - 1))
    return [documents[i] for i in order[:cut]], [documents[i] for i in order[cut:]]
