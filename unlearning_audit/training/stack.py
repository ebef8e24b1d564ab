"""A stack: N models of one architecture, with different memberships and seeds, trained and edited as one object."""

import copy
import json
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unlearning_audit.randomness.keyed import seed_of
from unlearning_audit.store import files
from unlearning_audit.training import lanes
from unlearning_audit.training.checkpoints import Checkpoints
from unlearning_audit.training.engine import State, aliases
from unlearning_audit.training.fitting import Fit, Penalty
from unlearning_audit.training.models import Models, mismatch
from unlearning_audit.training.optim import Optimiser
from unlearning_audit.training.streams import Batch, Rows, Stream, class_weighted_loss

#: Prefix of the names of recorded updates in models.safetensors.
UPDATE = "update/"

#: The names of the tensors in a file that states why there are no models.
FAILURE = {"part", "why"}


class ModelStack(Models):
    """Models that can be trained, edited and written to a file. Every training and unlearning method works on a
    stack."""

    @classmethod
    def create(
        cls,
        build: Callable[[], nn.Module],
        x: np.ndarray,
        labels: np.ndarray,
        seeds: Collection[int],
        *,
        dtype: torch.dtype = torch.float32,
        alike: bool = False,
        **settings: Any,
    ) -> "ModelStack":
        """Return a stack of freshly initialised models, one for each of ``seeds``.

        The initial weights of a model depend on its seed alone.

        Parameters
        ----------
        build
            ``build()`` returns an untrained model.
        x
            [samples, …]: the samples.
        labels
            int64 [samples] or [models, samples]: the labels.
        seeds
            The seed of each model.
        dtype
            The precision of weights.
        alike
            Whether all models get the weights of the first seed, which saves time if other weights will be loaded
            afterwards.
        settings
            ``recipe``, how `train` trains; ``backend``, "stacked", "serial" or "auto", which takes the faster engine;
            and the ``device``, "cpu" or "cuda".
        """
        parameters: dict[str, Tensor] = {}
        buffers: dict[str, Tensor] = {}
        for number, seed in enumerate(seeds):  # one at a time, so that only one of large models is in memory twice
            if number == 0 or not alike:  # if all are alike, the first model serves for each
                fresh = initialised(build, seed, dtype)
            weights = {name: value.detach() for name, value in fresh.named_parameters()}
            further_names = aliases(fresh)
            for name, value in (weights | fresh.state_dict()).items():
                if name in further_names:  # of a tied tensor, only the first name is stored
                    continue
                stacked = parameters if name in weights else buffers
                if number == 0:
                    stacked[name] = value.new_empty((len(seeds), *value.shape))
                stacked[name][number] = value
        return cls(build, x, labels, seeds, parameters=parameters, buffers=buffers, **settings)

    # ------------------------------------------------------------------ training

    def train(self, rows: Rows, record: np.ndarray | None = None) -> State | None:
        """Train every model by the stack's recipe on its ``rows``, as originals, retrained and shadow models are. A
        recipe with DP trains privately.

        Parameters
        ----------
        record
            bool [models, samples]: marks samples. The sum of the updates of the steps whose batch had a marked sample
            is kept as ``updates``.

        Returns
        -------
        dict or None
            With ``record``, that sum for each model, name → [models, …]; None without.

        Raises
        ------
        ValueError
            For a recipe with DP and ``record``.
        """
        recipe = self.recipe
        checkpoints, self.checkpoints = self.checkpoints, None  # they belong to this training and to no later one
        if recipe.dp is not None:
            if record is not None:
                raise ValueError("recipe: record_updates cannot be kept under dp; drop one of the two")
            from unlearning_audit.training import private

            private.train(self, rows, recipe.dp, checkpoints)
            return None
        balanced = recipe.class_weights == "balanced"
        stream = Stream(rows, loss=class_weighted_loss(self.labels, rows)) if balanced else Stream(rows)
        # With ``record`` there are no checkpoints, because they do not hold the sums of updates.
        self.updates = self.fit(
            stream, optimiser=recipe, epochs=recipe.epochs, purpose="train", record=record,
            checkpoints=checkpoints if record is None else None,
        )  # fmt: skip
        return self.updates

    def fit(
        self,
        *passes: Stream | tuple[Stream, ...],
        optimiser: Optimiser | tuple[Optimiser, ...],
        epochs: int,
        purpose: str,
        training: bool = True,
        only: Collection[str] | None = None,
        mask: State | None = None,
        scale: State | None = None,
        penalty: Penalty | None = None,
        record: np.ndarray | None = None,
        steps: int | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> State | None:
        """Train every model by an optimiser on streams of batches. On a GPU, groups of models train at the same time.

        An epoch runs the ``passes`` in order. All passes share one ``optimiser``, or have one each. If a pass has
        several streams, each of its steps reads one batch of each. The first stream then sets the number of steps, and
        every other stream begins again when it is at its end.

        Parameters
        ----------
        passes : Stream or tuple of Stream
            The streams of each pass.
        optimiser : Optimiser or tuple of Optimiser
            The settings for all passes, or one for each.
        epochs : int
            How often the passes are run.
        purpose : str
            The key of the sample order, beside each model's seed.
        training : bool
            If False, batch-norm statistics are frozen.
        only : collection of str, optional
            The names of the parameters that are trained; by default all.
        mask : dict, optional
            Name → bool [models, …], for each parameter that is trained: the weights that are trained. All others are
            restored exactly after every step.
        scale : dict, optional
            Name → float [models, …]: the factors of gradients (not of the weight decay), 1 where a name is missing.
        penalty : callable, optional
            ``penalty(parameters, epoch)`` returns one value per model, which is added to the loss.
        record : bool [models, samples], optional
            Marks samples: the updates of the steps whose batch had a marked sample are summed. For passes of one
            stream.
        steps : int, optional
            The number of steps in all after which training ends.
        checkpoints : Checkpoints, optional
            Where an interrupted training resumes; for one pass of one stream.

        Returns
        -------
        dict or None
            With ``record``, the sum of those updates for each model: name → [models, …]; None without.

        Raises
        ------
        ValueError
            A stream has no rows.
        """
        self.model.train(training)
        streams = tuple((each,) if isinstance(each, Stream) else tuple(each) for each in passes)  # of each pass
        fit = Fit(self, streams, optimiser, epochs, purpose, only, mask, scale, penalty, record, steps, checkpoints)
        return lanes.run(fit) if torch.device(self.device).type == "cuda" else fit.run()

    # ------------------------------------------------------------------ editing

    @property
    def final_layer(self) -> str | None:
        """The dotted name of the final layer, such as "fc", or None if there is none. Networks of the library say it in
        ``head``. For a user's model it was stored as ``final_layer_name`` when the model was built."""
        return getattr(self.model, "final_layer_name", None) or getattr(self.model, "head", None)

    @property
    def head(self) -> list[str]:
        """The names of the final layer's parameters. Raises ValueError for a model without a final layer of its own."""
        if self.final_layer is None:
            raise ValueError(
                "this model has no final layer of its own, because its output weights are those of its tokens; leave "
                "out methods that train or reset the final layer"
            )
        return [name for name in self.parameters if name.startswith(f"{self.final_layer}.")]

    def reset_head(self, purpose: str) -> None:
        """Give every model a newly initialised final layer. It is taken from a new model that ``build`` makes, with a
        seed derived from the model's own seed and ``purpose``.

        If ``build`` reads the final layer from a file of weights, all models get the layer of that file. Raises
        ValueError for a model without a final layer of its own.
        """
        for model, seed in enumerate(self.seeds):
            fresh = dict(initialised(self.build, seed_of(seed, purpose), self.dtype).named_parameters())
            for name in self.head:
                self.parameters[name][model] = fresh[name].detach().to(self.device)

    def reset(self, purpose: str | None) -> None:
        """Reinitialise all weights, and forget the updates and the privacy account of the training before.

        With a ``purpose``, each model gets a new seed, derived from its old one and ``purpose``. With None, seeds stay
        and the weights are those before any training.
        """
        if purpose is not None:
            self.seeds = self.initial_seeds = [seed_of(seed, purpose) for seed in self.seeds]
        # Only the weights of ``fresh`` are used; any sample and label will do for its data.
        seeds, sample = self.initial_seeds, self.x[:1].cpu().numpy()
        fresh = ModelStack.create(self.build, sample, labels=np.zeros(1, np.int64), seeds=seeds, dtype=self.dtype)
        self.updates, self.privacy = None, None
        self.parameters = {name: value.to(self.device) for name, value in fresh.parameters.items()}
        self.buffers = {name: value.to(self.device) for name, value in fresh.buffers.items()}

    def noise(self, purpose: str) -> State:
        """Return standard normal noise for every parameter: name → [models, …]. Each model's noise depends on its own
        seed and ``purpose`` alone."""
        generators = [torch.Generator().manual_seed(seed_of(seed, purpose)) for seed in self.seeds]
        noise = {}
        for name, value in self.parameters.items():
            of_models = [torch.randn(value.shape[1:], generator=rng, dtype=self.dtype) for rng in generators]
            noise[name] = torch.stack(of_models).to(self.device)
        return noise

    @torch.no_grad()
    def edit(self, change: Callable[[str, Tensor], Tensor]) -> None:
        """Replace every parameter by ``change(name, value)``, where ``value`` and the result are [models, …]."""
        self.parameters = {name: change(name, value) for name, value in self.parameters.items()}

    def copy(self) -> "ModelStack":
        """Return a stack with copies of all weights and of ``updates``, if there are any. Data and labels are shared;
        the copy stores no checkpoints."""
        duplicate = copy.copy(self)
        duplicate.checkpoints = None
        duplicate.parameters = {name: value.clone() for name, value in self.parameters.items()}
        duplicate.buffers = {name: value.clone() for name, value in self.buffers.items()}
        if self.updates is not None:
            duplicate.updates = {name: value.clone() for name, value in self.updates.items()}
        return duplicate

    def take(self, models: np.ndarray) -> "ModelStack":
        """Return a stack with copies of some of the models: ``models`` int64 [any] are their numbers, in the order
        wanted. A number may occur more than once."""
        subset, index = self.copy(), torch.from_numpy(models)
        subset.seeds, subset.initial_seeds = [self.seeds[m] for m in models], [self.initial_seeds[m] for m in models]
        for state in (subset.parameters, subset.buffers, subset.updates or {}):
            state.update({name: value[index] for name, value in state.items()})
        subset.labels = self.labels[index] if self.labels.ndim == 2 else self.labels
        return subset

    def frozen(self) -> "Teacher":
        """Return a frozen copy of the models, such as a teacher for distillation."""
        return Teacher(self)

    # ------------------------------------------------------------------ files

    def write(self, path: str | Path) -> None:
        """Write all models to the file ``path``, a ``models.safetensors``: one stacked tensor for each parameter,
        buffer and recorded update."""
        from safetensors.torch import save_file

        tensors = {name: value.detach().cpu().contiguous() for name, value in self.stored().items()}
        with files.replacing(path) as temporary:
            save_file(tensors, temporary)

    def stored(self) -> State:
        """Return the tensors that `write` stores, by name: parameters, buffers and, with the prefix `UPDATE`, recorded
        updates."""
        updates = {UPDATE + name: value for name, value in (self.updates or {}).items()}
        return {**self.parameters, **self.buffers, **updates}

    def load(self, path: str | Path, finite: bool = True, models: np.ndarray | None = None) -> None:
        """Replace weights and ``updates`` by those in the file ``path``, a ``models.safetensors``. ``updates`` are None
        if the file has none.

        Parameters
        ----------
        finite
            Whether all values must be finite.
        models
            int64: which models of the file this stack takes, by default all.

        Raises
        ------
        ArtifactError
            If tensors are missing or of another model. The message names file and tensor, and the stack is unchanged.
        NotFiniteError
            For NaN and infinite values, if all must be finite; then too the stack is unchanged.
        """
        stored = read_models(path)
        if models is not None:
            stored = {name: value[torch.from_numpy(models)] for name, value in stored.items()}
        expected = self.parameters | self.buffers  # the names and shapes that the file must have
        if any(name.startswith(UPDATE) for name in stored):
            expected |= {UPDATE + name: value for name, value in self.parameters.items()}
        problem = mismatch(stored, expected)
        if problem:
            raise files.ArtifactError(f"{path}: {problem} (models first); delete the file and run again")
        for name, value in stored.items():
            count = int((~value.isfinite()).sum()) if finite else 0
            if count:
                raise files.NotFiniteError(
                    f"{path}: tensor {name!r} has {count} values that are NaN or infinite; training diverged, or the "
                    "file is damaged: choose a smaller lr, or delete the file and run again"
                )
        loaded = {name: stored[name].to(self.device, value.dtype) for name, value in expected.items()}
        self.parameters = {name: loaded[name] for name in self.parameters}
        self.buffers = {name: loaded[name] for name in self.buffers}
        self.updates = {name: loaded[UPDATE + name] for name in self.parameters if UPDATE + name in loaded} or None


@contextmanager
def writing_in_portions(path: str | Path, count: int) -> Iterator[Callable[[np.ndarray, ModelStack], None]]:
    """Within the context, ``count`` models are written to the file ``path``, a ``models.safetensors``, some at a time,
    so that they need not be in memory together. When the context ends, the file is complete, with the same bytes as one
    `ModelStack.write` of all models would give it.

    Yields the function that writes the models of a stack. Its arguments: their numbers in the file, int64 [models of
    the stack], and the stack.
    """
    mapped: dict[str, np.memmap] = {}  # name of a tensor → its bytes in the file, uint8 [models, bytes of one]
    with ExitStack() as contexts:

        def write(models: np.ndarray, stack: ModelStack) -> None:
            """Write the models of ``stack`` to the file, where they have the numbers ``models``. The first call fills
            ``mapped`` of the function around this one, unless it writes all models."""
            if np.array_equal(models, np.arange(count)):  # all models at once
                stack.write(path)
                return
            stored = stack.stored()
            if not mapped:  # at the first call, the file is made
                temporary = contexts.enter_context(files.replacing(path))
                mapped.update(_create_models_file(temporary, count, stored))
            for name, value in stored.items():
                content = value.detach().cpu().contiguous().flatten().view(torch.uint8).reshape(len(models), -1)
                mapped[name][models] = content.numpy()

        yield write
        for content_of_all in mapped.values():
            content_of_all.flush()


def _create_models_file(path: Path, count: int, stored: State) -> dict[str, np.memmap]:
    """Create the file ``path`` with its header and room for ``count`` models.

    Return where each tensor lies in it: name → memory-mapped bytes, uint8 [models, bytes of one].

    The header has the order and form that safetensors itself writes: it is taken from a file of the same tensors for no
    models, and then gets ``count`` and offsets.

    Parameters
    ----------
    stored
        The tensors of some models, [models, …] each, which give names, types and shapes.
    """
    from safetensors.torch import save

    # A file is the length of the header in 8 bytes, the header in JSON, and the tensors one after the other.
    empty = save({name: value[:0].cpu() for name, value in stored.items()})
    header = json.loads(empty[8 : 8 + int.from_bytes(empty[:8], "little")])
    extents, end = {}, 0  # name → (offset after the header, bytes of one model); bytes of all tensors so far
    for name, entry in header.items():
        size = stored[name][0].nbytes
        entry |= {"shape": [count, *entry["shape"][1:]], "data_offsets": [end, end + count * size]}
        extents[name], end = (end, size), end + count * size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8 bytes
    start = 8 + len(text)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(start + end)
    return {
        name: np.memmap(path, np.uint8, mode="r+", offset=start + offset, shape=(count, size))
        for name, (offset, size) in extents.items()
    }


def read_models(path: str | Path) -> State:
    """Return all tensors of a safetensors file, by name.

    Raises FailedError if the file states why there are no models, and ArtifactError if it is missing or damaged.
    """
    from safetensors import safe_open

    def read() -> State:
        """Return the tensors, or raise FailedError. `files.read_verified` makes errors of reading ArtifactError."""
        with safe_open(path, "pt") as file:
            if set(file.keys()) == FAILURE:  # a file by `write_failure`, whose tensors are texts
                raise files.FailedError(*(bytes(file.get_tensor(name).tolist()).decode() for name in ("part", "why")))
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)

    return files.read_verified(path, read)


