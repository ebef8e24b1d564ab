"""Answers that language models generate."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from unlearning_audit.evaluation import queries
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.store.files import Arrays, Check, read_arrays


@dataclass(frozen=True)
class Generations(Arrays):
    """``signals.npz``: one generated answer per row. ``tokens`` int32 [models, rows, new], −1 after the last token;
    ``index`` int64 [models, rows], the sample that was continued, −1 for none. Models are the defender's, in the order
    of the memberships."""

    AXES: ClassVar[tuple[None, ...]] = (None,)

    tokens: np.ndarray
    index: np.ndarray

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the fields, without columns beyond the longest answer."""
        longest = int((self.tokens >= 0).sum(-1).max(initial=1))
        return {"tokens": self.tokens[..., :longest], "index": self.index}

    @classmethod
    def empty(cls) -> Self:
        """Return an object without models."""
        return cls(np.zeros((0, 0, *(0 for _ in cls.AXES)), np.int32), np.zeros((0, 0), np.int64))

    @classmethod
    def read(cls, path: str | Path) -> "Generations":
        """Read and check a file. Raises ArtifactError for a wrong file, and FailedError if there are no models."""
        check = Check(path, read_arrays(path))
        index = check.field("index", "iu", (None, None))
        tokens = check.field("tokens", "iu", (*index.shape, *cls.AXES))
        for rows in index:
            if len(np.unique(rows[rows >= 0])) != (rows >= 0).sum():
                check.fail("index", "names a sample twice for one model")
        return cls(tokens, index.astype(np.int64))


class Sampled(Generations):
    """Several sampled answers per row: ``tokens`` int32 [models, rows, answers, new], −1 after the last token of an
    answer; ``index`` int64 [models, rows], the sample that was continued, −1 for none."""

    AXES = (None, None)


def queried(member: Membership, part: np.ndarray, most: int) -> np.ndarray:
    """Return which samples each model continues, int64 [models, rows], filled with −1.

    These are all forgotten and held-out samples, and up to ``most`` of the retained samples and of the test part
    (``part`` uint8 [samples]). They are drawn by the model's seed alone, so that a model and the one retrained in its
    place continue the same samples.
    """
    roles = {
        "forgotten_or_heldout": (member.forget | member.heldout, None),
        "retain": (member.retain, most),
        "test": (np.broadcast_to(part == 1, member.forget.shape), most),
    }
    return queries.draw(member, "generate", roles)
