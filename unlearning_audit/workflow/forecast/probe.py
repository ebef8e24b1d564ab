"""Measures seconds per row on this machine, by short runs of a study's training and methods on its own data.

Training runs on few rows, then on more, then for more epochs, a method with all its options on few rows and then on
more, until a run is long enough to be measured. Writes nothing.
"""

import time
from collections.abc import Callable
from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.features import sample_index
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import of_machine
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.training import card, features
from unlearning_audit.training.bank import Bank
from unlearning_audit.training.streams import Rows
from unlearning_audit.workflow.forecast.sizes import Draws
from unlearning_audit.workflow.open_bank import open_bank

#: Seconds of a run that are enough; rows of the first run, and how many times as many the next one reads.
ENOUGH, FIRST, GROWTH = 0.3, 4, 4

#: Times ENOUGH after which a run ends that has not yet read a whole batch of each set.
PATIENCE = 30

#: Steps after which one was ordinary, one recorded, and one replayed.
KINDS = 3

#: Models that train at once on a GPU, if a job has as many.
TOGETHER = 8


def measure(node: dict[str, Any], draws: Draws) -> tuple[dict[str, Any], str]:
    """The rate of the kind of job that ``node`` (of `forecast.nodes`) is: seconds per row (step, answer) and bytes of a
    model. And a note: a method that fails on few rows of untrained models counts as training all over."""
    settings = node["settings"]
    bank, membership = _open(node, draws)
    if "signal" in settings:
        size = _hidden(bank, membership) if settings["signal"] == "features" else 0
        return {"step": _reading(bank, settings["signal"]), "answer": 0.0, "bytes": size, "from": "probe"}, ""
    forget, retain, everything = (Rows.where(m) for m in (membership.forget, membership.retain, membership.train))
    note, method = "", settings.get("method")
    if method in (None, "retrain"):
        step = _trained(bank, everything)
    else:
        try:
            options, run = _method(node, forget, retain)
            # On less than a batch of each set, a method that steps on both reads more per row than in whole.
            batch = getattr(options, "batch_size", FIRST)
            least = ceil(batch * len(everything) / max(min(len(forget), len(retain)), 1))
            step = per_row(run, bank, len(everything), least=least, batch=least)
        except Exception as error:
            if of_machine(error):
                raise
            note = f"{method} could not be tried ({type(error).__name__}: {error}) and counts as training all over"
            step = bank.recipe.epochs * _trained(bank, retain)
    answer = per_row(lambda copy, rows: copy.logits(np.arange(rows)), bank, len(bank.x))
    weights, statistics = (sum(v[0].nbytes for v in s.values()) for s in (bank.parameters, bank.buffers))
    size = weights * (2 if bank.recipe.record_updates and method != "retrain" else 1) + statistics
    return {"step": step, "answer": answer, "bytes": size, "from": "probe"}, note


def _trained(bank: Bank, rows: Rows) -> float:
    """Seconds per row of training on ``rows``."""
    return per_row(_training(rows), bank, len(rows), bank.recipe.epochs, batch=bank.recipe.batch_size)


def _reading(bank: Bank, signal: str) -> float:
    """Seconds per row of one signal."""
    module = registry.load("signals", signal)

    def run(copy: Bank, count: int) -> None:
        rows, forget = np.arange(count), np.tile(np.arange(len(copy.x)) < count, (len(copy), 1))
        asked = np.tile(rows, (len(copy), 1)) if hasattr(module, "RECORD") else rows
        module.read(copy, SimpleNamespace(forget=forget), asked, {"rows": "forgotten"})

    return per_row(run, bank, len(bank.x))


def _hidden(bank: Bank, membership: Membership) -> int:
    """Bytes of the last hidden layer of one model, for the samples that are read."""
    width = features.readings(bank, np.zeros((len(bank), 1), np.int64)).shape[2]
    return int(4 * width * sample_index(membership).shape[1])


