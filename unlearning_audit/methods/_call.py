"""Call a published unlearning function for one model after another, and store the weights that it returns."""

import inspect
import logging
from collections.abc import Callable, Mapping
from os import PathLike
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

from unlearning_audit.methods import _processor, _published
from unlearning_audit.plugins import arguments
from unlearning_audit.plugins.guard import PluginError
from unlearning_audit.randomness.keyed import seed_of
from unlearning_audit.training.stack import ModelStack, initialised
from unlearning_audit.training.streams import Rows

if TYPE_CHECKING:
    from unlearning_audit.methods.classic import Options

#: Names that the namespace ``args`` of a published function holds beside the options.
ABOUT = ("num_classes", "device", "seed", "batch_size")


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: "Options") -> None:
    """Call the published function for every model of the stack, one after the other, and store the weights that it
    returns.

    ``options`` name the file and the function. Raises PluginError if the function cannot be called, returns something
    other than weights, or changes the architecture.
    """
    published = _published.function(options.file, options.function, options.argv, options.without, options.skip)
    with _processor.at_home(stack.device), published as function:
        call = caller(function, options)
        validation = retain.sample(max(1, round(options.validation * len(retain))), stack.seeds, "classic/validation")
        rows = {"retain": retain, "forget": forget, "val": validation, "train": retain + forget}
        for m, seed in enumerate(stack.seeds):
            key = seed_of(seed, "classic")
            logging.info("%s: %s on model %d of %d", options.file, options.function, m + 1, len(stack))
            with _published.seeded(key):
                things = Things(stack, m, rows, options, key)
                try:
                    returned = call(things)
                except ModuleNotFoundError as error:
                    raise _published.not_installed(options.file, error) from error
            try:
                stack.insert(m, weights(returned, things.model))
            except ValueError as error:
                raise PluginError(f"{options.file}: {options.function}: {error}") from None


def caller(function: Callable[..., Any], options: "Options") -> Callable[["Things"], Any]:
    """Return a function that calls the published ``function`` with the arguments for one model, given as `Things`.

    For "Class.method", ``function`` is the class: an object of it is made and its method called. Arguments are chosen
    by the names of parameters: an option of that name, or else what `arguments.assigned` takes the name to mean (its
    role, such as "retain_loader"). Raises PluginError if a parameter or an option cannot be assigned.
    """
    method = options.function.partition(".")[2]
    steps = [_published.parameters(function)]  # for each call: its parameters, and whether it accepts further keywords
    if method:  # two calls: one makes the object of the class, one is that of the method
        takes_no_object = isinstance(inspect.getattr_static(function, method), (staticmethod, classmethod))
        steps.append(_published.parameters(getattr(function, method), bound=not takes_no_object))
    parameters = {parameter.name: parameter for taken, _ in reversed(steps) for parameter in taken}
    more = any(further for _, further in steps)
    try:
        roles = arguments.assigned(list(parameters.values()), options.options, options.give, more=more)
    except ValueError as error:
        raise PluginError(f"{options.file}: {options.function}: {error}") from None
    # Options that fit no parameter go to the last call that accepts further keywords.
    unplaced = {name: value for name, value in options.options.items() if more and name not in roles}
    last = max((number for number, (_, further) in enumerate(steps) if further), default=0)

    def keywords(number: int, things: Things) -> dict[str, Any]:
        """Return the arguments of one step by name, made from ``things``: step ``number`` 0 calls the function or makes
        the object, step 1 calls its method."""
        names = [parameter.name for parameter in steps[number][0] if parameter.name in roles]
        # A parameter without a role is an option of the function.
        values = {name: things.give(role) if (role := roles[name]) else options.options[name] for name in names}
        return values | (unplaced if number == last else {})

    def call(things: Things) -> Any:
        """Return what the published function returns for one model, or else the method of the object that it makes."""
        returned = function(**keywords(0, things))
        return getattr(returned, method)(**keywords(1, things)) if method else returned

    return call


