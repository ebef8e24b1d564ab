"""Bad teacher: imitate an untrained network on forget, the original on retain (Chundawat et al. 2023)."""

from pydantic import Field

from unlearning_audit.methods import Batch, Kind, ModelStack, Optimiser, Passes, Rate, Rows, Stream, Tensor, _tokens
from unlearning_audit.training.lazy import torch
from unlearning_audit.training.losses import distillation

#: What may be tuned, and within which values.
TUNE = {
    "lr": {"low": 1e-05, "high": 0.01, "log": True},
    "epochs": {"low": 1, "high": 10},
    "retain_share": [0.1, 0.3, 0.5, 1.0],
}


class Options(Optimiser):
    """Loss: T²·KL(teacher ‖ student) on mixed batches of forget and a ``retain_share`` of retain.

    Chundawat et al.: Adam 1e-4, 1 epoch, batches of 256, 30 % of retain, T 1. Their code also averages the divergence
    over classes, a constant factor to which Adam is invariant. For a language model, KL is the mean over scored tokens.
    """

    optimiser: Kind = "adam"
    lr: Rate = 5e-4
    epochs: Passes = 5
    retain_share: float = Field(0.3, gt=0, le=1)
    T: float = Field(1.0, gt=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train the models to imitate an untrained model on forget, and the original model on a share ``retain_share`` of
    retain. Samples of both are mixed in each batch."""
    competent = stack.frozen()
    untrained = stack.copy()
    untrained.reset("bad_teacher")
    incompetent = untrained.frozen()
    share = retain.sample(max(1, round(options.retain_share * len(retain))), stack.seeds, "bad_teacher")
    # Which samples each model forgets, bool [models, samples].
    forgotten = torch.zeros(len(stack), len(stack.x), dtype=torch.bool)
    forgotten = forgotten.scatter(1, torch.from_numpy(forget.index), True).to(stack.device)

    def loss(batch: Batch) -> Tensor:
        """Return T²·KL(teacher ‖ student) of each sample, [n, b]. The teacher is the untrained model (``incompetent``)
        for a sample to forget, and the original (``competent``) for any other."""
        to_forget = forgotten[batch.at.squeeze(1)].gather(1, batch.rows)  # of the batch's models, then of their rows
        # [n, b] gets an axis of 1 for each further axis of the logits.
        to_forget = to_forget.reshape(*to_forget.shape, *[1] * (batch.logits.ndim - 2))
        teacher = torch.where(to_forget, incompetent(batch), competent(batch))
        return _tokens.mean_over_tokens(distillation(batch.logits, teacher, options.T), batch)

    mixed = Stream(forget + share, loss=loss, reading=_tokens.reading(stack))
    stack.fit(mixed, optimiser=options, epochs=options.epochs, purpose="unlearn")
