"""What language models say by themselves: the likeliest token, again and again."""

import numpy as np
import torch
from torch import Tensor

from unlearning_audit.bank.engine import State
from unlearning_audit.bank.models import Models

#: Samples that are continued at once.
CHUNK = 64


def greedy(bank: Models, rows: np.ndarray) -> np.ndarray:
    """What each model says in place of the scored tokens of its ``rows`` int64 [models, rows], −1 for none.

    A model reads what stands before the first scored token of a sample, at least one token, and says as many tokens
    as there are from it to the last scored one: int32 [models, rows, length − 1], filled with −1. Rows are worked on
    in their order and for each model alone, so that nothing depends on other models. Raises ValueError for models
    that do not predict tokens.
    """
    if "next" not in bank.readings:
        raise ValueError("a metric reads generated text, which only language models say; leave it out")
    answers = np.full((*rows.shape, bank.x.shape[1] - 1), -1, np.int32)
    for model, samples in enumerate(rows):
        weights = bank.state(model)  # copied once, not for every token
        for at in np.split(np.flatnonzero(samples >= 0), range(CHUNK, int((samples >= 0).sum()), CHUNK)):
            x = bank.x[torch.from_numpy(samples[at]).to(bank.device)]
            answers[model, at] = continued(bank, weights, x).cpu().numpy()
    return answers


def continued(bank: Models, weights: tuple[State, State], x: Tensor) -> Tensor:
    """As `greedy`, of the model with these ``weights`` (`Models.state`) for the samples ``x`` int [n, length]: int
    [n, length − 1]."""
    first, last = bounds(x)
    place = torch.arange(x.shape[1], device=x.device)
    text = torch.where(x < 0, ~x, x).masked_fill(place >= first[:, None], 0)
    for t in range(int(first.min()), int(last.max())):
        likeliest = bank.answers(weights, text[:, :t], "next").argmax(-1).to(text.dtype)
        text[:, t] = torch.where((first <= t) & (t < last), likeliest, text[:, t])
    from_first = first[:, None] + place[:-1]
    answer = text.gather(1, from_first.clamp(max=x.shape[1] - 1))
    return answer.masked_fill(from_first >= last[:, None], -1)


def bounds(x: Tensor) -> tuple[Tensor, Tensor]:
    """Where the first scored token of each row of ``x`` [n, length] stands, and one place after the last: int64 [n]."""
    scored = (x[:, 1:] >= 0).to(torch.int64)
    return 1 + scored.argmax(1), x.shape[1] - scored.flip(1).argmax(1)
