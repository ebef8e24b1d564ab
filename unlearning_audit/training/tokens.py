"""Read the predictions of language models for single tokens."""

import numpy as np
import torch
from torch import Tensor

from unlearning_audit.training.engine import State
from unlearning_audit.training.models import Models

#: Samples that are processed at once, and the largest number of logits: a large vocabulary takes fewer samples.
CHUNK, MOST_LOGITS = 64, 2**26


def readings(stack: Models, rows: np.ndarray) -> np.ndarray:
    """Return four values (`four_values`) for every scored token of the samples with the numbers ``rows`` int64 [rows]:
    float32 [models, rows, most, 4], NaN after a sample's last scored token. The values: log p; mean and standard
    deviation of log p under the model's own prediction; and the token's rank in it, from 0.

    A token is scored if it is not negative and not the first. ``most`` is the largest number of scored tokens of a
    sample in the stack. Raises ValueError for models that do not predict tokens.
    """
    if "tokens" not in stack.readings:
        raise ValueError("an attack or metric reads single tokens, which only language models predict; leave it out")
    most = int((stack.x[:, 1:] >= 0).sum(1).max())

    def compute(weights: tuple[State, State], x: Tensor) -> Tensor:
        """Return the four values of the scored tokens, [rows, most, 4], by the model with these ``weights``, moved to
        the start of each row of ``x``. A row with fewer scored tokens than ``most``, the largest number in the stack,
        ends with values of other tokens, which are NaN."""
        # Stably sorted, scored tokens come first and stay in their order.
        order = (x[:, 1:] < 0).to(torch.uint8).argsort(dim=1, stable=True)[:, :most]
        return four_values(stack.output(weights, x, "tokens"), x).take_along_dim(order.unsqueeze(-1), dim=1)

    samples, size = torch.from_numpy(rows), max(1, min(CHUNK, MOST_LOGITS // (stack.x.shape[1] * stack.vocabulary)))
    return np.stack([stack.by_chunks(model, samples, size, compute).numpy() for model in range(len(stack))])


def four_values(logits: Tensor, x: Tensor) -> Tensor:
    """Return four values for every token but the first, float32 [rows, length − 1, 4]. NaN where a token is not scored:
    it is stored as ~token then, which is negative.

    The four are log p of the token; mean and standard deviation of log p if the token were drawn from the model's own
    prediction; and the token's rank in the prediction, 0 for the most probable.

    Parameters
    ----------
    logits
        [rows, length − 1, vocabulary]: the prediction for each token but the first.
    x
        int [rows, length]: the tokens.
    """
    logp = logits.log_softmax(-1)
    ids = torch.where(x < 0, ~x, x).long()[:, 1:, None]  # gather needs valid tokens also where NaN replaces the values
    observed = logp.gather(-1, ids)
    p = logp.exp()
    mean = (p * logp).sum(-1)
    # From deviations, which cannot cancel to a negative variance.
    spread = (p * (logp - mean.unsqueeze(-1)).square()).sum(-1).sqrt()
    # Among equally probable tokens, the first in the vocabulary ranks first, as in argmax.
    earlier = torch.arange(logp.shape[-1], device=logp.device) < ids
    rank = ((logp > observed) | ((logp == observed) & earlier)).sum(-1).to(logp.dtype)
    values = torch.stack([observed[..., 0], mean, spread, rank], -1)
    return values.masked_fill((x[:, 1:] < 0).unsqueeze(-1), torch.nan).float()
