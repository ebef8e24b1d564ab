"""A language model as a classifier of two classes: is this passage predicted or not?

The mean log-probability of the scored tokens is log p̄, and the logits are (φ, 0) with φ = log p̄ − log(1 − p̄). So the
softmax of the first class is p̄, and its cross-entropy is the mean negative log-likelihood. φ is the logit-scaled
confidence that per-sample attacks read.
"""

import copy
import functools
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig

from unlearning_audit.models._adapted import Adapted
from unlearning_audit.models._text import Causal

#: The smallest mean negative log-likelihood, in nats. At 0 the logit would be infinite.
LEAST_NLL = 1e-7

#: Names that peft gives to an adapter's two files: the configuration, which names the base model, and the weights.
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


class Passage(nn.Module):
    """A causal language model of transformers. Its ``trunk`` gives hidden states; its output weights are those of the
    token vectors or, if they are not tied, a layer ``output``.

    ``forward`` maps x int [n, length] to the logits of the two classes, [n, 2]. A token of x that is not scored is
    stored as its bitwise complement, which is negative. With ``reading`` "tokens", `forward` returns logits of the
    vocabulary for every token but the first, [n, length − 1, vocabulary]; with "next", those for the token after the
    last, [n, vocabulary]. With "layer k" it returns the hidden states of block k of ``layers``, counted from 1, that
    predict these tokens, [n, length − 1, width].
    """

    readings = ("tokens", "next", "layer")

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.trunk: Any = model.base_model
        self.vocabulary: int = model.config.vocab_size
        self.layers = model.config.num_hidden_layers
        # Whether the output weights are the token vectors. Then no layer is the final one alone.
        tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
        self.output = None if tied else model.get_output_embeddings()
        self.head = None if tied else "output"

    def forward(self, x: Tensor, reading: str | None = None) -> Tensor:
        """Map tokens ``x`` int [n, length] to logits of two classes (predicted or not), [n, 2], or what ``reading``
        names. The softmax of the first class is the exponential of the scored tokens' mean log-probability.

        "tokens": logits of the vocabulary for every token but the first, [n, length − 1, vocabulary]. "next": logits of
        the vocabulary for the token after the last, [n, vocabulary]. "layer k": the hidden states of all tokens but the
        last after block k, [n, length − 1, width].
        """
        ids = torch.where(x < 0, ~x, x).long()  # tokens that are not scored are stored as ~token
        if reading is not None and reading.startswith("layer "):
            layers = self.trunk(input_ids=ids, use_cache=False, output_hidden_states=True).hidden_states
            hidden: Tensor = layers[int(reading.removeprefix("layer "))]
            return hidden[:, :-1]
        states = self.trunk(input_ids=ids, use_cache=False).last_hidden_state
        hidden = states[:, -1] if reading == "next" else states[:, :-1]
        if self.output is None:
            logits = functional.linear(hidden, self.trunk.get_input_embeddings().weight)
        else:
            logits = self.output(hidden)
        if reading in ("tokens", "next"):
            return logits
        return two_classes(mean_nll(logits, x))


def mean_nll(logits: Tensor, x: Tensor) -> Tensor:
    """Return the mean of −log p over the scored tokens of each passage, [...]; NaN for a passage without any.

    The first token is left out, because nothing predicts it.

    Parameters
    ----------
    logits
        [..., length − 1, vocabulary]: the predictions of all tokens but the first.
    x
        int [..., length]: tokens, where a token that is not scored is stored as its bitwise complement.
    """
    ids, scored = torch.where(x < 0, ~x, x).long()[..., 1:], (x[..., 1:] >= 0).to(logits.dtype)
    nll = functional.cross_entropy(logits.flatten(0, -2), ids.flatten(), reduction="none").view(ids.shape)
    return (nll * scored).sum(-1) / scored.sum(-1)


def two_classes(nll: Tensor) -> Tensor:
    """Return the logits (φ, 0) whose softmax is (p̄, 1 − p̄) with p̄ = exp(−``nll``): [...] → [..., 2]. So φ is the log
    odds of p̄, log(p̄ / (1 − p̄)). An ``nll`` below `LEAST_NLL` counts as that, because φ is infinite for 0."""
    nll = nll.clamp_min(LEAST_NLL)
    phi = -nll - torch.log(-torch.expm1(-nll))
    return torch.stack([phi, torch.zeros_like(phi)], -1)


