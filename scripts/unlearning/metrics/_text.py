"""What metrics of language models share."""

from collections.abc import Callable, Iterator

import numpy as np

from unlearning.adversary.case import Case
from unlearning.artifacts.files import NoAnswerError
from unlearning.metrics import _pairs


def each(case: Case, rows: Callable[[np.ndarray], list[dict]]) -> Iterator[dict]:
    """``rows(models bool [models])`` of all target models, then of those of each swapped pair, if they are such, with
    setting "pair=…" before their own."""
    yield from rows(case.target)
    try:
        blocks = sorted({group.block for group in _pairs.groups(case.membership)})
    except ValueError:
        return
    for block in blocks if len(blocks) > 1 else ():
        for row in rows(case.target & (case.membership.block == block)):
            yield {**row, "setting": ";".join(filter(None, (f"pair={block}", row["setting"])))}


def nll(logits: np.ndarray) -> np.ndarray:
    """Mean negative log-likelihood of passages in nats per token, float64 [models, samples], from (φ, 0).

    Raises ValueError for models of more classes, which do not read passages.
    """
    if logits.shape[-1] != 2:
        raise ValueError(
            f"models have {logits.shape[-1]} classes; perplexity is that of language models, whose logits are (φ, 0)"
        )
    two = logits.astype(np.float64)
    return np.logaddexp(0.0, two[..., 1] - two[..., 0])


def compared_files(case: Case) -> list[str] | None:
    """The logits of retrained models that this method did not make itself; None if there are none, or they failed or
    diverged: that is no fault of this method."""
    try:
        if case.compared is None:
            return None
    except NoAnswerError:
        return None
    own = case.unlearned_files == case.retrained_files
    return case.control_files if own else case.retrained_files
