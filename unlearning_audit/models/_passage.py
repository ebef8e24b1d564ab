"""The one view by which a language model is a classifier of two classes: was this passage to be expected?

The mean log-probability of the scored tokens is the log of p̄, and the logits are (φ, 0) with φ = log p̄ − log(1 − p̄).
So the softmax of the first class is p̄, its cross-entropy the mean negative log-likelihood, and φ the logit-scaled
confidence that attacks with a model for each sample read.
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

#: Least mean negative log-likelihood, in nats: at 0 the logit would be infinite.
LEAST = 1e-7

#: What peft calls the file that says which model an adapter belongs to, and the one with its weights.
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


class Passage(nn.Module):
    """A causal language model of transformers, whose ``trunk`` gives hidden states and whose output weights are those
    of its tokens or, untied, a layer ``output``.

    ``forward`` maps x int [n, length] (marks as in `unlearning_audit.data._tokens`) to logits [n, 2]; with ``reading``
    "tokens" to the logits of the whole vocabulary for every token but the first, [n, length − 1, vocabulary]; with
    "next" to those of the token after the last, [n, vocabulary]; with "layer k" to what block k of ``layers`` puts out,
    from 1, where these are predicted, [n, length − 1, width].
    """

    readings = ("tokens", "next", "layer")

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.trunk: Any = model.base_model
        self.vocabulary: int = model.config.vocab_size
        self.layers = model.config.num_hidden_layers
        tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
        self.output = None if tied else model.get_output_embeddings()
        self.head = None if tied else "output"

    def forward(self, x: Tensor, reading: str | None = None) -> Tensor:
        ids = torch.where(x < 0, ~x, x).long()
        if reading is not None and reading.startswith("layer "):
            layers = self.trunk(input_ids=ids, use_cache=False, output_hidden_states=True).hidden_states
            hidden: Tensor = layers[int(reading.removeprefix("layer "))]
            return hidden[:, :-1]
        states = self.trunk(input_ids=ids, use_cache=False).last_hidden_state
        hidden = states[:, -1] if reading == "next" else states[:, :-1]
        if self.output is None:
            vocabulary = functional.linear(hidden, self.trunk.get_input_embeddings().weight)
        else:
            vocabulary = self.output(hidden)
        if reading in ("tokens", "next"):
            return vocabulary
        return two_classes(mean_nll(vocabulary, x))


def token_logp(vocabulary: Tensor, x: Tensor) -> Tensor:
    """log p of every token but the first: ``vocabulary`` [..., length − 1, vocabulary], ``x`` [..., length] →
    [..., length − 1]."""
    ids = torch.where(x < 0, ~x, x).long()[..., 1:]
    return -functional.cross_entropy(vocabulary.flatten(0, -2), ids.flatten(), reduction="none").view(ids.shape)


def scored(x: Tensor) -> Tensor:
    """Which tokens but the first count, bool [..., length − 1]."""
    return x[..., 1:] >= 0


def mean_nll(vocabulary: Tensor, x: Tensor) -> Tensor:
    """Mean of −log p over the scored tokens, [...]."""
    mask = scored(x).to(vocabulary.dtype)
    return -(token_logp(vocabulary, x) * mask).sum(-1) / mask.sum(-1)


def two_classes(nll: Tensor) -> Tensor:
    """Logits (φ, 0) of p̄ = exp(−nll): [...] → [..., 2]."""
    nll = nll.clamp_min(LEAST)
    phi = -nll - torch.log(-torch.expm1(-nll))
    return torch.stack([phi, torch.zeros_like(phi)], -1)


def causal(config: PretrainedConfig, shape: tuple[int, ...], options: Causal) -> nn.Module:
    """A freshly drawn model of ``config`` or, if ``options.weights`` names a folder or a model of the hub, that one,
    with adapters if there shall be any.

    Raises ValueError for samples that are no rows of tokens, weights that cannot be read, and passages longer than
    the model's positions.
    """
    if len(shape) != 1:
        raise ValueError(f"a language model needs tokens [length], not samples of shape {tuple(shape)}")
    if options.weights is not None and (Path(options.weights) / ADAPTER).is_file():
        model = _merged(Path(options.weights))
    elif options.weights is not None:
        model = _pretrained(options.weights, Path(options.weights).resolve())
        model = model if options.adapter else copy.deepcopy(model)
    else:
        model = AutoModelForCausalLM.from_config(undropped(config), attn_implementation="sdpa")
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is not None and shape[0] > positions:
        raise ValueError(f"passages have {shape[0]} tokens, but the model {positions} positions; shorten data.length")
    passage = Passage(model.float())
    if options.adapter:
        return Adapted(passage, options.adapter)
    return passage


def undropped(config: PretrainedConfig) -> PretrainedConfig:
    """The configuration with every rate of dropout set to 0: dropout draws from a stream that all models share."""
    for name, value in vars(config).items():
        if isinstance(value, float) and ("drop" in name):
            setattr(config, name, 0.0)
    return config


@functools.lru_cache(maxsize=1)  # the last alone: checkpoints after one another need not lie in memory together
def _pretrained(weights: str, place: Path) -> Any:
    """Read once, however many models start from it. ``place`` tells folders of the same relative name apart."""
    try:
        config = undropped(AutoConfig.from_pretrained(weights))
        return AutoModelForCausalLM.from_pretrained(
            weights, config=config, attn_implementation="sdpa", dtype=torch.float32
        )
    except (OSError, ValueError, KeyError) as error:
        where = "cannot be read" if Path(weights).exists() else "is neither a folder nor a model that can be fetched"
        raise ValueError(
            f"weights: {weights} {where} ({error}); name a folder that a model was saved to by save_pretrained"
        ) from error


def _merged(folder: Path) -> Any:
    """The model that ``base_model_name_or_path`` of an adapter names, with the adapter added to its weights; a path is
    looked for from the working directory, then from the adapter's folder. Raises ValueError that names the file."""
    try:
        base = json.loads((folder / ADAPTER).read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (ValueError, KeyError, TypeError):
        base = None
    if not isinstance(base, str) or not base:
        raise ValueError(f"{folder / ADAPTER}: base_model_name_or_path is missing; set it to the model's folder")
    if not (folder / ADAPTER_WEIGHTS).is_file():  # adapter_model.bin is a pickle, which may run code when it is read
        raise ValueError(f"{folder / ADAPTER_WEIGHTS}: this file is missing; save the adapter as safetensors")
    try:
        from peft import PeftModel
    except ImportError:
        raise ValueError(f"{folder}: an adapter of peft needs peft; pip install peft") from None
    places = (path for path in (Path(base), folder / base) if (path / "config.json").is_file())
    place = next(places, Path(base))
    try:
        model = copy.deepcopy(_pretrained(str(place), place.resolve()))
    except ValueError as error:
        raise ValueError(f"{folder / ADAPTER}: base_model_name_or_path: {error}") from None
    try:
        return PeftModel.from_pretrained(model, folder).merge_and_unload()
    except Exception as error:  # files of all kinds end in errors of all kinds in peft and safetensors
        raise ValueError(f"{folder}: this adapter cannot be added to {base} ({error})") from error
