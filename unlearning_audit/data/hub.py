"""Any data set of images or of texts with labels: of the hub, or a folder that the library datasets saves or loads."""

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from unlearning_audit.data import Settings, Source, _hub, _pictures, _tokens

#: Types of columns of texts.
TEXT = ("string", "large_string")


class Options(Settings):
    """``repository``: its name on the hub or, if a folder has that name, one written by ``save_to_disk`` or with files
    that ``load_dataset`` knows: csv, JSON lines, parquet, or pictures in a folder for each class; ``subset``;
    ``revision`` (name one, since a later version of the data is another data set); and the splits ``train`` and
    ``test``, if there is one.

    Columns that are not named are found: the one with class labels, or ``label``; the one with images, or with texts.
    ``label``: the column with labels, numbers or names. ``image``: a column of images, which become ``image_size`` ×
    ``image_size`` pixels. ``text``, instead of ``image``: a column of texts, cut or padded to ``length`` tokens.
    ``tokenizer``: a model's folder; without one, ``vocabulary`` tokens are learned from the test split, which is then
    used only for tests. ``most``: the number of rows of each split to read, from the first on.
    """

    repository: str
    subset: str | None = None
    revision: str | None = None
    train: str = "train"
    test: str | None = "test"
    label: str | None = None
    image: str | None = None
    text: str | None = None
    image_size: int = Field(32, ge=1)
    length: int = Field(48, ge=2)
    vocabulary: int = Field(2048, ge=257)
    tokenizer: str | None = None
    most: int | None = Field(None, ge=2)

    @model_validator(mode="after")
    def _one_kind(self) -> "Options":
        """Return the options. Raise ValueError unless models read either images or texts, and there are texts from
        which tokens can be learned."""
        if self.image is not None and self.text is not None:
            raise ValueError("give either image or text, the column that models read")
        if self.text and self.tokenizer is None and self.test is None:
            raise ValueError("without a test split there is no text to learn tokens from; name a tokenizer")
        return self


def content(options: Options) -> list[Path]:
    """Return the files besides the options on which a result depends: a saved folder and the tokenizer, if they are
    paths that exist."""
    return _tokens.existing_paths(options.repository, options.tokenizer)


def load(options: Options, root: Path) -> Source:
    """Read images uint8 [n, 3, image_size, image_size], or texts int32 [n, length].

    Labels are numbered in the order of their names or numbers in the training part. Raises ValueError that names the
    column and the row.
    """
    options = with_columns(options, Path(root))
    # The inputs and labels of the training part and, if it is named, of the test part.
    parts = [read(options, Path(root), split) for split in (options.train, options.test) if split]
    classes = sorted(set(parts[0][1]))  # the labels of the training part
    numbers = {label: number for number, label in enumerate(classes)}
    unknown = sorted({label for _, labels in parts for label in labels} - set(numbers))
    if unknown:
        raise ValueError(f"{options.label}: the training part has no label {unknown[0]!r}, which the test part has")
    y = np.array([numbers[label] for _, labels in parts for label in labels], np.int64)
    part = np.repeat(np.arange(len(parts), dtype=np.uint8), [len(labels) for _, labels in parts])
    if options.image:
        return Source(np.concatenate([np.stack(values) for values, _ in parts]), y, part, len(classes))
    # Without a tokenizer of a model, tokens are learned from the last part, the test part.
    tokenizer = _tokens.chosen(Path(root), options.tokenizer, parts[-1][0], options.vocabulary)
    corpus = [text for texts, _ in parts for text in texts]
    x = _tokens.padded(_tokens.encoded(tokenizer, corpus), options.length)
    return Source(x, y, part, len(classes), **_tokens.source_fields(tokenizer, corpus))


def with_columns(options: Options, root: Path) -> Options:
    """Return the options with the names of those columns filled in that the user left open: the column of labels, and
    that of images or texts.

    Columns are found by the types that the data set declares. If no column has the type of classes, a column named
    label is taken for the labels. Raises ValueError that names the columns if several fit, or none.
    """
    if options.label is not None and (options.image or options.text):
        return options
    opened = _hub.opened(root, options.repository, options.subset, options.revision, options.train)
    kinds = {name: type(kind).__name__ for name, kind in (opened.features or {}).items()}
    texts = [name for name, kind in (opened.features or {}).items() if getattr(kind, "dtype", "") in TEXT]

    def only(role: str, names: list[str]) -> str:
        """Return the only one of ``names``, the columns that may hold the ``role``. Raises ValueError for none or
        several."""
        if len(names) != 1:
            candidates = ", ".join(names or kinds) or "any column, because their types are not declared"
            raise ValueError(f"{options.repository}: the column with {role} could be {candidates}; name it")
        return names[0]

    classes = [name for name, kind in kinds.items() if kind == "ClassLabel"]
    named_label = ["label"] if "label" in kinds or not kinds else []  # where no types are declared, it may be there
    label = options.label or only("labels", classes or named_label)
    fields = {"label": label}
    if not (options.image or options.text):
        images = [name for name, kind in kinds.items() if kind == "Image"]
        role = "image" if images else "text"
        fields[role] = only(f"{role}s", images or [name for name in texts if name != label])
    return Options(**{**options.model_dump(), **fields})


def read(options: Options, root: Path, split: str) -> tuple[list[Any], list[Any]]:
    """Return the inputs and the labels of the first ``options.most`` rows (None: all) of a ``split``. Inputs are texts,
    or images uint8 [3, image_size, image_size]. Raises ValueError that names the row or the column, or if there are
    fewer than two rows or labels of two types."""
    column, of_label = str(options.image or options.text), str(options.label)
    values, labels = [], []
    rows = _hub.rows(root, options.repository, options.subset, options.revision, split, [column, of_label])
    for number, row in enumerate(rows):
        if number == options.most:
            break
        where = f"{options.repository}: row {number + 1} of {split}"
        label = row[of_label]
        if not isinstance(label, (int, str)) or (isinstance(label, int) and label < 0):
            raise ValueError(f"{where}: {options.label} is {label!r}, not a label; choose another split or column")
        labels.append(label)
        value = row[column]
        if options.image is None and not (isinstance(value, str) and value.strip()):
            raise ValueError(f"{where}: {column} holds no text")
        values.append(value if options.image is None else pixels(value, options, where))
    if len(labels) < 2 or len({type(label) for label in labels}) > 1:
        raise ValueError(f"{options.repository}: split {split!r} needs two rows and labels of one kind")
    return values, labels


def pixels(value: object, options: Options, where: str) -> np.ndarray:
    """Return one image, uint8 [3, image_size, image_size]. ``where``: the row, for the message. Raises ValueError if
    ``value`` is not an image."""
    from PIL import Image

    if not isinstance(value, Image.Image):
        raise ValueError(f"{where}: {options.image} is {type(value).__name__}, not an image")
    return _pictures.resized(value, options.image_size)
