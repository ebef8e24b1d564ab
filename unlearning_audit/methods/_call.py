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
from unlearning_audit.training.engine import unwrapped
from unlearning_audit.training.stack import ModelStack, initialised
from unlearning_audit.training.streams import Rows

if TYPE_CHECKING:
    from unlearning_audit.methods.classic import Options

#: Names that the namespace ``args`` of a published function holds beside the options.
ABOUT = ("num_classes", "device", "seed", "batch_size")


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: "Options") -> None:
    """Call the published function for every model of the stack, one after the other, and store the weights that it
    returns.

    ``options`` name the file and the function. The validation set is a random share of retain (``options.validation``).
    Raises ValueError if the file or the function does not exist, and PluginError if the function cannot be called,
    returns something other than weights, or changes the architecture.
    """
    published = _published.imported(options.file, options.function, options.argv, options.without, options.skip)
    with _processor.without_card(stack.device), published as function:
        call = caller(function, options)
        validation = retain.sample(max(1, round(options.validation * len(retain))), stack.seeds, "classic/validation")
        rows = {"retain": retain, "forget": forget, "val": validation, "train": retain + forget}
        for number, seed in enumerate(stack.seeds):
            key = seed_of(seed, "classic")
            logging.info("%s: %s on model %d of %d", options.file, options.function, number + 1, len(stack))
            with _published.seeded(key):
                available = Arguments(stack, number, rows, options, key)
                try:
                    returned = call(available)
                except ModuleNotFoundError as error:
                    raise _published.not_installed(options.file, error) from error
            try:
                stack.insert(number, unlearned_weights(returned, available.model))
            except ValueError as error:
                raise PluginError(f"{options.file}: {options.function}: {error}") from None


def caller(function: Callable[..., Any], options: "Options") -> Callable[["Arguments"], Any]:
    """Return a function that calls the published ``function`` with the arguments for one model, given as `Arguments`.

    For "Class.method", ``function`` is the class: a first call makes an object of it, and a second call is that of its
    method. Arguments are chosen by the names of parameters: an option of that name, or else what `arguments.assigned`
    takes the name to mean (its role, such as "retain_loader"), or else its default. Options that fit no parameter go to
    the last call that accepts further keywords (``**kwargs``). Raises PluginError if a parameter or an option cannot be
    assigned.
    """
    _, _, method = options.function.partition(".")  # "Class.method", or only the name of a function
    calls = [_published.parameters(function)]  # of each call: its parameters, and whether it accepts further keywords
    if method:
        takes_no_object = isinstance(inspect.getattr_static(function, method), (staticmethod, classmethod))
        calls.append(_published.parameters(getattr(function, method), bound=not takes_no_object))
    parameters = {parameter.name: parameter for of_call, _ in reversed(calls) for parameter in of_call}
    accepting = [number for number, (_, accepts_more) in enumerate(calls) if accepts_more]  # the calls with **kwargs
    try:
        roles = arguments.assigned(list(parameters.values()), options.options, options.give, more=bool(accepting))
    except ValueError as error:
        raise PluginError(f"{options.file}: {options.function}: {error}") from None
    unplaced = {name: value for name, value in options.options.items() if name not in roles}

    def keywords(number: int, available: Arguments) -> dict[str, Any]:
        """Return the arguments of the call with this ``number`` by name, made from ``available``: call 0 is that of the
        function or of the class, call 1 that of the method. Options that no parameter names (``unplaced``) go to the
        last call that accepts further keywords. The calls and the ``roles`` of their parameters are those of the
        function around this one."""
        values = dict(unplaced) if accepting and number == accepting[-1] else {}
        for parameter in calls[number][0]:  # the parameters of this call
            if parameter.name in roles:  # without a role (None), the argument is an option of the function
                role = roles[parameter.name]
                values[parameter.name] = available.give(role) if role else options.options[parameter.name]
        return values

    def call(available: Arguments) -> Any:
        """Return what the published function returns for one model or, for "Class.method", what the method of the
        object returns that the class makes."""
        returned = function(**keywords(number=0, available=available))
        return getattr(returned, method)(**keywords(number=1, available=available)) if method else returned

    return call


