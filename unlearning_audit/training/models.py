"""Models of one architecture as stacked tensors, with their data: state, logits and gradients.

A model's numbers do not depend on the other models of its batch. Initial weights, sample order, augmentation and noise
come from generators keyed by the model's own seed (`randomness.keyed`), never from a shared stream.
"""

import copy
import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unlearning_audit.training import curvature
from unlearning_audit.training.checkpoints import Checkpoints
from unlearning_audit.training.chunks import chunks
from unlearning_audit.training.engine import State, aliases, choose_engine, forward_one, images_last, repeatable
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.streams import Batch, Rows, crop_and_flip


class Models:
    """Stacked models and their data.

    Parameters
    ----------
    build
        ``build()`` returns an untrained model.
    model
        A model that gives the architecture.
    engine
        What computes with ``model``, as ``backend`` and ``device`` ask (`choose_engine`).
    parameters, buffers
        Name → tensor [models, …].
    recipe
        How the models are trained.
    seeds
        One int per model, which unlearning may replace.
    initial_seeds
        The seeds of the initial weights.
    x
        [samples, …]: the samples; uint8 is scaled to [0, 1] when read.
    labels
        int64 [samples] or, if models have labels of their own, [models, samples].
    updates
        Name → [models, …]: the sum of the training steps whose batch had a recorded sample, or None if training
        recorded none.
    checkpoints
        Where the next training stores its checkpoints, or None.
    matched
        For a sham, the same models after the method whose change it matches, or None.
    information
        The results that `squared_gradients` keeps, or None if it keeps none.
    spared
        The seconds that these results saved.
    privacy
        What private training spent, by name, or None.
    views
        Kind → int64 [samples, most views of a sample]: the rows of each sample's views of that kind, filled with −1.
    memorised
        float64 [samples]: how much other models memorised each sample, or None.
    """

    def __init__(
        self,
        build: Callable[[], nn.Module],
        x: np.ndarray,
        labels: np.ndarray,
        seeds: Collection[int],
        *,
        parameters: State,
        buffers: State,
        recipe: Recipe | None = None,
        backend: str = "auto",
        device: str = "cpu",
    ) -> None:
        """Move weights and data to the ``device``. What is optional is empty at first, as the class describes it."""
        self.build, self.seeds, self.device = build, [int(seed) for seed in seeds], device
        self.initial_seeds = self.seeds
        self.recipe = recipe or Recipe()
        self.model = build().to(device)
        self.parameters = {name: value.to(device) for name, value in parameters.items()}
        self.buffers = {name: value.to(device) for name, value in buffers.items()}
        self.dtype = next(iter(parameters.values())).dtype
        self.model.to(self.dtype)
        self.engine = choose_engine(self.model, backend, device)
        self._numbers: dict[tuple[int, ...], Tensor] = {}  # numbers of models → the same on the device (`_on_device`)
        self.x = torch.from_numpy(np.ascontiguousarray(x)).to(device)
        self.labels = torch.from_numpy(np.ascontiguousarray(labels)).to(device)
        self.updates: State | None = None
        self.checkpoints: Checkpoints | None = None
        self.matched: Models | None = None
        self.information: dict[bytes, tuple[State, float]] | None = None
        self.spared = 0.0
        self.privacy: dict[str, Any] | None = None
        self.views: dict[str, Tensor] = {}
        self.memorised: np.ndarray | None = None

    def __len__(self) -> int:
        """Return the number of models."""
        return len(self.seeds)

    @property
    def readings(self) -> tuple[str, ...]:
        """The names of the models' outputs besides logits. A language model has "tokens" (logits of the vocabulary for
        every token), "next" (those for the token after the last) and "layer" (hidden states of a block, as "layer
        3")."""
        return getattr(self.model, "readings", ())

    @property
    def vocabulary(self) -> int:
        """The number of tokens that a language model knows; 0 for any other model."""
        return int(getattr(self.model, "vocabulary", 0))

    @property
    def turned(self) -> set[str]:
        """The names of the weights that are stored as [models, inputs, outputs] instead of [models, outputs, inputs]:
        those of transformers' Conv1D."""
        return {f"{name}.weight" for name, layer in self.model.named_modules() if type(layer).__name__ == "Conv1D"}

    def forward(self, parameters: State, buffers: State, x: Tensor, reading: str | None = None) -> Tensor:
        """Map ``x`` [n, b, …] of n models to logits [n, b, classes] in the recipe's precision, for training. (`logits`
        is for evaluation.)

        Parameters
        ----------
        parameters, buffers
            Name → [n, …].
        x
            [n, b, …]: the samples of each model.
        reading
            If given, the output of that name is returned instead of logits (`readings`).
        """
        if self.recipe.precision == "float32":
            return self.engine.forward(parameters, buffers, x, reading)
        # No cache: a step that is replayed from a CUDA graph would reuse weights that were cast to bfloat16 before.
        with torch.autocast(torch.device(self.device).type, torch.bfloat16, cache_enabled=False):
            return self.engine.forward(parameters, buffers, x, reading).to(self.dtype)

    def read(self, models: list[int], rows: Tensor, jitter: Tensor | None = None) -> Batch:
        """Return the samples ``rows`` with the labels that they have for each of the n ``models``, as a Batch without
        logits.

        Parameters
        ----------
        models
            The numbers of the models.
        rows
            int64 [n, b]: the numbers of each model's samples.
        jitter
            uint8 [n, b, 3]: how images are shifted and mirrored (`streams.crop_and_flip`), or None.
        """
        rows = rows.to(self.device)
        numbers, flat_rows = self._on_device(models), rows.flatten()
        # Labels are [models, samples] or [samples]. On a CPU, index_select is faster than an index of two dimensions.
        labels = self.labels[numbers, rows] if self.labels.ndim == 2 else self.labels.index_select(0, flat_rows)
        x = self.scaled(self.x.index_select(0, flat_rows).view(*rows.shape, *self.x.shape[1:]))
        if jitter is not None:
            x = crop_and_flip(x, jitter)
        return Batch(x=x, labels=labels.view_as(rows), rows=rows, models=models, at=numbers)

    def _on_device(self, models: list[int]) -> Tensor:
        """Return the numbers of ``models`` as a tensor on the device, int64 [n, 1], to index tensors together with rows
        [n, b]. The tensor is kept for the next call, because a copy to a card would wait for the card."""
        key = tuple(models)
        if key not in self._numbers:
            self._numbers[key] = torch.tensor(models, device=self.device)[:, None]
        return self._numbers[key]

    def scaled(self, x: Tensor) -> Tensor:
        """Return samples as models read them: uint8 scaled to [0, 1], reals in the stack's precision, integers
        unchanged."""
        if x.dtype == torch.uint8:
            return x.to(self.dtype) / 255
        return x.to(self.dtype) if x.is_floating_point() else x

    def state(self, model: int) -> tuple[State, State]:
        """Return copies of the parameters and buffers of the model with the number ``model``: name → tensor each.

        A copy begins at an aligned address, and a slice of the stack need not. The last bits of a matrix product depend
        on that.
        """
        parameters = {name: value[model].clone() for name, value in self.parameters.items()}
        return parameters, {name: value[model].clone() for name, value in self.buffers.items()}

    @torch.no_grad()
    @repeatable()
    def logits(self, index: np.ndarray | None = None, chunk: int | None = None) -> np.ndarray:
        """Return logits float32 [models, rows, classes] in evaluation mode, without augmentation.

        The result is bitwise repeatable, so that a method that changes nothing can be detected.

        Parameters
        ----------
        index
            int [rows]: the samples, by default all.
        chunk
            How many samples are processed at once, fewer if memory is exhausted; by default 2048, with two exceptions.
            A language model computes logits of the whole vocabulary for every token, and a chunk has at most 2²¹ of
            them (8 MiB in float32). A chunk of images on a CPU has 64 samples, so that activations stay in its caches
            (two to four times as fast for small residual networks).
        """
        if chunk is None:
            logits_of_sample = self.x.shape[1] * self.vocabulary if "tokens" in self.readings else 1
            images_on_cpu = self.x.ndim == 4 and torch.device(self.device).type == "cpu"
            chunk = max(1, min(64 if images_on_cpu else 2048, 2**21 // logits_of_sample))
        rows = torch.arange(len(self.x)) if index is None else torch.from_numpy(np.asarray(index))
        self.model.eval()

        def compute(weights: tuple[State, State], x: Tensor) -> Tensor:
            """Return the logits of the model with these ``weights`` for samples ``x``."""
            return forward_one(self.model, *weights, images_last(self.scaled(x)))

        return np.stack([self.by_chunks(model, rows, chunk, compute).numpy() for model in range(len(self))])

    def by_chunks(
        self, model: int, rows: Tensor, size: int, compute: Callable[[tuple[State, State], Tensor], Tensor]
    ) -> Tensor:
        """Return what ``compute`` makes of the weights of the model with the number ``model`` (parameters, buffers) and
        of the samples ``rows`` int64 [rows], not yet `scaled`, of ``size`` of them at once, or fewer if memory is
        exhausted: float32 [rows, …], on the processor."""
        weights = self.state(model)  # copied once, not for every chunk
        parts = chunks(len(rows), size, lambda part: compute(weights, self.x[rows[part].to(self.device)]))
        return torch.cat([part.float().cpu() for part in parts])

    def predictions(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what the models predict for the samples ``rows`` int64 [rows]: the logit-scaled confidence log p/(1 −
        p) of the true class, float32 [models, rows], and whether the prediction is right, bool [models, rows]."""
        from unlearning_audit import stats

        logits = self.logits(rows)
        # True classes. Labels that all models share, [samples], are repeated for each model.
        y = np.broadcast_to(self.labels.cpu().numpy(), (len(self), len(self.x)))[:, rows]
        return stats.phi(logits=logits, y=y).astype(np.float32), logits.argmax(-1) == y

    @torch.no_grad()
    @repeatable()
    def output(self, weights: tuple[State, State], x: Tensor, reading: str) -> Tensor:
        """Return, for ``x`` [rows, …], the output of one model that ``reading`` names (`readings`), in evaluation mode.
        ``weights``: the model's parameters and its buffers, name → tensor each."""
        self.model.eval()
        return forward_one(self.model, *weights, self.scaled(x), reading)

    def extract(self, model: int) -> nn.Module:
        """Return the model with the number ``model`` as a module that shares no memory with the stack."""
        module = copy.deepcopy(self.model)
        self.fill(module, model)
        return module

    def fill(self, module: nn.Module, model: int) -> None:
        """Copy the weights of the model with the number ``model`` into a ``module`` of the same architecture."""
        parameters, buffers = self.state(model)
        # Not strict: of a tensor with several names, the stack has the first only, and that sets all of them.
        module.load_state_dict({**parameters, **buffers}, strict=False)

    def labels_of(self, model: int, rows: np.ndarray | Tensor) -> Tensor:
        """Return the labels that the model with the number ``model`` has for the samples ``rows``, int64 [rows]. Models
        may have labels of their own; if not, all have the same."""
        labels = self.labels[model] if self.labels.ndim == 2 else self.labels
        return labels[torch.as_tensor(rows, device=self.device)]

    def gradient(self, rows: Rows) -> State:
        """Return the gradient of each model's mean cross-entropy over its ``rows`` in evaluation mode: name → [models,
        …]."""
        return self.per_model(rows, curvature.mean_gradient)

    def squared_gradients(
        self, rows: Rows, *, labels: str = "observed", per_sample: bool = True, batch_size: int = 64
    ) -> State:
        """Return each model's diagonal Fisher information over its ``rows``, name → [models, …].

        If the attribute ``information`` is a dict, results are kept there: a second call with the same weights, labels
        of samples and arguments returns the first result and adds the seconds that this saves to ``spared``.

        Parameters
        ----------
        labels
            "observed": the mean over samples of the squared gradient of the cross-entropy. "model": the squared
            gradient for each possible label counts with the label's probability by the model.
        per_sample
            If False, the gradients of means over batches with observed labels are squared instead, as some published
            code does.
        batch_size
            The size of these batches; without effect if ``per_sample``.
        """
        compute = partial(curvature.mean_squares, labels=labels, per_sample=per_sample, batch_size=batch_size)
        if self.information is None:
            return self.per_model(rows, compute)
        # A key from the bytes of all that the result depends on, but for the inputs, which are the same in all calls.
        content = hashlib.sha256(repr((labels, per_sample, batch_size)).encode() + rows.index.tobytes())
        for value in (*self.parameters.values(), *self.buffers.values(), self.labels):
            content.update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().data)
        key = content.digest()
        if key not in self.information:
            start = time.perf_counter()
            result = self.per_model(rows, compute)
            self.information[key] = result, time.perf_counter() - start
            return result
        result, seconds = self.information[key]
        self.spared += seconds
        return result

    def squared_norms(self, rows: Rows) -> Tensor:
        """Return the squared norm of the gradient of log p(observed label) in the weights, for each model and each of
        its samples ``rows``: [models, rows] (Becker & Liebig 2022, eq. 4)."""
        # `per_model` stacks dictionaries, so the norms get a name.
        return self.per_model(rows, lambda *arguments: {"norms": curvature.squared_norms(*arguments)})["norms"]

    def per_model(self, rows: Rows, compute: Callable[..., State]) -> State:
        """Call ``compute`` once for each model, in evaluation mode, and return the stacked results: name → [models, …].

        ``compute`` maps (network, its parameters, its buffers, samples x, labels y) to name → tensor. The samples are
        the model's ``rows``, and the labels are those that it has for them.
        """
        self.model.eval()
        results = []
        for model in range(len(self)):
            index = torch.from_numpy(rows.index[model]).to(self.device)
            x, y = self.scaled(self.x[index]), self.labels_of(model, index)
            results.append(compute(self.model, *self.state(model), x, y))
        return {name: torch.stack([result[name] for result in results]) for name in results[0]}

    def insert(self, model: int, weights: nn.Module | Mapping[str, Tensor]) -> None:
        """Replace the weights of the model with the number ``model`` by ``weights``, a module or a state dict.

        A tied tensor may be given under any of its names. Raises ValueError if the given tensors are not those of the
        architecture, or if two names of one tied tensor have different values.
        """
        state = dict(weights.state_dict() if isinstance(weights, nn.Module) else weights)
        for name, first_name in aliases(self.model).items():  # the stack has a tied tensor under its first name
            if name in state:
                value = state.pop(name)
                first_value = state.setdefault(first_name, value)
                # NaN differs from itself and is replaced, so that equal tensors of a diverged model count as equal.
                if not torch.equal(value.nan_to_num(), first_value.nan_to_num()):
                    raise ValueError(f"tensors {first_name!r} and {name!r} are one tensor of the model, and differ now")
        stored = {name: value[model] for name, value in (self.parameters | self.buffers).items()}  # views of the stack
        problem = mismatch(state, stored)
        if problem:
            raise ValueError(f"the architecture must stay as it is: {problem}")
        for name, value in stored.items():
            value.copy_(state[name].detach())


def mismatch(state: State, expected: State) -> str:
    """Return a sentence on the first tensor that is missing from ``state``, is in ``state`` and not ``expected``, or
    has another shape than expected. Return "" if names and shapes are equal."""
    for name in expected | state:
        if name not in state:
            return f"tensor {name!r} of shape {tuple(expected[name].shape)} is missing"
        if name not in expected:
            return f"tensor {name!r} of shape {tuple(state[name].shape)} belongs to another model"
        if state[name].shape != expected[name].shape:
            return f"tensor {name!r} has shape {tuple(state[name].shape)}, expected {tuple(expected[name].shape)}"
    return ""
