"""From texts to tokens: tokenizers, and marks of tokens that are read and not scored.

Rows of tokens are int32. A value of 0 or more is a token whose prediction counts. A negative value is the complement
``~id`` of a token that is read and not scored, such as those of the question before an answer. `PADDING` fills rows at
the end.
"""

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: The value after the last token of a row: the complement of token 0, which is ignored.
PADDING = -1


def chosen(root: Path, name: str | None, texts: Iterable[str], vocabulary: int) -> "Tokenizer":
    """Return the tokenizer ``name`` (see `opened`) or, without a name, one with ``vocabulary`` tokens that is `trained`
    on ``texts``."""
    return opened(root, name) if name else trained(texts, vocabulary)


def trained(texts: Iterable[str], vocabulary: int) -> "Tokenizer":
    """Return a byte-level byte-pair encoding of at most ``vocabulary`` tokens (at least 257), learned from ``texts``.

    Every text can be encoded, since all 256 bytes are tokens. Token 0 never stands for text, so that it can pad.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=["<pad>"], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def opened(root: Path, name: str) -> "Tokenizer":
    """Return the tokenizer ``name``: of a model's folder ``root / name``, of a ``tokenizer.json``, or, if no such path
    exists, of a model of the hub. Raises ValueError if it cannot be read."""
    from tokenizers import Tokenizer

    path = root / name
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        if not path.exists():
            return Tokenizer.from_pretrained(name)
        return Tokenizer.from_str(file.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises Exception directly
        problem = f"tokenizer: {file} cannot be read ({error}); name a model's folder that holds tokenizer.json"
        raise ValueError(problem) from error


def existing_paths(*names: str | None) -> list[Path]:
    """Return those of ``names`` that are paths of existing folders and files, because results depend on their content.
    Other names are those of the hub, and None stands for no name."""
    return [Path(name) for name in names if name and Path(name).exists()]


def encoded(tokenizer: "Tokenizer", texts: Sequence[str]) -> list[np.ndarray]:
    """Return the numbers of the tokens of each of the ``texts`` by the ``tokenizer``, int32 [tokens]; nothing is added
    before or after."""
    batch = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [np.array(encoding.ids, np.int32) for encoding in batch]


def windows(rows: Iterable[np.ndarray], length: int, shortest: int | None = None) -> np.ndarray:
    """Return the rows cut into pieces of ``length`` tokens: int32 [pieces, length].

    The rest of a row is dropped, or padded if it has at least ``shortest`` tokens (None: always dropped).
    """
    pieces = []
    for row in rows:
        whole = len(row) // length * length  # the number of tokens in complete pieces
        pieces.append(row[:whole].reshape(-1, length))
        if shortest is not None and len(row) - whole >= shortest:
            pieces.append(padded([row[whole:]], length))
    return np.concatenate(pieces) if pieces else np.zeros((0, length), np.int32)


def padded(rows: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Return the first ``length`` tokens of each row, int32 [rows, length], filled with `PADDING`."""
    tokens = np.full((len(rows), length), PADDING, np.int32)
    for padded_row, row in zip(tokens, rows, strict=True):
        padded_row[: len(row)] = row[:length]
    return tokens


def last_scored(x: np.ndarray, tokens: int) -> np.ndarray:
    """Return ``x`` int32 [rows, length], in which only the last ``tokens`` of the tokens of each row that are not
    negative stay so. The others are stored as ~token, which says that they are not scored."""
    is_scored = x >= 0
    still_to_come = is_scored[:, ::-1].cumsum(1)[:, ::-1]  # scored tokens from here to the end of the row
    return np.where(is_scored & (still_to_come > tokens), ~x, x)


def neighbours(x: np.ndarray, pool: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return ``x`` [rows, length] with a ``share`` of each row's scored tokens, but at least one, replaced by random
    tokens of ``pool`` int32 [tokens], drawn by ``rng``. Which tokens of a row are replaced is random too."""
    mask = scored(x)
    count = np.maximum(np.round(share * mask.sum(1)), 1)  # [rows]
    # The rank of each token in a random order of its row. Scored tokens, whose draws are below 1, come before the
    # others, which get 2. The first argsort gives the token of each rank, the second the rank of each token.
    rank = np.where(mask, rng.random(x.shape), 2.0).argsort(axis=1).argsort(axis=1)
    return np.where(mask & (rank < count[:, None]), rng.choice(pool, x.shape), x).astype(x.dtype)


def scored(x: np.ndarray) -> np.ndarray:
    """Return which tokens of ``x`` [rows, length] have predictions that count, bool [rows, length]. The first token
    never counts, because it is predicted from nothing."""
    mask = x >= 0
    mask[..., 0] = False
    return mask


def ids(x: np.ndarray) -> np.ndarray:
    """Return the numbers of the tokens in ``x``, in which tokens that are not scored are stored as ~token; padding
    becomes token 0."""
    return np.where(x < 0, ~x, x)


def texts(tokenizer: "Tokenizer", x: np.ndarray) -> list[str]:
    """Return the text of each row of ``x`` [rows, length] without its padding, as the ``tokenizer`` decodes it."""
    ends = [max(np.flatnonzero(row != PADDING) + 1, default=0) for row in x]
    return tokenizer.decode_batch([ids(row[:end]).tolist() for row, end in zip(x, ends, strict=True)])


def source_fields(tokenizer: "Tokenizer", texts: Iterable[str]) -> dict[str, Any]:
    """Return two fields of a `Source`: ``tokenizer``, and ``compressed``, the number of bytes of each text after zlib,
    int64 [texts], which measures its information without any model."""
    return {
        "compressed": np.array([len(zlib.compress(text.encode())) for text in texts], np.int64),
        "tokenizer": np.frombuffer(tokenizer.to_str().encode(), np.uint8),
    }