class Arguments:
    """The arguments that can be given to a published function for one model. Each is made when the function needs it.

    Methods are named after roles of arguments (`arguments.ROLES`).
    """

    def __init__(self, stack: ModelStack, number: int, rows: Mapping[str, Rows], options: "Options", key: int) -> None:
        """Make the arguments that are attributes, such as a copy of the model in training mode.

        Parameters
        ----------
        number
            The position of the model in the stack.
        rows
            "retain", "forget", "val" and "train" → the rows of each set.
        key
            The seed of everything random in this call.
        """
        self.stack, self.number, self.rows, self.options, self.key = stack, number, rows, options, key
        self.model, self.criterion = stack.extract(number).train(), nn.CrossEntropyLoss()
        self.device, self.seed, self.num_workers = str(stack.device), key % 2**31, 0
        self.batch_size, self.logger = options.batch_size, logging.getLogger(options.function)

    def give(self, role: str) -> Any:
        """Return the argument for ``role``, one of `arguments.ROLES`. For such as "retain_loader" or "retain_data" it
        is a loader or the samples of that set. For any other role it is the attribute of that name, or what the method
        of that name returns."""
        subset, _, kind = role.rpartition("_")
        if subset in self.rows:
            return self.loader(subset) if kind == "loader" else self.data(subset)
        attribute = getattr(self, role)
        return attribute() if inspect.ismethod(attribute) else attribute

    def data(self, subset: str) -> "Samples":
        """Return the samples that the model has in a ``subset``: "retain", "forget", "val" or "train" (retain, then
        forget)."""
        index = torch.from_numpy(self.rows[subset].index[self.number])
        batch = self.stack.read([self.number], index.unsqueeze(0))
        return Samples(batch.x.squeeze(0), batch.labels.squeeze(0), twice=self.options.batch == "x, y, y")

    def loader(self, subset: str) -> "DataLoader[Any]":
        """Return a loader of a ``subset`` ("retain", "forget", "val" or "train"). Its samples are reshuffled in every
        pass, in an order that depends on the model's seed and the subset, and its batches lie on the models' device."""
        order = torch.Generator().manual_seed(seed_of(self.key, ["retain", "forget", "val", "train"].index(subset)))
        device = self.stack.device

        def collate(items: list[Any]) -> list[torch.Tensor]:
            """Return the ``items`` of a batch as tensors on the models' device."""
            return [tensor.to(device) for tensor in default_collate(items)]

        return DataLoader(self.data(subset), self.options.batch_size, shuffle=True, generator=order, collate_fn=collate)

    def loaders(self) -> "dict[str, DataLoader[Any]]":
        """Return the loaders of all sets by name. "test" is another loader of the validation set, because samples that
        models never saw are not given."""
        return {**{name: self.loader(name) for name in self.rows}, "test": self.loader("val")}

    def original(self) -> nn.Module:
        """Return another copy of the model before unlearning, in evaluation mode."""
        return self.stack.extract(self.number).eval()

    def fresh_model(self) -> nn.Module:
        """Return an untrained model of the same architecture, drawn by the model's seed."""
        return initialised(self.stack.build, seed_of(self.key, "fresh"), self.stack.dtype).to(self.stack.device)

    def args(self) -> SimpleNamespace:
        """Return a namespace of the function's options. It also has the number of classes, the device, the seed and the
        batch size (`ABOUT`), unless options have these names."""
        return _published.Args(**({name: self.give(name) for name in ABOUT} | self.options.options))

    def optimizer(self) -> torch.optim.Optimizer:
        """Return an optimiser of the model's parameters. The option ``optimizer`` of the function says its ``name`` in
        torch.optim, and its arguments. Raises ValueError if it is not set, or if torch has no optimiser of that
        name."""
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
        """Keep the ``targets`` as an array."""
        self.data, self.targets, self.twice = data, targets.cpu().numpy(), twice

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """Return the sample with the number ``index`` and its label, which comes twice if the dataset says so."""
        target = int(self.targets[index])
        return (self.data[index], target, target) if self.twice else (self.data[index], target)


def unlearned_weights(returned: object, model: nn.Module) -> Mapping[str, torch.Tensor]:
    """Return the unlearned weights, name → tensor, from what a published function has ``returned``.

    The weights are taken from the model or state dict that the function returned, alone or in a tuple, list or mapping.
    If the function returned neither, they are taken from the ``model`` that it changed in place. Raises ValueError
    if the function returned the name of a file, or several models that differ, because their order does not say which
    one forgot.
    """
    if isinstance(returned, (str, bytes, PathLike)):  # a model in such a file would be ignored silently
        raise ValueError(
            f"it returned {type(returned).__name__} {str(returned)[:40]!r}, which is not a model; return the model, "
            "its state dict, or nothing if it was changed in place"
        )
    outputs = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    in_mappings = [value for output in outputs if isinstance(output, Mapping) for value in output.values()]
    state_dicts = [_state_dict(output, model) for output in (*outputs, *in_mappings)]
    states = [state for state in state_dicts if state is not None]
    unlearned = states[0] if states else model.state_dict()
    if any(not _equal(state, unlearned) for state in states[1:]):
        raise ValueError(f"it returned {len(states)} different models; return only the one that forgot")
    return unlearned


def _equal(state: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    """Return whether two state dicts have the same names and equal tensors. Tensors with NaN are equal to none."""
    return state.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in state.items())


def _state_dict(output: object, model: nn.Module) -> Mapping[str, torch.Tensor] | None:
    """Return the tensors of ``output``, a model or a state dict, by name without the prefixes that DataParallel and
    torch.compile add. Return None for anything else. A mapping of tensors without any name of the ``model``, such as
    one of losses, is no state dict."""
    state = output.state_dict() if isinstance(output, nn.Module) else output
    if not (isinstance(state, Mapping) and state and all(isinstance(v, torch.Tensor) for v in state.values())):
        return None
    tensors = unwrapped(state, model)
    is_state_dict = isinstance(output, nn.Module) or bool(tensors.keys() & model.state_dict().keys())
    return tensors if is_state_dict else None