class Things:
    """The arguments that can be given to a published function for one model. Each is made when the function needs it.

    Methods are named after roles of arguments (`arguments.ROLES`). ``number``: the position of the model in the stack.
    ``rows``: "retain", "forget", "val" and "train" → the rows of each set. ``key``: the seed of everything random in
    this call.
    """

    def __init__(self, stack: ModelStack, number: int, rows: Mapping[str, Rows], options: "Options", key: int) -> None:
        self.stack, self.number, self.rows, self.options, self.key = stack, number, rows, options, key
        self.model, self.criterion = stack.extract(number).train(), nn.CrossEntropyLoss()
        self.device, self.seed, self.num_workers = str(stack.device), key % 2**31, 0
        self.batch_size, self.logger = options.batch_size, logging.getLogger(options.function)

    def give(self, role: str) -> Any:
        """Return the argument for ``role``, a name of `arguments.ROLES`: a set or its loader, the attribute of that
        name, or what the method of that name makes."""
        subset, _, form = role.rpartition("_")  # such as "retain" and "loader"
        if subset in self.rows:
            return self.loader(subset) if form == "loader" else self.data(subset)
        thing = getattr(self, role)
        return thing() if inspect.ismethod(thing) else thing

    def data(self, subset: str) -> "Samples":
        """Return the samples of a ``subset``: "retain", "forget", "val" or "train"."""
        index = torch.from_numpy(self.rows[subset].index[self.number])
        batch = self.stack.read([self.number], index.unsqueeze(0))
        return Samples(batch.x.squeeze(0), batch.labels.squeeze(0), twice=self.options.batch == "x, y, y")

    def loader(self, subset: str) -> "DataLoader[Any]":
        """Return a loader of a ``subset`` ("retain", "forget", "val" or "train"), whose batches are reshuffled in every
        pass by the model's seed and lie on the models' device."""
        order = torch.Generator().manual_seed(seed_of(self.key, ["retain", "forget", "val", "train"].index(subset)))
        device = self.stack.device

        def collate(items: list[Any]) -> list[torch.Tensor]:
            """Return the ``items`` of a batch as tensors on the models' device."""
            return [part.to(device) for part in default_collate(items)]

        return DataLoader(self.data(subset), self.options.batch_size, shuffle=True, generator=order, collate_fn=collate)

    def loaders(self) -> "dict[str, DataLoader[Any]]":
        """Return the loaders of all sets by name; "test" is another loader of the validation set."""
        return {**{name: self.loader(name) for name in self.rows}, "test": self.loader("val")}

    def original(self) -> nn.Module:
        """Return another copy of the model before unlearning, in evaluation mode."""
        return self.stack.extract(self.number).eval()

    def fresh_model(self) -> nn.Module:
        """Return an untrained model of the same architecture, drawn by the model's seed."""
        return initialised(self.stack.build, seed_of(self.key, "fresh"), self.stack.dtype).to(self.stack.device)

    def args(self) -> SimpleNamespace:
        """Return a namespace of the function's options, with the number of classes, the device, the seed and the batch
        size, which options of these names replace."""
        return _published.Args(**{**{name: self.give(name) for name in ABOUT}, **self.options.options})

    def optimizer(self) -> torch.optim.Optimizer:
        """Return the optimiser of the model's parameters that options.optimizer describes: its ``name`` in torch.optim,
        and its arguments. Raises ValueError if there is no such name."""
        settings = dict(self.options.options.get("optimizer") or {})
        kind = getattr(torch.optim, str(settings.pop("name", "")), None)
        if kind is None:
            raise ValueError("it takes an optimiser; set options.optimizer, such as {name: SGD, lr: 0.01}")
        optimizer: torch.optim.Optimizer = kind(self.model.parameters(), **settings)
        return optimizer

    def num_classes(self) -> int:
        """Return the number of classes: that of the logits of one sample."""
        with torch.no_grad():
            return int(self.stack.logits(np.arange(1)).shape[-1])


class Samples(Dataset[tuple[Any, ...]]):
    """A dataset of ``data`` [samples, …] and ``targets`` int64 [samples], an array that published code may replace.

    With ``twice``, an item is (x, label, label) in place of (x, label).
    """

    def __init__(self, data: torch.Tensor, targets: torch.Tensor, *, twice: bool = False) -> None:
        self.data, self.targets, self.twice = data, targets.cpu().numpy(), twice

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """Return the sample with the number ``index`` and its label."""
        target = int(self.targets[index])
        return (self.data[index], target, target) if self.twice else (self.data[index], target)


def weights(returned: object, model: nn.Module) -> Mapping[str, torch.Tensor]:
    """Return the unlearned weights, name → tensor, after a published function has ``returned``.

    They are those of the model or state dict that it returned, alone or in a tuple, list or mapping. If it returned
    neither, they are those of the ``model`` that it changed in place. A mapping without any of the model's tensors,
    such as one of losses, does not count as a state dict. Raises ValueError if the function returned several models
    that differ, because their order does not say which one forgot, or the name of a file.
    """
    if isinstance(returned, (str, bytes, PathLike)):  # a model in such a file would be ignored silently
        raise ValueError(
            f"it returned {type(returned).__name__} {str(returned)[:40]!r}, which is not a model; return the model, "
            "its state dict, or nothing if it was changed in place"
        )
    outputs = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    inside = [value for output in outputs if isinstance(output, Mapping) for value in output.values()]
    states = [state for output in (*outputs, *inside) if (state := _state(output, model)) is not None]
    unlearned = states[0] if states else model.state_dict()
    if any(not _equal(state, unlearned) for state in states[1:]):
        raise ValueError(f"it returned {len(states)} different models; return only the one that forgot")
    return unlearned


def _equal(state: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    """Return whether two state dicts have the same names and equal tensors."""
    return state.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in state.items())


def _state(output: object, model: nn.Module) -> Mapping[str, torch.Tensor] | None:
    """Return the tensors of a returned model or state dict, by name without the prefixes that DataParallel and
    torch.compile add; None if ``output`` is neither, or a mapping of tensors of which ``model`` has none."""
    state = output.state_dict() if isinstance(output, nn.Module) else output
    if not (isinstance(state, Mapping) and state and all(isinstance(v, torch.Tensor) for v in state.values())):
        return None
    tensors = {str(name).removeprefix("module.").removeprefix("_orig_mod."): v for name, v in state.items()}
    return tensors if isinstance(output, nn.Module) or tensors.keys() & model.state_dict().keys() else None
