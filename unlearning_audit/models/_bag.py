"""A classifier of sentences that reads them as bags of tokens; transformers is not needed for it."""

from torch import Tensor, nn


class Bag(nn.Module):
    """The mean of the tokens' vectors through one hidden layer."""

    head = "output"

    def __init__(self, vocabulary: int, width: int, classes: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.tokens, self.hidden = nn.Embedding(vocabulary, width), nn.Linear(width, width)
        self.output = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.output(self.hidden(mean(self.tokens(x.clamp_min(0).long()), x)).relu())
        return logits


def mean(states: Tensor, x: Tensor) -> Tensor:
    """Mean of ``states`` [n, length, width] over the tokens of ``x`` [n, length] that are no padding."""
    real = (x >= 0).to(states.dtype).unsqueeze(-1)
    return (states * real).sum(1) / real.sum(1).clamp_min(1)
