"""Fisher forgetting: noise on every weight, larger where it matters less to the retain set (Golatkar et al. 2020)."""

from typing import Literal

from pydantic import Field

from unlearning_audit.methods import ModelStack, Rows, Settings, Tensor, torch

#: What may be tuned, and within which values.
TUNE = {"alpha": {"low": 1e-08, "high": 0.001, "log": True}}


class Options(Settings):
    """``variant``: which published code is followed; ``alpha`` scales the noise's variance.

    ``golatkar``: the notebook of Golatkar et al. 2020, the authors of the method (α 3e-6 by default, 1e-6 in their
    runs). ``becker``: the code of Becker & Liebig 2022 (α 3e-6), which uses the observed label. The two differ by
    orders of magnitude.

    ``whole_class``, for golatkar: what happens if a model forgets all samples of one class and no others. ``reset``
    replaces the last layer's weights and bias of this class by noise of variance 1e-3 around 0, as the notebook does;
    ``keep`` treats them as the other weights.
    """

    variant: Literal["golatkar", "becker"] = "golatkar"
    alpha: float = Field(3e-6, ge=0)
    whole_class: Literal["reset", "keep"] = "reset"


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Add normal noise to the weights, drawn by each model's seed. Its standard deviation (`noise_deviations`) is,
    within limits, the root of ``alpha`` over the Fisher information on retain.

    For golatkar with ``whole_class`` reset, a model that forgets a whole class gets its last layer's weights of that
    class replaced by noise of variance 1e-3 around 0.
    """
    std = noise_deviations(stack, retain, options)
    centre = {name: value.clone() for name, value in stack.parameters.items()}
    if options.variant == "golatkar" and options.whole_class == "reset":
        for model, label in whole_classes(stack, forget, retain).items():
            for name in last_layer_names(stack):
                centre[name][model][label] = 0.0
                std[name][model][label] = 1e-3**0.5  # variance 1e-4, times 10 for the last layer, as in the notebook
    noise = stack.noise("fisher")
    stack.edit(lambda name, value: centre[name] + std[name] * noise[name])


def last_layer_names(stack: ModelStack) -> list[str]:
    """Return the names of the final layer's parameters; [] for a model without a final layer of its own."""
    return stack.head if stack.final_layer else []


def whole_classes(stack: ModelStack, forget: Rows, retain: Rows) -> dict[int, int]:
    """Return model → class for each model that forgets all samples of one class, by its own labels, and no others."""
    labels = stack.labels.cpu().numpy()
    classes = {}
    for model in range(len(stack)):
        labels_of_model = labels if labels.ndim == 1 else labels[model]
        forgotten = set(labels_of_model[forget.index[model]].tolist())
        if len(forgotten) == 1 and not forgotten & set(labels_of_model[retain.index[model]].tolist()):
            classes[model] = forgotten.pop()
    return classes


def noise_deviations(stack: ModelStack, retain: Rows, options: Options) -> dict[str, Tensor]:
    """Return the standard deviation of the noise for each weight, name → [models, …], by the published code that
    ``options.variant`` names: the root of ``options.alpha``/F within limits, where F is for golatkar the Fisher
    information over all labels (mean over samples), and for becker over observed ones (sum)."""
    last_layer, deviations = last_layer_names(stack), {}
    if options.variant == "golatkar":
        for name, value in stack.squared_gradients(retain, labels="model").items():
            facts = {"head": name in last_layer, "turned": name in stack.turned}  # turned: stored as [inputs, outputs]
            deviations[name] = torch.stack([_golatkar(fisher, alpha=options.alpha, **facts) for fisher in value])
        return deviations
    gradient = stack.gradient(retain)
    for name, value in stack.squared_gradients(retain, labels="observed").items():
        deviations[name] = _becker(value, gradient[name], len(retain), head=name in last_layer, alpha=options.alpha)
    return deviations


def _golatkar(fisher: Tensor, head: bool, alpha: float, turned: bool = False) -> Tensor:
    """Return the standard deviation of the noise of one model's tensor, from its Fisher information F, ``fisher``, and
    of the same shape.

    The variance is ``alpha``·min(1/(F + 1e-8), 1e3), averaged over inputs. In the last layer (``head``) the limit is
    1e2 instead of 1e3. In the last layer and in vectors (biases and norms) the variance is then multiplied by 10. All
    of this is as in the notebook.

    Parameters
    ----------
    head
        Whether the tensor belongs to the last layer.
    turned
        Whether F is [inputs, outputs] instead of [outputs, inputs, …].
    """
    variance = alpha * (1 / (fisher + 1e-8)).clamp(max=1e2 if head else 1e3)
    if variance.ndim > 1:
        variance = variance.mean(0 if turned else 1, keepdim=True).expand_as(variance)
    factor = 10 if head or variance.ndim == 1 else 1
    return (variance * factor).sqrt()


def _becker(squares: Tensor, gradient: Tensor, rows: int, head: bool, alpha: float) -> Tensor:
    """Return the standard deviation of the noise of one parameter of all models, [models, …]: √(``alpha``/F), at most
    1e-3. F is the sum of (g + 1e-7)² over the samples, with g a sample's gradient.

    The published code multiplies the last layer's bias, and nothing else, by 10 after that limit; so does this
    function.

    Parameters
    ----------
    squares, gradient
        [models, …]: the means of g² and of g over the samples.
    rows
        The number of samples.
    head
        Whether the parameter belongs to the last layer.
    """
    offset = 1e-7
    information = rows * (squares + 2 * offset * gradient + offset**2)  # the sum, written by the two means
    std = (alpha / information).sqrt().clamp(max=1e-3)
    is_bias = squares.ndim == 2  # [models, outputs]; weights have one dimension more
    return std * 10 if head and is_bias else std
