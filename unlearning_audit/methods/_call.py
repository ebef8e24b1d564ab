"""Calls a published function with the things of one model after the other, and takes the weights that come out."""

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
from unlearning_audit.training.bank import Bank, initialised
from unlearning_audit.training.engine import aliases
from unlearning_audit.training.streams import Rows

if TYPE_CHECKING:
    from unlearning_audit.methods.classic import Options

#: What a namespace of arguments holds beside the options.
ABOUT = ("num_classes", "device", "seed", "batch_size")


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: "Options") -> None:
    """Call the function for every model and keep the weights that come out. Raises ValueError if it cannot."""
    with opened(options, bank.device) as function:
        call = caller(function, options)
        validation = retain.sample(max(1, round(options.validation * len(retain))), bank.seeds, "classic/validation")
        rows = {"retain": retain, "forget": forget, "val": validation, "train": retain + forget}
        for m, seed in enumerate(bank.seeds):
            key = seed_of(seed, "classic")
            logging.info("%s: %s on model %d of %d", options.file, options.function, m + 1, len(bank))
            with _published.seeded(key):
                things = Things(bank, m, rows, options, key)
                try:
                    returned = call(things)
                except ModuleNotFoundError as error:
                    raise _published.not_installed(options.file, error) from error
            _no_text(returned, options)
            try:
                state = weights(returned, things.model)
            except PluginError as error:
                raise PluginError(f"{options.file}: {options.function}: {error}") from None
            try:
                bank.insert(m, state)
            except ValueError as error:
                change = _change(state, bank) or error
                raise PluginError(
                    f"{options.file}: {options.function} must not change the architecture: {change}"
                ) from None


def _change(state: Mapping[str, torch.Tensor], bank: Bank) -> str:
    """The first tensor that is missing, new or of another shape than in the bank, with its shapes; "" if none is."""
    before = {name: tuple(value.shape[1:]) for name, value in (bank.parameters | bank.buffers).items()}
    after = {name: tuple(value.shape) for name, value in state.items() if name not in aliases(bank.model)}
    for name in before | after:
        if name not in after:
            return f"tensor {name!r} of shape {before[name]} is missing"
        if name not in before:
            return f"tensor {name!r} of shape {after[name]} is new"
        if after[name] != before[name]:
            return f"tensor {name!r} has shape {after[name]}, expected {before[name]}"
    return ""


def _no_text(returned: object, options: "Options") -> None:
    """Refuse text or a path: the models that such a file may hold would be passed over."""
    if isinstance(returned, (str, bytes, PathLike)):
        output = f"{type(returned).__name__} {str(returned)[:40]!r}, which is no model"
        advice = "return the model, its state dict, or nothing if it was changed in place"
        raise PluginError(f"{options.file}: {options.function} returned {output}; {advice}")


@contextmanager
def opened(options: "Options", device: str) -> Iterator[Callable[..., Any]]:
    """The published function, which can be called meanwhile, for models that lie on ``device``."""
    with (
        _processor.at_home(device),
        _published.function(options.file, options.function, options.argv, options.without, options.skip) as function,
    ):
        yield function


def caller(function: Callable[..., Any], options: "Options") -> Callable[["Things"], Any]:
    """What calls the function with the things of one model. Raises ValueError for a parameter that is not known."""
    method = options.function.partition(".")[2]
    steps = [_published.parameters(function)]
    if method:  # a class: what makes the object, and what its method takes
        free = isinstance(inspect.getattr_static(function, method), (staticmethod, classmethod))
        steps.append(_published.parameters(getattr(function, method), bound=not free))
    parameters = {parameter.name: parameter for of_step, _ in reversed(steps) for parameter in of_step}
    more = any(further for _, further in steps)
    try:
        roles = arguments.assigned(list(parameters.values()), options.options, options.give, more=more)
    except ValueError as error:
        raise PluginError(f"{options.file}: {options.function}: {error}") from None
    unplaced = {name: value for name, value in options.options.items() if more and name not in roles}
    last = max((number for number, (_, further) in enumerate(steps) if further), default=0)

    def keywords(number: int, things: Things) -> dict[str, Any]:
        names = [parameter.name for parameter in steps[number][0] if parameter.name in roles]
        values = {name: things.give(role) if (role := roles[name]) else options.options[name] for name in names}
        return values | (unplaced if number == last else {})

    def call(things: Things) -> Any:
        returned = function(**keywords(0, things))
        return getattr(returned, method)(**keywords(1, things)) if method else returned

    return call


