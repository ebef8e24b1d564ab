"""Swin (Liu et al. 2021), by default Swin-S, pre-trained or not, with a new head for fine-tuning."""

from collections import OrderedDict

from pydantic import Field, PositiveInt

from unlearning_audit.models import ImageOptions, Module, Tensor, nn

#: The name that reports print.
PRINTED = "swin_small"

LIBRARIES = ("torchvision.models",)


class Options(ImageOptions):
    """``weights``: none, default (ImageNet-1k from torchvision, stored in torch.hub's folder), or the path of a
    ``.safetensors`` file with torchvision's names, relative to the working directory; their final layer is not taken.
    ``image_size``: images are resized to it (bilinear). ``depths`` and ``heads``: the numbers of blocks and of heads
    in each of the four stages; ``width``: the channels of the first stage. Swin-T has depths 2, 2, 6, 2."""

    weights: str = "none"
    image_size: int = Field(224, ge=32)
    depths: tuple[PositiveInt, PositiveInt, PositiveInt, PositiveInt] = (2, 2, 18, 2)
    heads: tuple[PositiveInt, PositiveInt, PositiveInt, PositiveInt] = (3, 6, 12, 24)
    width: PositiveInt = 96
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)


def build(options: Options, shape: tuple[int, ...], classes: int) -> Module:
    """Return the network, which maps images [n, *shape] to logits [n, classes], without stochastic depth and dropout.
    It resizes images of another size than ``options.image_size``.

    Raises ValueError for samples that are not images of three channels, and if the weights cannot be read or do not
    fit.
    """
    from torchvision.models import SwinTransformer

    from unlearning_audit.models._layers import Layers, standardise

    if shape[0] != 3:
        raise ValueError(f"swin_s needs images with 3 channels, not samples of shape {tuple(shape)}")
    swin = SwinTransformer(
        patch_size=[4, 4], embed_dim=options.width, depths=[*options.depths], num_heads=[*options.heads],
        window_size=[7, 7], stochastic_depth_prob=0.0, num_classes=classes,
    )  # fmt: skip
    if options.weights != "none":
        new_head = {name: value for name, value in swin.state_dict().items() if name.startswith("head.")}
        try:
            swin.load_state_dict(_state(options.weights) | new_head)
        except RuntimeError as error:
            raise ValueError(f"{options.weights}: these weights do not fit swin_s of these sizes; {error}") from error
    size = (options.image_size, options.image_size)
    resize = nn.Identity() if shape[1:] == size else nn.Upsample(size, mode="bilinear")
    model = Layers(OrderedDict(standardise=standardise(options, shape), resize=resize, swin=swin))
    model.head = "swin.head"
    return model


def _state(weights: str) -> dict[str, Tensor]:
    """Return the weights by name: torchvision's own if ``weights`` is "default", else those in the file of that path.
    Raises ValueError if they cannot be read."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from torch import hub
    from torchvision.models import Swin_S_Weights

    if weights == "default":
        try:
            return dict(Swin_S_Weights.DEFAULT.get_state_dict(progress=False, check_hash=True))
        except (OSError, RuntimeError) as error:
            url = Swin_S_Weights.DEFAULT.url
            raise ValueError(f"swin_s: put {url} into {hub.get_dir()}/checkpoints by hand ({error})") from error
    try:
        return load_file(weights)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"swin_s: {weights} is no safetensors file that can be read ({error})") from error
