"""Answers that language models generate."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from unlearning_audit.evaluation import queries
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.stored import Stored


@dataclass(frozen=True)
class Generations(Stored):
    """``signals.npz``: one generated answer per row.

    Parameters
    ----------
    tokens
        int32 [models, rows, new]: the generated tokens, −1 after the last one.
    index
        int64 [models, rows]: the sample that was continued, −1 for none. Models are the defender's, in the order of the
        memberships.
    """

    tokens: Annotated[np.ndarray, "iu models rows new"]
    index: Annotated[np.ndarray, "iu models rows"]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the fields, without columns beyond the longest answer."""
        longest = int((self.tokens >= 0).sum(-1).max(initial=1))
        return {"tokens": self.tokens[..., :longest], "index": self.index}


class Sampled(Generations):
    """Several sampled answers per row.

    Parameters
    ----------
    tokens
        int32 [models, rows, answers, new]: the tokens of each answer, −1 after the last one.
    index
        int64 [models, rows]: the sample that was continued, −1 for none.
    """

    tokens: Annotated[np.ndarray, "iu models rows answers new"]


def continued_samples(member: Membership, part: np.ndarray, most: int) -> np.ndarray:
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
