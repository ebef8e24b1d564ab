"""A classifier that reads a sentence as a bag of tokens. It does not need transformers."""

from torch import Tensor, nn


class Bag(nn.Module):
    """A network of one hidden layer on the mean of a sentence's token vectors. ``width``: units of the vectors and of
    the hidden layer; ``vocabulary``: the number of tokens."""

    head = "output"

    def __init__(self, vocabulary: int, width: int, classes: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.tokens, self.hidden = nn.Embedding(vocabulary, width), nn.Linear(width, width)
        self.output = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits [n, classes] for tokens ``x`` int [n, length], negative where a row is padded."""
        logits: Tensor = self.output(self.hidden(mean_over_tokens(self.tokens(x.clamp_min(0).long()), x)).relu())
        return logits


def mean_over_tokens(states: Tensor, x: Tensor) -> Tensor:
    """Return the mean of ``states`` [n, length, width] over the tokens of ``x`` [n, length] that are not padding
    (negative), [n, width]; 0 for a row without any."""
    is_token = (x >= 0).to(states.dtype).unsqueeze(-1)
    return (states * is_token).sum(1) / is_token.sum(1).clamp_min(1)