def causal(config: PretrainedConfig, shape: tuple[int, ...], options: Causal) -> nn.Module:
    """Return a language model as a classifier, with adapters if ``options.adapter`` is given.

    If ``options.weights`` names a folder or a model of the hub, that model is read. Without ``weights``, a model is
    freshly drawn. A folder may also hold an adapter of peft, which is merged into its base model.

    Parameters
    ----------
    config
        The size of a freshly drawn model.
    shape
        The shape of one sample, (length,).

    Raises
    ------
    ValueError
        For samples that are not rows of tokens, for weights that cannot be read, and for passages longer than the
        model's positions.
    """
    if len(shape) != 1:
        raise ValueError(f"a language model needs tokens [length], not samples of shape {tuple(shape)}")
    if options.weights is not None and (Path(options.weights) / ADAPTER).is_file():
        model = _merged(Path(options.weights))
    elif options.weights is not None:
        model = pretrained(AutoModelForCausalLM, options.weights, Path(options.weights).resolve(), "sdpa")
        model = model if options.adapter else copy.deepcopy(model)  # beside adapters the weights are fixed, so shared
    else:
        model = AutoModelForCausalLM.from_config(undropped(config), attn_implementation="sdpa")
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is not None and shape[0] > positions:
        raise ValueError(f"passages have {shape[0]} tokens, but the model {positions} positions; shorten data.length")
    passage = Passage(model.float())
    return Adapted(passage, options.adapter) if options.adapter else passage


def undropped(config: PretrainedConfig) -> PretrainedConfig:
    """Set every dropout rate of the configuration to 0 in place, and return it. Dropout would draw from one random
    stream for all models."""
    for name, value in vars(config).items():
        if isinstance(value, float) and "drop" in name:
            setattr(config, name, 0.0)
    return config


@functools.lru_cache(maxsize=1)  # only the last one is kept, because several may not fit into memory
def pretrained(kind: Any, weights: str, path: Path, attention: str) -> Any:
    """Return the model that ``weights`` names, a folder or a model of the hub, without dropout and in single precision.

    It is read once even if many models start from it.

    Parameters
    ----------
    kind
        The class of transformers that reads it.
    path
        The absolute path, which distinguishes folders with the same relative name in the cache.
    attention
        How the model computes attention.

    Raises
    ------
    ValueError
        If it cannot be read.
    """
    try:
        config = undropped(AutoConfig.from_pretrained(weights))
        return kind.from_pretrained(weights, config=config, attn_implementation=attention, dtype=torch.float32)
    except (OSError, ValueError, KeyError) as error:
        where = "cannot be read" if Path(weights).exists() else "is neither a folder nor a model that can be downloaded"
        problem = f"weights: {weights} {where} ({error}); name a folder that a model was saved to by save_pretrained"
        raise ValueError(problem) from error


def _merged(folder: Path) -> Any:
    """Return the base model of an adapter of peft in ``folder``, with the adapter added to its weights.

    The adapter names its base model: a folder, relative to the working directory or to the adapter's folder, or else a
    model of the hub. Raises ValueError that names the file if a part is missing or does not fit, or if peft is not
    installed.
    """
    try:
        from peft import PeftModel
    except ImportError:
        raise ValueError(f"{folder}: an adapter of peft needs peft; pip install peft") from None
    base = str(json.loads((folder / ADAPTER).read_text(encoding="utf-8"))["base_model_name_or_path"])
    if not (folder / ADAPTER_WEIGHTS).is_file():  # adapter_model.bin is a pickle, which may run code when it is read
        raise ValueError(f"{folder / ADAPTER_WEIGHTS}: this file is missing; save the adapter as safetensors")
    folders = (path for path in (Path(base), folder / base) if (path / "config.json").is_file())
    path = next(folders, Path(base))  # without such a folder, the name of a model of the hub
    model = copy.deepcopy(pretrained(AutoModelForCausalLM, str(path), path.resolve(), "sdpa"))
    try:
        return PeftModel.from_pretrained(model, folder).merge_and_unload()
    except Exception as error:  # files of all kinds end in errors of all kinds in peft and safetensors
        raise ValueError(f"{folder}: this adapter cannot be added to {base} ({error})") from error
