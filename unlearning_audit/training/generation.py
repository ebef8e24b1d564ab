"""Generate text by language models: the most probable token at each position, or one drawn at random.

A sample is a row of ``length`` tokens. Those that models have to predict, such as the tokens of an answer and not those
of its question, are called scored.
"""

import numpy as np
import torch
from torch import Tensor

from unlearning_audit.randomness.keyed import generator
from unlearning_audit.training.engine import State
from unlearning_audit.training.models import Models

#: Samples for which text is generated at once.
CHUNK = 64


def greedy(stack: Models, rows: np.ndarray) -> np.ndarray:
    """Let each model generate text, with its most probable tokens, in place of the scored tokens of its samples
    ``rows`` int64 [models, rows] (−1: no sample).

    The prompt is the part of a sample before its first scored token, at least one token. A model generates as many
    tokens as there are from the first to the last scored token: int32 [models, rows, length − 1], filled with −1. Rows
    are processed in order and for each model alone, so that the result does not depend on other models. Raises
    ValueError for models that do not predict tokens.
    """
    return _generate(stack, rows, answers=1, at_random=False)[:, :, 0]  # [models, rows, answers, tokens] has one answer


def sampled(stack: Models, rows: np.ndarray, answers: int) -> np.ndarray:
    """Let each model generate ``answers`` random texts at temperature 1 for each of its samples, in place of the scored
    tokens: int32 [models, rows, answers, length − 1], filled with −1.

    The prompt is the part of a sample before its first scored token, at least one token. A model generates as many
    tokens as there are from the first to the last scored token. The generator of random numbers depends on the model's
    seed and the sample, and the texts of a sample are drawn one after the other. So further texts, samples or models
    change none of those drawn before.

    Parameters
    ----------
    rows
        int64 [models, rows]: the numbers of each model's samples (−1: no sample).

    Raises
    ------
    ValueError
        For models that do not predict tokens.
    """
    return _generate(stack, rows, answers, at_random=True)


def _generate(stack: Models, rows: np.ndarray, answers: int, *, at_random: bool) -> np.ndarray:
    """Let each model generate ``answers`` texts for each of its samples: int32 [models, rows, answers, length − 1], −1
    where a text has ended or there is no sample.

    Parameters
    ----------
    rows
        int64 [models, rows]: the numbers of each model's samples (−1: no sample).
    at_random
        Whether tokens are drawn, and not the most probable ones.

    Raises
    ------
    ValueError
        For models that do not predict tokens.
    """
    if "next" not in stack.readings:
        raise ValueError("a metric reads generated text, which only language models say; leave it out")
    tokens = np.full((*rows.shape, answers, stack.x.shape[1] - 1), -1, np.int32)
    for model, samples in enumerate(rows):
        weights = stack.state(model)  # copied once, not for every token
        # The texts to generate, as pairs of a sample's position in the row and the number of an answer.
        pairs = np.argwhere(np.broadcast_to(samples[:, None] >= 0, (len(samples), answers)))
        for start in range(0, len(pairs), CHUNK):
            positions, numbers = pairs[start : start + CHUNK].T
            x = stack.x[torch.from_numpy(samples[positions]).to(stack.device)]
            uniform = _uniform(stack, model, samples[positions], numbers) if at_random else None
            texts = complete_texts(stack, weights, x, uniform)
            tokens[model, positions, numbers] = texts.cpu().numpy()
    return tokens


def _uniform(stack: Models, model: int, samples: np.ndarray, numbers: np.ndarray) -> Tensor:
    """Return random numbers from 0 to 1, one for each token of n texts of one ``model``, float64 [n, length]. Text i is
    answer ``numbers[i]`` to sample ``samples[i]``, int [n] each."""
    shape, drawn = (int(numbers.max()) + 1, stack.x.shape[1]), {}
    for sample in np.unique(samples).tolist():  # further answers take further numbers, and change none
        drawn[sample] = generator("sampled", stack.seeds[model], sample).random(shape)  # [answers, length]
    of_texts = [drawn[sample][number] for sample, number in zip(samples.tolist(), numbers, strict=True)]
    return torch.from_numpy(np.stack(of_texts)).to(stack.device)


def at_quantile(logits: Tensor, uniform: Tensor) -> Tensor:
    """Return a token for each row of ``logits`` [n, vocabulary], int64 [n]: the one at which the cumulative probability
    passes the number of ``uniform`` float64 [n], from 0 to 1."""
    cumulative = torch.softmax(logits.double(), -1).cumsum(-1)  # its last value may differ from 1 by rounding
    # All tokens before the one that passes the number are below it, so that their count is the token's number.
    return (cumulative <= uniform[:, None] * cumulative[:, -1:]).sum(-1).clamp(max=logits.shape[-1] - 1)


def complete_texts(stack: Models, weights: tuple[State, State], x: Tensor, uniform: Tensor | None) -> Tensor:
    """Let one model generate text for some samples, token by token: int [n, length − 1], filled with −1.

    The prompt ends before the first scored token of a sample, and the text replaces all tokens from there to the last
    scored one.

    Parameters
    ----------
    weights
        The parameters and the buffers of the model.
    x
        int [n, length]: the tokens of the samples, negative where they are not scored.
    uniform
        float64 [n, length]: the numbers from 0 to 1 by which tokens are drawn; None for the most probable tokens.
    """
    first, end = scored_bounds(x)
    position = torch.arange(x.shape[1], device=x.device)
    # A token that is not scored is stored as ~token. From the first scored one on, tokens are hidden by 0.
    text = torch.where(x < 0, ~x, x).masked_fill(position >= first[:, None], 0)
    for t in range(int(first.min()), int(end.max())):  # positions of any text; a text stays as it is outside its bounds
        logits = stack.output(weights, text[:, :t], "next")
        token = logits.argmax(-1) if uniform is None else at_quantile(logits, uniform[:, t])
        text[:, t] = torch.where((first <= t) & (t < end), token.to(text.dtype), text[:, t])
    # Move each text to the start of its row: from the position after its prompt on.
    from_first = first[:, None] + position[:-1]
    answer = text.gather(1, from_first.clamp(max=x.shape[1] - 1))
    return answer.masked_fill(from_first >= end[:, None], -1)


def scored_bounds(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the position of the first scored token in each row of ``x`` [n, length], and the position after the last
    scored token: int64 [n] each. A token is scored if it is not negative and not the first of the row. For a row
    without scored tokens they are 1 and length, as if all but the first were scored."""
    scored = (x[:, 1:] >= 0).to(torch.int64)
    # argmax finds the first 1, and in the flipped row the last.
    return 1 + scored.argmax(1), x.shape[1] - scored.flip(1).argmax(1)
