"""NegGrad+: descend on retain and ascend on forget in one step (Kurmanji et al. 2023)."""

from typing import Literal

from pydantic import Field

from unlearning_audit.methods import ModelStack, Momentum, Passes, Rate, Rows, Stream

#: What may be tuned, and within which values.
TUNE = {
    "lr": {"low": 5e-5, "high": 0.1, "log": True},
    "epochs": {"low": 1, "high": 15},
    "beta": [0.1, 0.3, 0.35, 0.4, 0.5, 0.8, 0.9, 0.95, 0.99],
    "batch_size": [16, 64, 128],
    "forget_batch_size": [16, 64, 128],
}


class Options(Momentum):
    """Loss: ``beta``·CE(retain) − (1 − ``beta``)·CE(forget).

    An epoch is one pass over the set ``pass_over``; the other set is cycled. The code of Kurmanji et al. passes over
    ``retain`` (lr .01; for small problems β .95 and 10 epochs, for large ones β .9999 and 5 epochs). That of Naderloui
    et al. 2025 passes over ``forget`` (β .9, lr 5e-4, 10 epochs). ``forget_batch_size``: by default ``batch_size``.
    """

    lr: Rate = 0.01
    epochs: Passes = 5
    beta: float = Field(0.95, ge=0, le=1)
    pass_over: Literal["retain", "forget"] = "retain"
    forget_batch_size: int | None = Field(None, ge=1)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Minimise β·CE(retain) − (1 − β)·CE(forget), with one batch of each set per step. An epoch is one pass over the
    set that ``pass_over`` names, and the other set begins again when it is at its end."""
    keep = Stream(retain, weight=options.beta)
    lose = Stream(forget, weight=options.beta - 1, batch_size=options.forget_batch_size)
    # The first stream of a step sets how many steps an epoch has (`ModelStack.fit`).
    step = (keep, lose) if options.pass_over == "retain" else (lose, keep)
    stack.fit(step, optimiser=options, epochs=options.epochs, purpose="unlearn")
