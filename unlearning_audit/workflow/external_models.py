"""Open checkpoints that a user trained elsewhere, and compute what metrics need, one model at a time."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from unlearning_audit.data import prepare, read_source
from unlearning_audit.evaluation import external
from unlearning_audit.evaluation.arrays import Data, Logits, Membership
from unlearning_audit.evaluation.published import Published
from unlearning_audit.evaluation.signal_files import continued_samples
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import guard
from unlearning_audit.protocols.external import INDEX
from unlearning_audit.training import card, generation, tokens
from unlearning_audit.training.engine import aliases, unwrapped
from unlearning_audit.training.stack import ModelStack

#: Prefix of a checkpoint's name among the files of a population.
PREFIX = "checkpoint_"

#: A plug-in's name or file, and its options.
Options = dict[str, Any]


def outputs_of(
    files: dict[str, str], population: str, data: Options, model: Options, seed: int, *, generations: int = 0
) -> tuple[Data, Membership, Logits | Published]:
    """Compute the outputs of one population's checkpoints for every sample of a data source; return the samples, the
    memberships and the outputs.

    Classifiers give `Logits`. Language models give scores and values from the tokens of each sample, as `Published`.

    If samples have a prompt, language models also continue the prompts of all forgotten and held-out samples, and of
    ``generations`` of the retained and of the test samples (0: nothing is continued). Views of a sample, such as its
    paraphrases, are evaluated but do not count as samples. One model is in memory at a time, on the card if there is
    one.

    Parameters
    ----------
    files
        Name → path; names "checkpoint_…" are models, the others masks of samples ("train", "forget", "heldout" and so
        on).
    data, model
        The name or file of the data source or the model, and its options.

    Raises
    ------
    ValueError
        If a checkpoint does not fit the model or the data; the message names it.
    """
    paths = [Path(path) for name, path in files.items() if name.startswith(PREFIX)]
    rows = _read_rows(data, paths, seed)
    samples = _without_views(rows)
    # Messages of `memberships` name the first checkpoint, since there is no file of logits.
    masks: dict[str, str | Path] = {name: path for name, path in files.items() if not name.startswith(PREFIX)}
    member = external.memberships(masks | {"logits": paths[0]}, population, samples, len(paths))
    continued = np.zeros((len(paths), 0), np.int64)  # for each model, the rows whose prompts it continues
    # A token that is only read, such as that of a prompt, is stored as ~token, which is negative. The first token is
    # never scored, so the second tells whether a sample has a prompt.
    if generations and rows.tokenizer is not None and (rows.x[:, 1] < 0).any():
        # `continued_samples` draws with the seeds of the models. With one seed for all, every model in every
        # population continues the same test samples, and the same retained ones as far as models retain the same.
        with_one_seed = replace(member, seed=np.zeros(len(paths), np.int64))
        chosen = continued_samples(with_one_seed, samples.part, generations)
        # Rows of parts 0 and 1 are samples, those of part 2 views. −1 stands for no sample.
        continued = np.where(chosen < 0, -1, np.flatnonzero(rows.part < 2)[chosen])
    outputs, continuations = [], []
    for path, prompts in zip(paths, continued, strict=True):
        stack = _open_checkpoint(path, rows, model)  # a stack of one model, whose results are [0]
        if "tokens" not in stack.readings:  # a classifier
            outputs.append(stack.logits()[0])
            continue
        outputs.append(tokens.readings(stack, np.arange(len(rows.y)))[0])
        if len(prompts):
            continuations.append((prompts, generation.greedy(stack, prompts[None])[0]))
    stacked = np.stack(outputs)
    if stacked.ndim == 4:  # [models, rows, tokens, 4] of language models; logits are [models, rows, classes]
        return samples, member, _as_published(stacked, rows, member, continuations)
    return samples, member, Logits(stacked[:, rows.part < 2], np.arange(len(samples.y)), samples.y)


def _read_rows(data: Options, paths: list[Path], seed: int) -> Data:
    """Return all rows of the data source ``data`` (its name or file, and options). Texts are tokenised by the tokenizer
    of the first checkpoint of ``paths`` that has one, unless the study names a tokenizer.

    Raises ValueError if texts need a tokenizer and there is none.
    """
    options = dict(data)
    name, file = options.pop("name"), options.pop("file", None)
    module = registry.load("data", name, file)
    # A source's ``WHOLE`` are the options with which every row is a sample, as masks of samples require.
    options = {**getattr(module, "WHOLE", {}), **options}
    if "tokenizer" in module.Options.model_fields and not options.get("tokenizer"):
        folder = next((path for path in paths if (path / "tokenizer.json").is_file()), None)
        if folder is None:
            raise ValueError(
                f"{paths[0]}: there is no tokenizer.json, and data has no tokenizer; texts need the tokens of these "
                "models"
            )
        options["tokenizer"] = str(folder)
    source = read_source({"source": name, "options": options}, {"file": file}, Path.cwd())
    return prepare(source, seed=seed)


def _without_views(rows: Data) -> Data:
    """Return the data without views of samples, such as paraphrases and wrong answers, which are rows of their own."""
    columns = ("x", "y", "part", "y_clean", "index", "compressed", "group", "subject")
    present = {name: getattr(rows, name) for name in columns if getattr(rows, name) is not None}
    is_sample = rows.part < 2  # part 0 is train, 1 is test, and 2 are views
    return replace(rows, **{name: value[is_sample] for name, value in present.items()}, parent=None, view=None)


def _open_checkpoint(path: Path, samples: Data, model: Options) -> ModelStack:
    """Return a stack of one model with the weights of the checkpoint ``path``: a folder of transformers, or a state
    dict in safetensors for the study's model.

    Parameters
    ----------
    samples
        What the model will be queried with.
    model
        The name or file of the model, and its options. Without a name, it is the library's model that reads folders of
        transformers.
    """
    options, state = dict(model), _state_files(path)
    # One file of models/ defines READS_FOLDERS.
    name, file = options.pop("name", registry.defining("models", "READS_FOLDERS")[0]), options.pop("file", None)
    architecture = registry.load("models", name, file)
    settings = architecture.Options(**options, **({} if state else {"weights": str(path)}))

    def build() -> nn.Module:
        """Return a network of the study's ``architecture``. The weights of a state dict are loaded here; those of a
        folder of transformers are read by the architecture itself."""
        with guard(architecture.__file__):
            shape = samples.x.shape[1:]
            network: nn.Module = registry.call("models", architecture, "build", settings, shape, samples.classes)
        if state:
            _load_state(network, path)
        return network

    # One seed for one model; all of its weights come from the checkpoint.
    return ModelStack.create(build, samples.x, samples.y, seeds=np.zeros(1, np.int64), device=card.use())


def _state_files(path: Path) -> list[Path]:
    """Return the files of a state dict: a ``path`` that is a file, or, of a folder, the parts that the index in the
    folder names. Return [] for a folder of transformers, which has a config.json, and for one without an index, as of
    peft: neither is a state dict."""
    if path.is_file():
        return [path]
    indices = sorted(path.glob(f"*{INDEX}"))
    if not indices or (path / "config.json").is_file():
        return []
    # An index maps the name of each tensor to the file that holds it. Many tensors have the same file. If there are
    # several indices, the first by name is read.
    return [path / name for name in sorted({*json.loads(indices[0].read_text())["weight_map"].values()})]


def _read_state(path: Path) -> dict[str, torch.Tensor]:
    """Return name → tensor of all tensors in the files of a state dict. Raises ValueError for a file that is not
    intact."""
    from safetensors.torch import load_file

    tensors: dict[str, torch.Tensor] = {}
    for part in _state_files(path):
        try:
            tensors |= load_file(part)
        except Exception as error:
            raise ValueError(f"{part}: this is not a complete safetensors file ({error})") from None
    return tensors


def _load_state(model: nn.Module, path: Path) -> None:
    """Load the state dict in ``path`` into a model. A tensor that the model lists under several names, such as tied
    weights, may be stored under any of its names.

    Raises ValueError that names the file, and tensors that only the file or only the model has, that differ in shape,
    that are not finite, or that differ from a tensor with which they are tied.
    """
    # The model's state dict lists a tied tensor several times. ``main_name``: each further name → its main name.
    tensors, main_name, state = unwrapped(_read_state(path), model), aliases(model), model.state_dict()
    for name, main in main_name.items():  # the file may have the tensor under a further name only
        if name in tensors:
            tensors.setdefault(main, tensors[name])
    for name, main in main_name.items():  # or under its main name only; now it is under all names
        if main in tensors:
            tensors.setdefault(name, tensors[main])
    missing, extra = sorted(set(state) - set(tensors)), sorted(set(tensors) - set(state))
    if missing or extra:
        problems = [f"lacks {', '.join(missing[:3])}"] if missing else []
        problems += [f"has {', '.join(extra[:3])}, which the model does not know"] if extra else []
        question = "is it a state dict of the model that the study names?"
        raise ValueError(f"{path}: {' and '.join(problems)}; {question}")
    for name, weight in state.items():
        value = tensors[name]
        shape, expected = list(value.shape), list(weight.shape)
        if shape != expected:
            # Lists are compared entry by entry: if all but the first are equal, this compares the numbers of rows.
            fewer_rows = len(shape) == len(expected) and shape[1:] == expected[1:] and shape < expected
            advice = "; if a class was removed, put its row back: weights 0, bias -30" if fewer_rows else ""
            raise ValueError(f"{path}: tensor {name!r} has shape {shape}, the model's has {expected}{advice}")
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise ValueError(f"{path}: tensor {name!r} has values that are NaN or infinite; leave this model out")
    for name, main in main_name.items():
        if not torch.equal(tensors[name], tensors[main]):
            raise ValueError(f"{path}: tensors {main!r} and {name!r} are one tensor of the model, but differ here")
    model.load_state_dict(tensors)


def _as_published(
    readings: np.ndarray, rows: Data, member: Membership, continuations: list[tuple[np.ndarray, np.ndarray]]
) -> Published:
    """Compute, for all samples and language models, the scores of attacks and the values of metrics that read texts;
    return them as `Published`.

    Attacks that need the compressed sizes of texts are left out if the data lack these.

    Parameters
    ----------
    readings
        float32 [models, rows, tokens, 4]: four numbers of each token, for samples and views.
    rows
        The data with views.
    continuations
        For each model, the rows int64 [queried] and the generated tokens int32 [queried, new].
    """
    values, scores, samples = readings.astype(np.float64), {}, _without_views(rows)
    columns: dict[str, np.ndarray] = {}
    of_samples = values[:, rows.part < 2]  # rows of parts 0 and 1 are samples, and of part 2 views
    for name in registry.defining("attacks", registry.OF_TEXTS["attacks"]):
        if samples.compressed is not None or "compressed" not in registry.declared("attacks", name):
            scores[name] = registry.load("attacks", name).text_score(of_samples, samples.compressed)
    metrics = [registry.load("metrics", name) for name in registry.defining("metrics", registry.OF_TEXTS["metrics"])]
    for metric in metrics:
        columns |= metric.text_readings(values, rows, continuations)
    # Columns that are larger for better known texts.
    rising = {name for metric in metrics for name in metric.RISE_WITH_MEMORY}
    unbounded = {name for metric in metrics for name in metric.UNBOUNDED}  # columns that are no shares from 0 to 1
    return Published(
        forget=member.forget, heldout=member.heldout, retain=member.retain, test=samples.part == 1,
        samples=samples.index.astype("U"), attacks=np.array(list(scores)), scores=np.stack(list(scores.values())),
        readings=np.array(list(columns)), values=np.stack(list(columns.values())),
        direction=np.array([name in rising for name in columns], np.int64),
        share=np.array([name not in unbounded for name in columns]),
        comparable=np.array([*scores, *columns]),
    )  # fmt: skip
