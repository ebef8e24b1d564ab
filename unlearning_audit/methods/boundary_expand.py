"""Boundary expand: train forget samples with an extra class as the label, then remove that class (Chen et al. 2023)."""

from collections.abc import Callable

from unlearning_audit.methods import Batch, ModelStack, Module, Momentum, Passes, Rate, Rows, Stream, Tensor, nn, torch
from unlearning_audit.training.losses import cross_entropy

#: What may be tuned, and within which values.
TUNE = {"lr": {"low": 1e-05, "high": 0.1, "log": True}, "epochs": {"low": 1, "high": 15}}


class Options(Momentum):
    """The last layer gets one more class, whose weights are drawn by each model's seed as for a new layer. The model is
    trained on forget with this class as the label; then the class is removed. Retain is not read.

    Chen et al.: SGD 1e-5, momentum .9, 10 epochs, batches of 64, to forget a class of images. Small networks need
    larger rates.
    """

    lr: Rate = 1e-5
    epochs: Passes = 10


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Add a class to the models, train forget towards this class, then remove it.

    Raises ValueError for a model whose final layer shares its weights with the token vectors, or is not linear.
    """
    wide = expanded(stack)

    def extra_class(batch: Batch) -> Tensor:
        """Return each sample's cross-entropy with the extra class, the last one, as its label: [n, b]."""
        return cross_entropy(batch.logits, torch.full_like(batch.labels, batch.logits.shape[-1] - 1))

    wide.fit(Stream(forget, loss=extra_class), optimiser=options, epochs=options.epochs, purpose="unlearn")
    head = set(stack.head)  # its parameters are [models, classes, …]; the last class, the extra one, is left out
    stack.parameters = {name: v[:, :-1].clone() if name in head else v for name, v in wide.parameters.items()}
    stack.buffers = wide.buffers


def expanded(stack: ModelStack) -> ModelStack:
    """Return a copy of the models with one more class in the last layer, the last one. The weights of this class are
    drawn by each model's seed; all others are kept.

    Raises ValueError for a model without a final layer of its own, or with one that is not linear.
    """
    from unlearning_audit.training.stack import ModelStack

    head = stack.head
    assert stack.final_layer is not None  # `stack.head` raises otherwise
    wide = stack.copy()
    wide.build = _with_another_class(stack.build, stack.final_layer)
    wide.model = wide.build().to(stack.device, stack.dtype)
    wide.engine = stack.engine.for_model(wide.model)
    # Untrained models, of which only the weights of the new class are taken; any sample and label will do as data.
    fresh = ModelStack.create(wide.build, stack.x[:1].cpu().numpy(), torch.zeros(1, dtype=torch.int64).numpy(),
                              stack.seeds, dtype=stack.dtype)  # fmt: skip
    for name in head:
        new = fresh.parameters[name][:, -1:].to(stack.device)  # the weights of the last class
        wide.parameters[name] = torch.cat([stack.parameters[name], new], dim=1)
    return wide


def _with_another_class(build: Callable[[], Module], head: str) -> Callable[[], Module]:
    """Return a function that builds the model of ``build`` with one more class in its final layer, whose dotted name is
    ``head``.

    That function raises ValueError if the layer is not linear.
    """

    def wider() -> Module:
        """Return the model of ``build`` with a final layer that is drawn anew and has one more class."""
        model = build()
        layer = model.get_submodule(head)
        if not isinstance(layer, nn.Linear):
            raise ValueError("boundary_expand needs a model whose final layer is linear; leave this method out")
        model.set_submodule(head, nn.Linear(layer.in_features, layer.out_features + 1, bias=layer.bias is not None))
        return model

    return wider
