"""NegGrad: gradient ascent on the loss of the forget set (Golatkar et al. 2020)."""

from pydantic import Field

from unlearning.bank.bank import Bank
from unlearning.bank.optim import Optimiser
from unlearning.bank.streams import Rows, Stream


class Options(Optimiser):
    """The optimiser's settings, and passes over forget. Jia et al. 2023: lr 1e-4, momentum .9, 5 epochs."""

    lr: float = Field(0.005, ge=0)
    epochs: int = Field(5, ge=0)


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Maximise cross-entropy on forget."""
    bank.fit(Stream(forget, weight=-1.0), optimiser=options, epochs=options.epochs, purpose="unlearn")
