"""What language models say of single tokens."""

import numpy as np
import torch
from torch import Tensor

from unlearning.bank.models import Models

#: Samples that are worked on at once.
CHUNK = 64


def readings(bank: Models, rows: np.ndarray) -> np.ndarray:
    """Of every token but the first of the samples ``rows`` int64 [rows]: float32 [models, rows, length − 1, 4].

    The four are log p of the token; mean and standard deviation of log p under the model's own prediction; and the
    token's rank in it, 0 for the likeliest. NaN where a token is not scored. Raises ValueError for models that do not
    predict tokens.
    """
    if "tokens" not in bank.readings:
        raise ValueError("an attack or metric reads single tokens, which only language models predict; leave it out")
    found = []
    for model in range(len(bank)):
        parts = [bank.x[part.to(bank.device)] for part in torch.from_numpy(rows).split(CHUNK)]
        found.append(torch.cat([of(bank.answers(model, x, "tokens"), x) for x in parts]).cpu().numpy())
    return np.stack(found)


def of(vocabulary: Tensor, x: Tensor) -> Tensor:
    """The four of `readings` from logits [rows, length − 1, vocabulary] and tokens ``x`` int [rows, length]."""
    logp = vocabulary.log_softmax(-1)
    ids = torch.where(x < 0, ~x, x).long()[:, 1:, None]
    own = logp.gather(-1, ids)
    p = logp.exp()
    mean = (p * logp).sum(-1)
    # From deviations, which cannot cancel to a negative variance.
    spread = (p * (logp - mean.unsqueeze(-1)).square()).sum(-1).sqrt()
    rank = (logp > own).sum(-1).to(logp.dtype)
    four = torch.stack([own[..., 0], mean, spread, rank], -1)
    return four.masked_fill((x[:, 1:] < 0).unsqueeze(-1), torch.nan).float()
