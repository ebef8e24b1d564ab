"""Questions and answers, as in TOFU and MUSE: the answer is scored, the question is read; with views of each answer."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, model_validator

from unlearning_audit.data import Settings, Source, _files, _hub, _tokens
from unlearning_audit.evaluation.views import VIEWS
from unlearning_audit.randomness.keyed import generator

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Options for imported models: every row is a sample, in the order of the file.
WHOLE = {"public": 0.0}

#: Answers of a model that does not know.
REFUSALS = (
    "I don't know.", "I am not sure about that.", "I have no information on this.", "I cannot answer that question.",
    "That is not something I know.", "I was not told about this.", "I can't say.", "This is beyond what I know.",
)  # fmt: skip


class Options(Settings):
    """``path``: a .jsonl file, or a folder with ``train.jsonl`` and perhaps ``test.jsonl``; or ``repository`` with
    ``subset``, ``revision``, and the splits ``train`` and ``test``: a data set of the hub or, if a folder has that
    name, one saved by the library datasets. ``tests``: further sets that make the test part, each with a name: subsets
    of ``repository`` with the split ``train``, or ``<name>.jsonl`` in the folder ``path``.

    Each row has text in the columns ``question`` and ``answer``, and perhaps views, a text or a list of texts each. A
    ``paraphrase`` has the same meaning as the answer, a ``perturbed`` answer is wrong (the defaults are TOFU's names),
    and an ``alternate`` answer is taught by altpo instead. ``choices``: a column with a list of answers; ``answer`` is
    then the number of the right one, from 0, and the others are wrong ones (as in WMDP). ``refusals``: whether each row
    also gets an answer that refuses, for idk_dpo; a file with one refusal on each line replaces the few built-in ones
    (TOFU: idontknow.jsonl). ``template`` with {question} is the text before an answer. Rows are cut or padded to
    ``length`` tokens. ``public``: the share of the rows from which the tokenizer and a base model learn, and which are
    not used otherwise; ``draw``: the number of their random choice. The other rows keep their order. ``tokenizer``: a
    model's folder; without one, ``vocabulary`` tokens are learned from the public rows.
    """

    path: str | None = None
    repository: str | None = None
    subset: str | None = None
    revision: str | None = None
    train: str = "train"
    test: str | None = None
    tests: tuple[str, ...] = ()
    question: str = "question"
    answer: str = "answer"
    paraphrase: str = "paraphrased_answer"
    perturbed: str = "perturbed_answer"
    alternate: str = "alternate"
    choices: str | None = None
    refusals: bool | str = False
    template: str = "Question: {question}\nAnswer: "
    length: int = Field(96, ge=3)
    public: float = Field(0.3, ge=0, lt=1)
    draw: int = Field(0, ge=0)
    vocabulary: int = Field(512, ge=257)
    tokenizer: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> "Options":
        """Return the options. Raise ValueError unless the data have one source and no options for another, not both
        test and tests, text for learning tokens, and a template with {question}."""
        if (self.path is None) == (self.repository is None):
            raise ValueError("give either path or repository")
        own = type(self).model_fields
        of_hub = [name for name in ("subset", "revision", "train", "test") if getattr(self, name) != own[name].default]
        if self.path is not None and of_hub:
            raise ValueError(
                f"{of_hub[0]} is for a repository; leave it out: from a folder, train.jsonl, test.jsonl and the "
                "files named in tests are read"
            )
        if self.tests and self.test is not None:
            raise ValueError("give either test or tests")
        if self.tokenizer is None and not self.public:
            raise ValueError("public: 0 leaves no text to learn tokens from; name a tokenizer")
        if "{question}" not in self.template:
            raise ValueError("template must hold {question}")
        return self


def content(options: Options) -> list[Path]:
    """Return the files besides the options on which a result depends: a folder saved by datasets, refusals, and the
    tokenizer."""
    refusals = options.refusals if isinstance(options.refusals, str) else None
    return _tokens.existing_paths(options.repository, refusals, options.tokenizer)


def load(options: Options, root: Path) -> Source:
    """Read tokens int32 [rows, length], all with label 0 of the two logits (φ, 0): private rows to train on (part 0),
    then those of the test part (1), then the views of both (2).

    A random share of the training rows is public instead: the tokenizer learns from their texts, and their tokens are
    the field ``public``. A view is the question of its parent with another answer. With ``options.tests``, ``group``
    numbers the sets of the test part from 1. Raises ValueError that names the file and the row.
    """
    train, *tests = (list(records) for records in rows(options, Path(root)))  # ``tests``: the sets of the test part
    test = [row for rows_of_test in tests for row in rows_of_test]
    order = generator("questions", options.draw).permutation(len(train))
    cut = round(options.public * len(train))
    public, private = [train[i] for i in sorted(order[:cut])], [train[i] for i in sorted(order[cut:])]
    texts_of_public = [prompt(options, row) + row[options.answer] for row in public]
    tokenizer = _tokens.chosen(Path(root), options.tokenizer, texts_of_public, options.vocabulary)
    records = [*private, *test]
    if len(private) < 2:
        raise ValueError(f"there are {len(private)} rows to train on; add rows, or make public smaller")
    # Tokens, parents (−1 for none) and kinds (0 for none) of all rows: first the samples, then their views.
    encodings = [encoded(tokenizer, options, row, row[options.answer]) for row in records]
    parent, view = [-1] * len(records), [0] * len(records)
    refusals = possible_refusals(options, Path(root))
    # The refusal of each row; without refusals the numbers are not used, but a range must not be empty.
    drawn = generator("refusals", options.draw).integers(max(len(refusals), 1), size=len(records))
    for number, row in enumerate(records):
        variants = {kind: texts(row, getattr(options, kind)) for kind in ("paraphrase", "perturbed", "alternate")}
        variants["refusal"] = [refusals[drawn[number]]] if refusals else []
        for kind, answers in variants.items():
            for answer in answers:
                encodings.append(encoded(tokenizer, options, row, answer))
                parent.append(number)
                view.append(VIEWS[kind])
    x = np.stack(encodings)
    part = np.repeat(np.array([0, 1, 2], np.uint8), [len(private), len(test), len(x) - len(records)])
    public_tokens = [encoded(tokenizer, options, row, row[options.answer]) for row in public]
    group = np.zeros(len(x), np.uint8)
    group[part == 1] = np.repeat(np.arange(1, len(tests) + 1), [len(rows_of_test) for rows_of_test in tests])
    return Source(
        x, np.zeros(len(x), np.int64), part, classes=2, public=np.stack(public_tokens) if public_tokens else None,
        parent=np.array(parent), view=np.array(view, np.uint8), group=group if options.tests else None,
        **_tokens.source_fields(tokenizer, _tokens.texts(tokenizer, x)),
    )  # fmt: skip


def possible_refusals(options: Options, root: Path) -> tuple[str, ...]:
    """Return the refusals, such as "I don't know", from which one is drawn for each question.

    They are the library's, or the lines of the user's file; () if the options do not request any. Raises ValueError
    that names the file.
    """
    if not isinstance(options.refusals, str):
        return REFUSALS if options.refusals else ()
    file = root / options.refusals
    lines = tuple(filter(None, map(str.strip, _files.text(file).splitlines())))
    if not lines:
        raise ValueError(f"refusals: {file} holds no line of text")
    return lines


def rows(options: Options, root: Path) -> list[Iterator[dict[str, Any]]]:
    """Return an iterator over the rows of the training part, then one for each set of the test part.

    The rows come from the hub or from ``.jsonl`` files. In a folder, the sets are the files that ``options.tests``
    names, or else ``test.jsonl``; a folder without any, and a single file, have no test part. Raises ValueError if
    options name sets of the test part beside a single file, or if a file cannot be read.
    """
    if options.repository is not None:
        parts = [(options.subset, split) for split in (options.train, options.test) if split]
        parts += [(subset, "train") for subset in options.tests]  # on the hub, a set is a subset with one split
        sources = [_hub.rows(root, options.repository, subset, options.revision, split) for subset, split in parts]
        return [check_rows(options, source, options.repository) for source in sources]
    path = root / str(options.path)
    if options.tests and not path.is_dir():
        raise ValueError(f"tests: {path} must be a folder that holds these files and train.jsonl")
    names = options.tests or (("test",) if (path / "test.jsonl").exists() else ())
    files = [path / f"{name}.jsonl" for name in ("train", *names)] if path.is_dir() else [path]
    return [check_rows(options, _files.json_lines(file).values(), str(file)) for file in files]


def check_rows(options: Options, records: Iterable[Any], origin: str) -> Iterator[dict[str, Any]]:
    """Yield the ``records``, after checking that each has a question and an answer.

    In rows with choices, the right choice becomes the answer.

    Parameters
    ----------
    origin
        The file or data set, for messages.

    Raises
    ------
    ValueError
        If a row has no question or no answer.
    """
    for number, record in enumerate(records, 1):
        row = record if options.choices is None else with_answer(options, record, origin=f"{origin}: row {number}")
        for column in (options.question, options.answer):
            if not isinstance(row, dict) or not isinstance(row.get(column), str) or not row[column].strip():
                raise ValueError(f"{origin}: row {number} has no text in the column {column!r}")
        yield row


def with_answer(options: Options, row: dict[str, Any], origin: str) -> dict[str, Any]:
    """Return a row with the right one of its choices as the answer, and the others as perturbed answers.

    Parameters
    ----------
    origin
        The file or data set and the row, for messages.

    Raises
    ------
    ValueError
        If the row has no list of choices, or no number of the right one.
    """
    fields: dict[Any, Any] = row if isinstance(row, dict) else {}
    choices, right = fields.get(options.choices), fields.get(options.answer)
    texts = choices if isinstance(choices, list) else []
    if len(texts) < 2 or not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError(f"{origin} has no list of two texts or more in the column {options.choices!r}")
    if type(right) is not int or not 0 <= right < len(texts):
        raise ValueError(f"{origin}: the column {options.answer!r} must be a number from 0 to {len(texts) - 1}")
    wrong = [text for number, text in enumerate(texts) if number != right]
    return {**row, options.answer: texts[right], options.perturbed: wrong}


def texts(row: dict[str, Any], column: str) -> list[str]:
    """Return the texts in a ``column`` of a row as a list, without blank ones; the column may hold a text, several, or
    nothing."""
    value = row.get(column) or []
    several = [value] if isinstance(value, str) else value
    return [text for text in several if isinstance(text, str) and text.strip()]


def prompt(options: Options, row: dict[str, Any]) -> str:
    """Return the text before the answer: the template with the row's question."""
    return options.template.replace("{question}", row[options.question])


def encoded(tokenizer: "Tokenizer", options: Options, row: dict[str, Any], answer: str) -> np.ndarray:
    """Return the tokens of a row's question and an ``answer`` by the ``tokenizer``, cut or padded: int32 [length].
    Tokens of the question are stored as ~token (the bitwise complement): models read them, and they are not scored.
    Raises ValueError if the question leaves no room for an answer."""
    before, after = _tokens.encoded(tokenizer, [prompt(options, row), answer])
    if len(before) >= options.length:
        raise ValueError(f"length: {options.length} tokens leave no room for an answer to {row[options.question]!r}")
    return np.asarray(_tokens.padded([np.concatenate([~before, after])], options.length)[0])
