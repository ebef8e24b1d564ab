"""Newton: exact Newton steps of the last layer on retain, with a bound on the distance to retraining (Guo et al.
2020)."""

import logging

from pydantic import Field

from unlearning_audit.methods import ModelStack, Rows, Settings, Tensor, _certified, dtype, nn, torch

#: What may be tuned, and within which values.
TUNE = {"l2": {"low": 1e-05, "high": 0.1, "log": True}, "steps": {"low": 1, "high": 5}}


class Options(Settings):
    """With the layers before it fixed, the loss of the last layer's weights w on retain is L(w) = mean CE +
    ``l2``/2·‖w‖². It is convex: w ← w − H⁻¹∇L, ``steps`` times.

    L is l2-strongly convex, so that the optimum, the retrained layer, lies within the bound ‖∇L(w)‖/l2 of w. The job's
    log has this bound for every model. With ``epsilon`` above 0, noise is added that makes the two (ε,
    ``delta``)-indistinguishable at that distance (Neel et al. 2021). The guarantee covers the last layer only: the
    whole of a model `linear`, but not the earlier layers of others, which have learned from forget. Guo et al. instead
    add the noise to the loss in training, and bound ∇L in advance.
    """

    l2: float = Field(1e-3, gt=0)
    steps: int = Field(1, ge=1)
    epsilon: float = Field(0.0, ge=0)
    delta: float = Field(1e-5, gt=0, lt=1)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Move the last layer towards the optimum of its loss on retain by ``steps`` Newton steps, and, if ``epsilon`` is
    above 0, add noise. The log has a bound on the distance to that optimum, the retrained layer; the noise makes two
    layers at this distance (``epsilon``, ``delta``)-indistinguishable.

    Raises ValueError for a model without a final layer of its own, or with one that is not linear or predicts every
    token.
    """
    noise = stack.noise("newton") if options.epsilon else None
    for model in range(len(stack)):
        index = torch.from_numpy(retain.index[model]).to(stack.device)
        inputs, labels = last_layer_inputs(stack, model, index), stack.labels_of(model, index)
        w = last_layer_weights(stack, model, inputs.dtype)
        for _ in range(options.steps):  # w − H⁻¹∇L
            gradient = loss_gradient(w, inputs, labels, options.l2).flatten()
            step = torch.linalg.solve(hessian(w, inputs, options.l2), gradient)
            w = w - step.reshape(w.shape)
        bound = loss_gradient(w, inputs, labels, options.l2).norm() / options.l2
        logging.info("model %d: the retrained last layer lies within %.6g", model, float(bound))
        write_last_layer(stack, model, w)
        if noise is not None:
            sigma = bound / _certified.largest_shift(options.epsilon, options.delta)
            for name in stack.head:
                stack.parameters[name][model] += sigma * noise[name][model]


def last_layer_inputs(stack: ModelStack, model: int, index: Tensor) -> Tensor:
    """Return the inputs of one model's last layer for the samples ``index`` int64 [rows]: float64 [rows, width]. A hook
    keeps them while the model runs.

    If the layer has a bias, a column of 1 is added, so that the bias counts as a weight. Raises ValueError if the layer
    is not linear, or runs for every token.
    """
    from unlearning_audit.training.engine import forward_one

    names = stack.head  # of the layer's weight and, if it has one, its bias
    assert stack.final_layer is not None  # `stack.head` raises otherwise
    layer = stack.model.get_submodule(stack.final_layer)
    if not isinstance(layer, torch.nn.Linear):
        raise ValueError("newton needs a model whose final layer is linear; leave this method out")
    batches: list[Tensor] = []
    stack.model.eval()
    # The hook gets the layer, which is known, and the arguments of its call, of which there is one.
    hook = layer.register_forward_pre_hook(lambda _, inputs: batches.append(inputs[0].detach()))
    with hook, torch.no_grad():
        for rows in torch.split(index, 256):  # so many at once, to save memory
            forward_one(stack.model, *stack.state(model), stack.scaled(stack.x[rows]))
    inputs = torch.cat(batches).double()
    if inputs.ndim != 2:
        raise ValueError("newton needs a classifier; this network predicts single tokens: leave this method out")
    return torch.cat([inputs, torch.ones_like(inputs[:, :1])], 1) if len(names) == 2 else inputs


def loss_gradient(w: Tensor, inputs: Tensor, labels: Tensor, l2: float) -> Tensor:
    """Return the gradient of the last layer's loss, mean CE + ``l2``/2·‖w‖², in its weights ``w``: [classes, width].

    Parameters
    ----------
    w
        [classes, width]: weights and bias side by side.
    inputs
        [rows, width]: the layer's inputs.
    labels
        int64 [rows]: the labels of the rows.
    """
    errors = nn.functional.softmax(inputs @ w.T, -1)
    errors[torch.arange(len(labels), device=labels.device), labels] -= 1  # predictions minus one-hot labels
    return errors.T @ inputs / len(inputs) + l2 * w


def hessian(w: Tensor, inputs: Tensor, l2: float) -> Tensor:
    """Return the matrix of second derivatives of the last layer's loss (`loss_gradient`) in its weights ``w``:
    [classes·width, classes·width].

    It is the mean over rows of (diag p − ppᵀ) ⊗ hhᵀ, plus ``l2`` on the diagonal, with the inputs h and the predictions
    p of a row.

    Parameters
    ----------
    w
        [classes, width]: the weights.
    inputs
        [rows, width]: the inputs of the last layer.
    """
    p = nn.functional.softmax(inputs @ w.T, -1)
    classes, width = w.shape
    blocks = inputs.new_zeros(classes, width, classes, width)
    for i in range(classes):
        for j in range(i, classes):
            weight = p[:, i] * (float(i == j) - p[:, j])  # the entry (i, j) of diag p − ppᵀ
            blocks[i, :, j] = blocks[j, :, i] = (inputs * weight[:, None]).T @ inputs / len(inputs)
    return blocks.reshape(w.numel(), w.numel()) + l2 * torch.eye(w.numel(), dtype=w.dtype, device=w.device)


def last_layer_weights(stack: ModelStack, model: int, kind: dtype) -> Tensor:
    """Return the last layer's weights and bias of one model side by side, [classes, width], in the dtype ``kind``. The
    bias, if there is one, is the last column."""
    values = [stack.parameters[name][model] for name in stack.head]
    return torch.cat([value if value.ndim == 2 else value[:, None] for value in values], 1).to(kind)


def write_last_layer(stack: ModelStack, model: int, w: Tensor) -> None:
    """Copy ``w`` [classes, width] into the last layer's weights and bias of one model. The bias, if there is one, is
    the last column."""
    width = stack.parameters[stack.head[0]].shape[2]  # the weight comes first, [models, classes, width]
    # Not strict: without a bias, the second part of w is empty and has no name.
    for name, columns in zip(stack.head, w.tensor_split([width], 1), strict=False):
        value = stack.parameters[name][model]
        value.copy_(columns.reshape(value.shape))
