"""Competition, first place (NeurIPS 2023): flatten predictions on forget, then contrast forget with retain and repair.

By team fanchuan; described in Triantafillou et al. 2024, "Are we making progress in unlearning?".
"""

from pydantic import Field

from unlearning_audit.methods import Batch, ModelStack, Momentum, Passes, Rate, Rows, Schedule, Settings, Stream, Tensor
from unlearning_audit.training.losses import distillation

#: What may be tuned, and within which values.
TUNE = {"epochs": {"low": 1, "high": 16}, "temperature": {"low": 0.1, "high": 5.0, "log": True}}


class Flatten(Momentum):
    """The optimiser of the first pass, over forget, as submitted."""

    lr: Rate = 0.005


class Contrast(Momentum):
    """The optimiser of the forget rounds, as submitted. There the cosine schedule is updated at every step, down to
    1e-6."""

    lr: Rate = 3e-4
    schedule: Schedule = "cosine"


class Repair(Momentum):
    """The optimiser of the retain rounds, as submitted, with batches of 256: lr .001·256/64."""

    lr: Rate = 0.004
    weight_decay: float = Field(0.01, ge=0)
    batch_size: int = Field(256, ge=1)


class Options(Settings):
    """One pass over forget minimises KL(uniform ‖ prediction). Then each of ``epochs`` is a forget round and a retain
    round.

    In a forget round, each step contrasts a batch of forget with one of retain of ``contrast_batch_size``: −mean log
    softmax(z_f·z_rᵀ/``temperature``) over the retain batch. A retain round minimises cross-entropy on retain. The
    optimisers ``flatten``, ``contrast`` and ``repair`` belong to the pass, the forget rounds and the retain rounds.
    """

    epochs: Passes = 8
    temperature: float = Field(1.15, gt=0)
    flatten: Flatten = Flatten()
    contrast: Contrast = Contrast()
    repair: Repair = Repair()
    contrast_batch_size: int = Field(256, ge=1)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Flatten the predictions on forget in one epoch. Then, in each epoch, contrast forget with retain in one pass, and
    train on retain in another."""
    from unlearning_audit.training.engine import StackedChain

    def towards_uniform(batch: Batch) -> Tensor:
        """Return KL(uniform ‖ prediction) of each sample, [n, b]: the teacher's logits are all 0."""
        return distillation(batch.logits, batch.logits.new_zeros(batch.logits.shape))

    def contrast(batch: Batch) -> Tensor:
        """Return −mean log softmax(z_f·z_rᵀ/temperature) over the retain batch, for each forget sample: [n, b]. z_f are
        the logits of the forget samples (the first batch), and z_r those of the retain samples (this ``batch``)."""
        assert batch.first is not None
        # The products z_f·z_rᵀ, computed as a linear layer whose weights are the retain logits: so a model gets the
        # same bits at every position in the stack. The retain logits get no gradient. None: the layer has no bias.
        products: Tensor = StackedChain.apply(batch.first.logits, ("linear",), batch.logits.detach(), None)
        return -(products / options.temperature).log_softmax(-1).mean(-1)

    contrast.whole = True  # type: ignore[attr-defined]  # a batch may not be divided: its softmax is over all of it
    stack.fit(Stream(forget, loss=towards_uniform), optimiser=options.flatten, epochs=1, purpose="unlearn/flatten")
    forget_round = Stream(forget, loss=None), Stream(retain, loss=contrast, batch_size=options.contrast_batch_size)
    optimisers = options.contrast, options.repair
    stack.fit(forget_round, Stream(retain), optimiser=optimisers, epochs=options.epochs, purpose="unlearn")
