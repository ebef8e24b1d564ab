"""Opens checkpoints that a user trained elsewhere, and asks them what metrics need, one model at a time."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from unlearning_audit.adversary import tokens as of_tokens
from unlearning_audit.adversary.reference import LOGP, MEAN, RANK, SPREAD
from unlearning_audit.artifacts import external
from unlearning_audit.artifacts.arrays import Data, Logits, Membership
from unlearning_audit.artifacts.published import Published
from unlearning_audit.bank import card, tokens
from unlearning_audit.bank.bank import Bank
from unlearning_audit.data import prepare, read_source
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import guard

#: What begins the name of a checkpoint among the files of a population.
PREFIX = "checkpoint_"

#: The share of the least likely tokens that Min-K % and Min-K %++ read.
SHARE = 0.2


def answered(
    files: dict[str, str], population: str, data: dict, model: dict, seed: int
) -> tuple[Data, Membership, Logits | Published]:
    """What the checkpoints of one population say of every sample of a data source.

    ``files``: those of `unlearning_audit.artifacts.external`, with checkpoints in the place of logits; ``data`` and
    ``model``: name or file, and options. Classifiers give logits; language models what is read of the tokens of each
    sample, in the form of `Published`. One model is held at a time, on the card if there is one. Raises ValueError that
    names a checkpoint which does not fit the model or the data.
    """
    samples = _samples(data, seed)
    paths = [Path(path) for name, path in files.items() if name.startswith(PREFIX)]
    masks = {name: path for name, path in files.items() if not name.startswith(PREFIX)}
    parts_of_models = []
    for path in paths:
        bank = _opened(path, samples, model)
        parts_of_models.append(
            tokens.readings(bank, np.arange(len(samples.y)))[0] if "tokens" in bank.readings else bank.logits()[0]
        )
    answers = np.stack(parts_of_models)
    several = answers.ndim == 4
    shape = (*answers.shape[:2], samples.classes)
    logits = np.broadcast_to(np.float32(0), shape) if several else answers
    member = external.memberships(masks | {"logits": paths[0]}, population, samples, logits)
    if several:
        return samples, member, _published(answers, samples, member)
    return samples, member, Logits(answers, np.arange(len(samples.y)), samples.y)


def _samples(wish: dict, seed: int) -> Data:
    options = dict(wish)
    name, file = options.pop("name"), options.pop("file", None)
    source = read_source({"source": name, "options": options}, {"file": file}, Path.cwd())
    ready = prepare(source, seed=seed)
    return Data(ready.x, ready.y, ready.part, ready.y_clean, ready.index, ready.classes, ready.public,
                ready.compressed, ready.tokenizer, ready.parent, ready.view, ready.group)  # fmt: skip


def _opened(path: Path, samples: Data, wish: dict) -> Bank:
    """A bank of one model with the weights of a checkpoint: a folder of transformers, or a state dict in safetensors
    for what the builder makes."""
    options = dict(wish)
    name, file = options.pop("name", "llama"), options.pop("file", None)
    folder = path.is_dir()
    architecture = registry.load("models", name, file)
    settings = architecture.Options(**options, **({"weights": str(path)} if folder else {}))

    def build() -> nn.Module:
        with guard(architecture.__file__):
            model = architecture.build(settings, samples.x.shape[1:], samples.classes)
        if not folder:
            _load(model, path)
        return model

    return Bank.create(build, samples.x, samples.y, np.zeros(1, np.int64), device=card.use())


def _load(model: nn.Module, path: Path) -> None:
    """Take a state dict. Raises ValueError that names the file and the tensors that do not fit."""
    from safetensors.torch import load_file

    try:
        tensors = load_file(path)
    except Exception as error:
        raise ValueError(f"{path}: this is no whole file of safetensors ({error})") from None
    state = model.state_dict()
    missing, extra = sorted(set(state) - set(tensors)), sorted(set(tensors) - set(state))
    if missing or extra:
        problems = [f"lacks {', '.join(missing[:3])}"] if missing else []
        problems += [f"has {', '.join(extra[:3])}, which the model does not know"] if extra else []
        raise ValueError(f"{path}: {' and '.join(problems)}; is it a state dict of the model that the study names?")
    for name, value in tensors.items():
        if value.shape != state[name].shape:
            shapes = f"{list(value.shape)}, the model's has {list(state[name].shape)}"
            raise ValueError(f"{path}: tensor {name!r} has shape {shapes}")
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise ValueError(f"{path}: tensor {name!r} has values that are NaN or infinite; leave this model out")
    model.load_state_dict(tensors)


def _published(readings: np.ndarray, samples: Data, member: Membership) -> Published:
    """Attacks and readings of language models from their tokens, float32 [models, samples, tokens, 4]."""
    values = readings.astype(np.float64)
    logp = values[..., LOGP]
    with np.errstate(divide="ignore", invalid="ignore"):
        standard = (logp - values[..., MEAN]) / values[..., SPREAD]
    mean = np.nanmean(logp, axis=-1)
    scores = {
        "loss": mean,
        "min_k": of_tokens.lowest(logp, SHARE),
        "min_k_plus_plus": of_tokens.lowest(np.where(np.isfinite(standard), standard, np.nan), SHARE),
    }
    if samples.compressed is not None:
        scores["zlib"] = mean / samples.compressed
    first = np.where(np.isnan(logp), np.nan, values[..., RANK] == 0)
    shares = {
        "probability": np.exp(mean),
        "exact_memorisation": np.nanmean(first, axis=-1),
        "extraction_strength": _strength(first),
    }
    return Published(
        forget=member.forget, heldout=member.heldout, retain=member.retain, test=samples.part == 1,
        samples=samples.index.astype("U"), attacks=np.array(list(scores)), scores=np.stack(list(scores.values())),
        readings=np.array(list(shares)), values=np.stack(list(shares.values())),
        near=np.ones(len(shares), np.int64), share=np.ones(len(shares), bool),
        comparable=np.array([*scores, *shares]),
    )  # fmt: skip


def _strength(first: np.ndarray) -> np.ndarray:
    """Share of the tokens at the end that are all first guesses, [...]: ``first`` [..., tokens], NaN after the last."""
    count = (~np.isnan(first)).sum(-1)
    wrong = np.where(first == 0, np.arange(first.shape[-1]) + 1, 0).max(-1)  # where the last wrong token ends
    return (count - wrong) / count