class Things:
    """What can be given to a function, made when it is asked for: everything of one model."""

    def __init__(self, bank: Bank, number: int, rows: Mapping[str, Rows], options: "Options", key: int) -> None:
        self.bank, self.number, self.rows, self.options, self.key = bank, number, rows, options, key
        self.model = bank.extract(number).train()

    def give(self, role: str) -> Any:
        """The thing of that name of `arguments.ROLES`."""
        part, _, form = role.rpartition("_")
        if part in self.rows:
            return self.loader(part) if form == "loader" else self.data(part)
        return getattr(self, role)() if role != "model" else self.model

    def data(self, part: str) -> "Samples":
        """The samples of one of `rows`."""
        index = torch.from_numpy(self.rows[part].index[self.number])
        batch = self.bank.read([self.number], index.unsqueeze(0))
        return Samples(batch.x.squeeze(0), batch.labels.squeeze(0), twice=self.options.batch == "x, y, y")

    def loader(self, subset: str) -> "DataLoader[Any]":
        """Batches of them, in an order that depends on the model's seed alone."""
        order = torch.Generator().manual_seed(seed_of(self.key, ["retain", "forget", "val", "train"].index(subset)))
        device = self.bank.device

        def collate(items: list[Any]) -> "Batch":
            return Batch(part.to(device) for part in default_collate(items))

        return DataLoader(self.data(subset), self.options.batch_size, shuffle=True, generator=order, collate_fn=collate)

    def loaders(self) -> "dict[str, DataLoader[Any]]":
        return {**{name: self.loader(name) for name in self.rows}, "test": self.loader("val")}

    def original(self) -> nn.Module:
        return self.bank.extract(self.number).eval()

    def fresh_model(self) -> nn.Module:
        return initialised(self.bank.build, seed_of(self.key, "fresh"), self.bank.dtype).to(self.bank.device)

    def args(self) -> SimpleNamespace:
        """What is known of the model and its data, and the options."""
        return _published.Args(**{**{name: getattr(self, name)() for name in ABOUT}, **self.options.options})

    def criterion(self) -> nn.Module:
        return nn.CrossEntropyLoss()

    def optimizer(self) -> torch.optim.Optimizer:
        """Raises ValueError if options.optimizer does not say which."""
        about = dict(self.options.options.get("optimizer") or {})
        kind = getattr(torch.optim, str(about.pop("name", "")), None)
        if kind is None:
            raise ValueError("it takes an optimiser; set options.optimizer, such as {name: SGD, lr: 0.01}")
        optimizer: torch.optim.Optimizer = kind(self.model.parameters(), **about)
        return optimizer

    def num_classes(self) -> int:
        with torch.no_grad():
            return int(self.bank.logits(np.arange(1)).shape[-1])

    def device(self) -> str:
        return str(self.bank.device)

    def seed(self) -> int:
        return self.key % 2**31

    def batch_size(self) -> int:
        return self.options.batch_size

    def num_workers(self) -> int:
        return 0

    def logger(self) -> logging.Logger:
        return logging.getLogger(self.options.function)


class Batch(list[Any]):
    """The tensors of a batch, in order; code that reads fields by name is told what there is."""

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, str):
            parts = ", ".join(["x", *["y"] * (len(self) - 1)])
            raise TypeError(f"a batch has no field {place!r}: it is a list of tensors; write {parts} = batch")
        return super().__getitem__(place)


class Samples(Dataset[tuple[Any, ...]]):
    """``data`` [samples, …] and ``targets`` int64 [samples], an array that published code may replace."""

    def __init__(self, data: torch.Tensor, targets: torch.Tensor, *, twice: bool = False) -> None:
        self.data, self.targets, self.twice = data, targets.cpu().numpy(), twice

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        target = int(self.targets[index])
        return (self.data[index], target, target) if self.twice else (self.data[index], target)


def weights(returned: object, model: nn.Module) -> Mapping[str, torch.Tensor]:
    """The tensors, by name, of what a function returned, or of the ``model`` that it was given. A mapping that names
    none of the model's tensors, such as one of losses, is no state dict. Raises PluginError for models that differ:
    their order does not say which of them is meant."""
    outputs = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    inside = [value for output in outputs if isinstance(output, Mapping) for value in output.values()]
    states = [state for output in (*outputs, *inside) if (state := _state(output, model)) is not None]
    first = states[0] if states else model.state_dict()
    if any(not _equal(state, first) for state in states[1:]):
        raise PluginError(f"it returned {len(states)} models that differ; return the one that forgot, and no other")
    return first


def _equal(state: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    return state.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in state.items())


def _state(output: object, model: nn.Module) -> Mapping[str, torch.Tensor] | None:
    """The tensors of a returned model or state dict, None if it is neither."""
    state = output.state_dict() if isinstance(output, nn.Module) else output
    if not (isinstance(state, Mapping) and state and all(isinstance(v, torch.Tensor) for v in state.values())):
        return None
    tensors = {str(name).removeprefix("module.").removeprefix("_orig_mod."): v for name, v in state.items()}
    return tensors if isinstance(output, nn.Module) or tensors.keys() & model.state_dict().keys() else None