def write_failure(path: str | Path, part: str, why: str) -> None:
    """Write a file in place of models that states why there are none, for `read_models` to raise.

    Parameters
    ----------
    part
        What failed, as in `FailedError`: "method", "model" or "diverged".
    why
        The reason, a sentence.
    """
    from safetensors.torch import save_file

    texts = {"part": part, "why": why}
    tensors = {name: torch.tensor(list(text.encode()), dtype=torch.uint8) for name, text in texts.items()}
    with files.replacing(path) as temporary:
        save_file(tensors, temporary)


def initialised(build: Callable[[], nn.Module], seed: int, dtype: torch.dtype = torch.float32) -> nn.Module:
    """Return a model that ``build`` makes, in the precision ``dtype``. Its initial weights depend on ``seed`` alone.
    Torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(seed, "init"))
        return build().to(dtype)


class Teacher:
    """A frozen copy of a stack that predicts for the models of a batch, in evaluation mode, without gradients."""

    def __init__(self, stack: ModelStack) -> None:
        """Copy the weights of the ``stack``, and its network in evaluation mode."""
        self.parameters = {name: value.detach().clone() for name, value in stack.parameters.items()}
        self.buffers = {name: value.detach().clone() for name, value in stack.buffers.items()}
        # The network's own tensors are not copied, because the frozen weights replace them in every call: deepcopy
        # takes what it finds in its memo.
        memo = {id(tensor): tensor for tensor in (*stack.model.parameters(), *stack.model.buffers())}
        self.engine = stack.engine.for_model(copy.deepcopy(stack.model, memo).eval())

    @torch.no_grad()
    def __call__(self, batch: Batch) -> Tensor:
        """Return the outputs of the frozen models for ``batch.x``: logits [n, b, classes], or the output of the models
        that the batch's ``reading`` names.

        The weights of the batch's models are selected once and kept in ``loss_state``, which all batches of these
        models share until their training ends.
        """
        if self not in batch.loss_state:
            parameters = {name: value[batch.models] for name, value in self.parameters.items()}
            buffers = {name: value[batch.models] for name, value in self.buffers.items()}
            batch.loss_state[self] = parameters, buffers
        parameters, buffers = batch.loss_state[self]
        return self.engine.forward(parameters, buffers, batch.x, batch.reading)
