"""SST-5: 11,855 sentences of film reviews with five grades, of which dev makes the tokens (Socher et al. 2013)."""

import csv
from pathlib import Path

import numpy as np
from pydantic import Field

from unlearning_audit.data import Settings, Source, _tokens

#: The number of sentences of each part of the official split.
SIZES = {"train": 8544, "dev": 1101, "test": 2210}


class Options(Settings):
    """``data_dir`` holds ``sst5/train.tsv``, ``dev.tsv`` and ``test.tsv``, with a first line and columns text and label
    (0–4). A sentence is cut or padded to ``length`` tokens. ``tokenizer``: a model's folder; without one,
    ``vocabulary`` tokens are learned from the sentences of dev, which are not used otherwise."""

    data_dir: str = "data"
    length: int = Field(48, ge=2)
    vocabulary: int = Field(2048, ge=257)
    tokenizer: str | None = None


def content(options: Options) -> list[Path]:
    """Return the files besides the options on which a result depends: the tokenizer."""
    return _tokens.existing_paths(options.tokenizer)


def load(options: Options, root: Path) -> Source:
    """Read tokens int32 [10754, length] of 8,544 training, then 2,210 test sentences, with labels 0–4. The sentences of
    dev serve to learn tokens only. Raises ValueError that names the file."""
    parts = {name: sentences(Path(root) / options.data_dir / "sst5" / f"{name}.tsv") for name in SIZES}
    for name, (found, _) in parts.items():
        if len(found) != SIZES[name]:
            file = f"{options.data_dir}/sst5/{name}.tsv"
            raise ValueError(f"sst5: {file} holds {len(found)} sentences instead of {SIZES[name]}")
    # Of each part, [0] are the texts, and [1] the labels.
    tokenizer = _tokens.chosen(Path(root), options.tokenizer, parts["dev"][0], options.vocabulary)
    texts = [*parts["train"][0], *parts["test"][0]]
    y = np.array([*parts["train"][1], *parts["test"][1]], np.int64)
    x = _tokens.padded(_tokens.encoded(tokenizer, texts), options.length)
    part = np.repeat(np.array([0, 1], np.uint8), [SIZES["train"], SIZES["test"]])
    return Source(x, y, part, classes=5, **_tokens.source_fields(tokenizer, texts))


def sentences(file: Path) -> tuple[list[str], list[int]]:
    """Return the texts and the labels of one part of the split. Raises ValueError that names the file and the line."""
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            table = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"sst5: {file} cannot be read ({error}); put the official split there as tsv") from error
    texts, labels = [], []
    for number, row in enumerate(table[1:], 2):  # line 1 is the header
        if len(row) != 2 or row[1] not in ("0", "1", "2", "3", "4"):
            raise ValueError(f"sst5: {file}: line {number} is not a sentence, a tab and a label from 0 to 4")
        texts.append(row[0])
        labels.append(int(row[1]))
    return texts, labels