def per_row(
    run: Callable[[Bank, int], object], bank: Bank, rows: int, epochs: int = 1, least: int = FIRST, batch: int = 1
) -> float:
    """Seconds per model and row of ``run(a copy of bank, so many rows)``, where it may read ``rows`` at most, or if
    they are many in whole ``epochs``, so many times. A run reads ``least`` rows, unless that takes too long.

    On a GPU the first two steps of a kind are ordinary and recorded, which a job pays for once. So the rate is what
    more rows take longer than so many that steps of ``batch`` rows were recorded and replayed.
    """
    count = first = min(FIRST, rows)
    timed(run, bank, count)  # The first run includes one-time costs.
    on_gpu = card.use() == "cuda"
    if on_gpu:
        count = first = min(max(KINDS * batch, FIRST), rows)
    spent = timed(run, bank, count)
    once = spent if on_gpu else 0.0
    while (spent - once < ENOUGH or (count < least and spent < PATIENCE * ENOUGH)) and count < rows * epochs:
        count = min(GROWTH * count, rows) if count < rows else min(GROWTH * count, rows * epochs)
        spent = timed(run, bank, count)
    if once and spent > once:
        return (spent - once) / (count - first) / len(bank)
    return spent / count / len(bank)


def timed(run: Callable[[Bank, int], object], bank: Bank, rows: int) -> float:
    """Seconds: on a CPU those of this process, so that others do not count; else until the device has done it all."""
    copy, clock = bank.copy(), time.process_time if bank.device == "cpu" else time.perf_counter
    start = clock()
    run(copy, rows)
    if bank.device != "cpu":
        torch.cuda.synchronize()
    return clock() - start


def name() -> str:
    """The GPU's name, or where there is none, "cpu"."""
    return torch.cuda.get_device_name() if card.use() == "cuda" else "cpu"


def cut(rows: Rows, count: int) -> Rows:
    """The first rows of every model, all if there are fewer."""
    return Rows(rows.index[:, :count])


def _open(node: dict[str, Any], draws: Draws) -> tuple[Bank, Membership]:
    """An untrained bank of as many models as step together, and their memberships."""
    ((data,), (splits,)) = node["after"]["data"], node["after"]["splits"]
    membership = draws.membership(splits)
    if node["stage"] == "train":
        membership = membership[membership.originals()[0]]
    samples, most = draws.data(data), len(membership.seed)
    alone = open_bank(samples, membership[:1], node["settings"], node["place"])
    together = len(set(alone.engine.groups(most)[0]))
    memberships = membership[: together if card.use() == "cpu" else max(together, TOGETHER)]
    bank = open_bank(samples, memberships, node["settings"], node["place"])
    if bank.recipe.record_updates:
        bank.updates = {name: torch.zeros_like(value) for name, value in bank.parameters.items()}
    return bank, memberships


def _training(rows: Rows) -> Callable[[Bank, int], None]:
    """The recipe on so many of the ``rows``; if that is more than all, in epochs."""

    def run(bank: Bank, count: int) -> None:
        epochs, subset = max(count // len(rows), 1), cut(rows, count)
        recipe = bank.recipe = bank.recipe.model_copy(update={"epochs": epochs})
        if recipe.dp is None:
            record = np.ones((len(bank), len(bank.x)), bool) if recipe.record_updates else None
            bank.train(subset, record=record)
            return
        from unlearning_audit.training import private

        # At a fixed noise level, because finding the right one does not depend on the number of rows.
        private.refuse(bank.model)
        private.descend(bank, subset, recipe, 1.0)

    return run


def _method(node: dict[str, Any], forget: Rows, retain: Rows) -> tuple[Settings, Callable[[Bank, int], None]]:
    """The method's options, and the method on about so many rows of both sets together, in the proportion of its
    jobs."""
    method = registry.load("methods", node["settings"]["method"], node["place"].get("method_file"))
    options = method.Options(**node["settings"]["method_options"])
    whole = len(forget) + len(retain)

    def run(bank: Bank, rows: int) -> None:
        # Two rows of each at least, which batch normalisation may need.
        subsets = (cut(of, max(round(rows / whole * len(of)), 2)) for of in (forget, retain))
        method.unlearn(bank, next(subsets), next(subsets), options)

    return options, run
