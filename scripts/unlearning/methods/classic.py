"""Classic: run a function ``unlearn(model, retain_loader, forget_loader) -> model`` of your own, model by model."""

import inspect
import random
import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from torch.utils.data import DataLoader, TensorDataset

from unlearning.bank.bank import Bank
from unlearning.bank.streams import Rows
from unlearning.plugins.settings import Settings
from unlearning.randomness.keyed import seed_of


class Options(Settings):
    """``file`` of Python with the ``function``, relative to the working directory.

    It gets the model in training mode and two ordinary DataLoaders of (x, y) with batches of ``batch_size``,
    reshuffled in every pass by the model's own seed; x is float as the model takes it, y int64. A function
    with a fourth argument also gets a validation loader over the ``validation`` share of retain: samples that
    models never saw stay hidden, because the attacks are scored on them. Before each call the generators of
    torch, NumPy and Python are seeded by the model's seed. It returns the model, changed in place or not.
    """

    file: str
    function: str = "unlearn"
    batch_size: int = Field(64, ge=1)
    validation: float = Field(0.1, gt=0, le=1)


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Call the function for every model and keep the weights that it returns. Raises ValueError if it cannot."""
    function = user_function(options.file, options.function)
    kept = retain.sample(max(1, round(options.validation * len(retain))), bank.seeds, "classic/validation")
    sets = (retain, forget, kept)[: loaders_of(function, options)]
    for m, seed in enumerate(bank.seeds):
        key = seed_of(seed, "classic")
        with seeded(key):
            loaders = [loader(bank, m, rows, options.batch_size, seed_of(key, i)) for i, rows in enumerate(sets)]
            returned = function(bank.extract(m).train(), *loaders)
        if type(returned) is not type(bank.model):
            raise ValueError(
                f"{options.file}: {options.function} must return the {type(bank.model).__name__} that it was given, "
                f"changed in place or not; it returned {type(returned).__name__}"
            )
        try:
            bank.insert(m, returned)
        except ValueError as error:
            raise ValueError(f"{options.file}: {options.function} must not change the architecture: {error}") from None


def user_function(file: str, name: str) -> Callable:
    """The function ``name`` of ``file``. Raises ValueError if there is none."""
    if not Path(file).is_file():
        raise ValueError(f"{file}: there is no such file; give classic.file relative to the working directory")
    function = runpy.run_path(file, run_name=Path(file).stem).get(name)
    if not callable(function):
        raise ValueError(f"{file}: there is no function {name!r}; define it or name yours in classic.function")
    return function


def loaders_of(function: Callable, options: Options) -> int:
    """How many loaders the function takes, 2 or 3. Raises ValueError for any other signature."""
    for count in (3, 2):
        try:
            inspect.signature(function).bind(*range(1 + count))
        except TypeError:
            continue
        return count
    raise ValueError(
        f"{options.file}: {options.function} must take (model, retain_loader, forget_loader) and, if it wants one, "
        f"a val_loader; it takes {inspect.signature(function)}"
    )


def loader(bank: Bank, model: int, rows: Rows, batch_size: int, seed: int) -> DataLoader:
    """An ordinary DataLoader of one model's rows; its order depends on ``seed`` alone."""
    index = torch.from_numpy(rows.index[model])
    batch = bank.read([model], index.unsqueeze(0))
    order = torch.Generator().manual_seed(seed)
    return DataLoader(
        TensorDataset(batch.x.squeeze(0), batch.labels.squeeze(0)), batch_size, shuffle=True, generator=order
    )


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators for code that uses them, and put their states back afterwards."""
    numpy_state, python_state = np.random.get_state(), random.getstate()
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            np.random.seed(seed % 2**32)
            random.seed(seed)
            yield
    finally:
        np.random.set_state(numpy_state)
        random.setstate(python_state)
