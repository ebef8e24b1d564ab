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
from unlearning_audit.training.engine import State, aliases, choose, forward_one, images_last, repeatable
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.streams import Batch, Rows, crop_and_flip


class Models:
    """Stacked models and their data.

    ``parameters`` and ``buffers``: name → tensor [models, …]. ``build`` returns an untrained model, and ``model`` is
    one that gives the architecture; ``engine`` computes with it, as ``backend`` and ``device`` ask (`engine.choose`).
    ``recipe``: how the models are trained. ``seeds``: one int per model, which unlearning may replace;
    ``initial_seeds``: the seeds of the initial weights. ``x``: the samples [samples, …]; uint8 is scaled to [0, 1] when
    read. ``labels``: int64 [samples] or, if models have labels of their own, [models, samples]. ``updates``: name →
    [models, …], the sum of the training steps whose batch had a recorded sample, or None if training recorded none.
    ``views``: kind → int64 [samples, most views of a sample], the rows of each sample's views of that kind, filled with
    −1. ``memorised``: float64 [samples], how much other models memorised each sample, or None. ``checkpoints``: where
    the next training stores its checkpoints, or None. ``alike``: for a sham, the same models after the method whose
    change it matches, or None. ``privacy``: what private training spent, by name, or None. ``information`` and
    ``spared``: results that `squared_gradients` keeps, and the seconds that they saved.
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
        self.build, self.seeds, self.device = build, [int(s) for s in seeds], device
        self.initial_seeds = self.seeds
        self.recipe = recipe or Recipe()
        self.model = build().to(device)
        self.parameters = {k: v.to(device) for k, v in parameters.items()}
        self.buffers = {k: v.to(device) for k, v in buffers.items()}
        self.dtype = next(iter(parameters.values())).dtype
        self.model.to(self.dtype)
        self.engine = choose(self.model, backend, device)
        self._places: dict[tuple[int, ...], Tensor] = {}  # numbers of models → the same numbers on the device (`_at`)
        self.x = torch.from_numpy(np.ascontiguousarray(x)).to(device)
        self.labels = torch.from_numpy(np.ascontiguousarray(labels)).to(device)
        self.updates: State | None = None
        self.checkpoints: Checkpoints | None = None
        self.alike: Models | None = None
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
        """The outputs of the models besides logits. A language model has "tokens" (logits of the vocabulary for every
        token), "next" (those for the token after the last) and "layer" (hidden states of a block, as "layer 3")."""
        return getattr(self.model, "readings", ())

    @property
    def vocabulary(self) -> int:
        """The number of tokens that a language model knows; 0 for any other model."""
        return int(getattr(self.model, "vocabulary", 0))

    @property
    def turned(self) -> set[str]:
        """The names of weights stored as [models, inputs, outputs]: those of transformers' Conv1D."""
        return {f"{name}.weight" for name, layer in self.model.named_modules() if type(layer).__name__ == "Conv1D"}

    def forward(self, parameters: State, buffers: State, x: Tensor, reading: str | None = None) -> Tensor:
        """Map ``x`` [n, b, …] to logits [n, b, classes] in the recipe's precision, for training; `logits` is for
        evaluation.

        ``parameters`` and ``buffers``: name → [n, …]; ``reading``: another output of the models, one of `readings`.
        """
        if self.recipe.precision == "float32":
            return self.engine.forward(parameters, buffers, x, reading)
        # No cache: a cached cast would be reused when recorded steps are replayed.
        with torch.autocast(torch.device(self.device).type, torch.bfloat16, cache_enabled=False):
            return self.engine.forward(parameters, buffers, x, reading).to(self.dtype)

    def read(self, models: list[int], rows: Tensor, jitter: Tensor | None = None) -> Batch:
        """Return the samples ``rows`` int64 [n, b] with the labels that they have for each of the n ``models``, as a
        Batch without logits.

        ``jitter`` uint8 [n, b, 3] shifts and mirrors images (`streams.crop_and_flip`).
        """
        rows = rows.to(self.device)
        index, flat = self._at(models), rows.flatten()
        # On a CPU, index_select is faster than an index of two dimensions.
        labels = self.labels.index_select(0, flat).view_as(rows) if self.labels.ndim == 1 else self.labels[index, rows]
        x = self.scaled(self.x.index_select(0, flat).view(*rows.shape, *self.x.shape[1:]))
        if jitter is not None:
            x = crop_and_flip(x, jitter)
        return Batch(x=x, labels=labels, rows=rows, models=models, at=index)

    def _at(self, models: list[int]) -> Tensor:
        """Return the numbers of ``models`` on the device, int64 [n, 1], an index beside rows [n, b]. They are kept
        there, because every copy to a card would wait for it."""
        key = tuple(models)
        if key not in self._places:
            self._places[key] = torch.tensor(models, device=self.device)[:, None]
        return self._places[key]

    def scaled(self, x: Tensor) -> Tensor:
        """Return samples as models read them: uint8 scaled to [0, 1], reals in the stack's precision, integers
        unchanged."""
        if x.dtype == torch.uint8:
            return x.to(self.dtype) / 255
        return x.to(self.dtype) if x.is_floating_point() else x

    def state(self, model: int) -> tuple[State, State]:
        """Return copies of the parameters and buffers of one model.

        Copies are needed because the last bits of a matrix product depend on the alignment of its factors.
        """
        parameters = {k: v[model].clone() for k, v in self.parameters.items()}
        return parameters, {k: v[model].clone() for k, v in self.buffers.items()}

    @torch.no_grad()
    @repeatable()
    def logits(self, index: np.ndarray | None = None, chunk: int | None = None) -> np.ndarray:
        """Return logits float32 [models, rows, classes] in evaluation mode, without augmentation.

        The result is bitwise repeatable, so that a method that changes nothing can be detected. ``index`` int [rows]:
        the samples, by default all. ``chunk``: samples that are processed at once, fewer if memory is exhausted. By
        default it is 2048, with two exceptions. A language model computes logits of the whole vocabulary for every
        token, and a chunk has at most 2²¹ of them (8 MiB in float32). A chunk of images on a CPU has 64 samples, so
        that activations stay in its caches (two to four times as fast for small residual networks).
        """
        if chunk is None:
            logits_of_sample = self.x.shape[1] * self.vocabulary if "tokens" in self.readings else 1
            images_on_cpu = self.x.ndim == 4 and torch.device(self.device).type == "cpu"
            chunk = max(1, min(64 if images_on_cpu else 2048, 2**21 // logits_of_sample))
        rows = torch.arange(len(self.x)) if index is None else torch.from_numpy(np.asarray(index))
        self.model.eval()

        def answer(weights: tuple[State, State], part: slice) -> Tensor:
            """Return the logits of the model with these ``weights`` for a ``part`` of the rows."""
            return forward_one(self.model, *weights, images_last(self.scaled(self.x[rows[part].to(self.device)])))

        parts = (chunks(len(rows), chunk, partial(answer, self.state(model))) for model in range(len(self)))
        return np.stack([torch.cat([*parts_of_model]).float().cpu().numpy() for parts_of_model in parts])

    def predictions(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logit-scaled confidence log p/(1 − p) of the true class, float32 [models, rows], for the samples
        ``rows`` int64 [rows], and whether the prediction is right, bool [models, rows]."""
        from unlearning_audit import stats

        logits, y = self.logits(rows), np.broadcast_to(self.labels.cpu().numpy(), (len(self), len(self.x)))[:, rows]
        return stats.phi(logits=logits, y=y).astype(np.float32), logits.argmax(-1) == y

    @torch.no_grad()
    @repeatable()
    def answers(self, weights: tuple[State, State], x: Tensor, reading: str) -> Tensor:
        """Return the output ``reading``, one of `readings`, of one model for ``x`` [rows, …], in evaluation mode.

        ``weights``: the model's parameters and buffers, as `state` returns them.
        """
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
        # Of a tensor with several names, the stack has the first only.
        module.load_state_dict({**parameters, **buffers}, strict=False)

    def labels_of(self, model: int, rows: np.ndarray | Tensor) -> Tensor:
        """Return the labels with which the model with the number ``model`` was trained, for the samples ``rows``: int64
        [rows]."""
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

        ``labels`` observed: the mean of (∂ CE(x, y)/∂θ)²; ``model``: the mean of Σ_y p(y|x)(∂ CE(x, y)/∂θ)². With
        ``per_sample`` False, the gradients of means over batches of ``batch_size`` are squared instead, as some
        published code does. If ``information`` is a dict, results are kept there: a second call with the same weights,
        labels and arguments returns the first result and adds the seconds saved to ``spared``.
        """
        compute = partial(curvature.squares, labels=labels, per_sample=per_sample, batch_size=batch_size)
        if self.information is None:
            return self.per_model(rows, compute)
        content = hashlib.sha256(repr((labels, per_sample, batch_size)).encode() + rows.index.tobytes())
        for value in (*self.parameters.values(), *self.buffers.values(), self.labels):  # all that the result depends on
            content.update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().data)
        if content.digest() in self.information:
            result, seconds = self.information[content.digest()]
            self.spared += seconds
        else:
            start = time.perf_counter()
            result = self.per_model(rows, compute)
            self.information[content.digest()] = result, time.perf_counter() - start
        return result

    def squared_norms(self, rows: Rows) -> Tensor:
        """Return ‖∂ log p(y|x)/∂θ‖² of each model for its samples ``rows`` with their observed labels, [models, rows]
        (Becker & Liebig 2022, eq. 4)."""
        return self.per_model(rows, lambda *network: {"norms": curvature.squared_norms(*network)})["norms"]

    def per_model(self, rows: Rows, compute: Callable[..., State]) -> State:
        """Call ``compute`` for each model on its ``rows`` in evaluation mode, and return the stacked results, name →
        [models, …].

        ``compute`` maps (model, parameters, buffers, x, y) to name → tensor.
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

        Raises ValueError if it has other tensors than the stack, or if two names of one tied tensor have different
        values.
        """
        state = dict(weights.state_dict() if isinstance(weights, nn.Module) else weights)
        for name, first in aliases(self.model).items():  # a tied tensor is stored under the first of its names
            value = state.pop(name, None)
            # NaN, which differs from itself, is replaced, so that equal tensors of a diverged model count as equal.
            if value is not None and not torch.equal(value.nan_to_num(), state.setdefault(first, value).nan_to_num()):
                raise ValueError(f"tensors {first!r} and {name!r} are one tensor of the model, and differ now")
        places = {name: value[model] for name, value in (self.parameters | self.buffers).items()}
        problem = mismatch(state, places)
        if problem:
            raise ValueError(f"the architecture must stay as it is: {problem}")
        for name, place in places.items():
            place.copy_(state[name].detach())


def mismatch(state: State, expected: State) -> str:
    """Return a sentence on the first tensor of ``state`` that is missing, or is none of the ``expected`` ones, or has
    another shape than it; "" if there is none."""
    for name in expected | state:
        if name not in state:
            return f"tensor {name!r} of shape {tuple(expected[name].shape)} is missing"
        if name not in expected:
            return f"tensor {name!r} of shape {tuple(state[name].shape)} belongs to another model"
        if state[name].shape != expected[name].shape:
            return f"tensor {name!r} has shape {tuple(state[name].shape)}, expected {tuple(expected[name].shape)}"
    return ""
