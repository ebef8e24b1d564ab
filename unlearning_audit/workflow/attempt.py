"""Failing plug-ins: the failure and its reason are written in place of the batch's weights and logits."""

import sys
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, guard, readable, type_of
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.store.files import NoAnswerError, write_failure
from unlearning_audit.training.bank import Bank
from unlearning_audit.training.bank import write_failure as write_models_failure
from unlearning_audit.training.engine import forward_one
from unlearning_audit.training.streams import Rows


def of_model(settings: dict[str, Any], place: dict[str, Any]) -> AbstractContextManager[Any]:
    """Training of a user's own model: its failure is the model's, while that of a library's model is a defect."""
    if not place.get("file"):
        return nullcontext()
    return guard(registry.source_file("models", settings["model"], place["file"]))


def check_built(model: object, classes: int, file: str) -> nn.Module:
    """The model that a user's file built, whose final layer has a name: that of ``model.head``, or the one layer that
    answers with ``classes`` numbers. Raises PluginError that says what lacks."""
    if not isinstance(model, nn.Module):
        raise PluginError(f"{readable(file)}: build must return a torch.nn.Module, it returned {type_of(model)}")
    head = getattr(model, "head", None)
    if isinstance(head, str):
        if not any(name.startswith(f"{head}.") for name, _ in model.named_parameters()):
            raise PluginError(f"{readable(file)}: model.head is {head!r}, which is not a layer of the model")
        return model
    if not list(model.children()):  # a layer by itself has no name
        model = nn.Sequential(model)
    alike = [
        name
        for name, layer in model.named_modules()
        if getattr(layer, "out_features", getattr(layer, "out_channels", None)) == classes
        and isinstance(getattr(layer, "weight", None), nn.Parameter)
    ]
    if len(alike) != 1:
        subject = f"{', '.join(alike)} each have" if alike else "no linear or convolutional layer has"
        raise PluginError(
            f"{readable(file)}: {subject} {classes} outputs, which does not identify the last layer; set model.head to "
            f"its name, such as model.head = {(alike or ['fc'])[-1]!r}"
        )
    object.__setattr__(model, "final_layer_name", alike[0])
    return model


#: Samples among which two are asked about once more, and by how much answers may differ by rounding alone, in units of
#: the largest answer.
AMONG, ROUNDING = 8, 1e-4


def check_model(bank: Bank, classes: int, file: str) -> None:
    """Check that a user's model answers two samples with logits, and the same among other samples. Raises PluginError
    that says what is wrong."""

    def asked(rows: int) -> torch.Tensor:
        with guard(file), torch.no_grad():
            return forward_one(bank.model.eval(), *bank.state(0), bank.scaled(bank.x[:rows]))

    rows = min(2, len(bank.x))
    kind = str(bank.scaled(bank.x[:1]).dtype).removeprefix("torch.")
    requirement = f"to {kind} {[rows, *bank.x.shape[1:]]} the model must answer with logits, float [{rows}, {classes}]"
    try:
        answer = asked(rows)
    except PluginError as error:
        raise PluginError(f"{error} ({requirement})") from None
    if not isinstance(answer, torch.Tensor) or answer.shape != (rows, classes) or not answer.is_floating_point():
        raise PluginError(f"{readable(file)}: {requirement}; it answered {type_of(answer)}")
    rounding = max(ROUNDING, 8 * torch.finfo(answer.dtype).eps)
    if (answer >= 0).all() and ((answer.double().sum(-1) - 1).abs() < rounding).all():
        problem = "the model answers probabilities, of at least 0 and of sum 1, in the place of logits"
        raise PluginError(f"{readable(file)}: {problem}; let forward return what goes into softmax")
    difference = float((asked(AMONG)[:rows] - answer).abs().max())
    if difference > rounding * max(1.0, float(answer.abs().max())):
        raise PluginError(
            f"{readable(file)}: the model answers the same samples differently when it is asked again among others, by "
            f"{difference:.2g} in a logit: dropout, other noise or normalisation by the batch goes on after "
            "model.eval(); let each such layer follow self.training, or take it out"
        )


def run_method(
    bank: Bank, unlearn: Callable[[Bank, Rows, Rows], object], forget: Rows, retain: Rows, file: str
) -> float:
    """Let a method change the models of a bank; the seconds that it took. Raises PluginError for what it raises, and if
    it does not keep the models' tensors or returns something."""
    before, started = _tensors(bank), time.perf_counter()
    with guard(file):
        returned = unlearn(bank, forget, retain)
        seconds, after = time.perf_counter() - started, _tensors(bank)
    rule = "unlearn must change the models of the bank in place and return nothing"
    if returned is not None:
        raise PluginError(f"{readable(file)}: {rule}; it returned {type_of(returned)}")
    if changed := sorted(before ^ after, key=str):
        raise PluginError(f"{readable(file)}: {rule}; of {changed[0][0]!r} it changed the shape or type")
    return seconds


def _tensors(bank: Bank) -> set[tuple[str, torch.Size, torch.dtype]]:
    return {(name, value.shape, value.dtype) for name, value in [*bank.parameters.items(), *bank.buffers.items()]}


def attempt(
    write: Callable[[], dict[str, Any]],
    models: str | None,
    logits: str,
    part: str,
    file: str | None,
    *,
    before: str = "",
    time_limit: float | None = None,
) -> dict[str, Any]:
    """Facts of what ``write`` writes; where it fails through a plug-in, ``models`` and ``logits`` say so instead.

    ``part``: "model" or "method", whichever ``write`` is the first to use; ``before``: what has failed where there are
    no models to ask, unless these say it. ``file`` is that of the user's own code, which runs in a process of its own
    for no longer than ``time_limit``, or None.
    """

    def safely() -> dict[str, Any]:
        try:
            return write()
        except NoAnswerError as error:
            return {"failed": str(error), "part": getattr(error, "part", "") or before}
        except PluginError as error:
            traceback.print_exception(error.__cause__ or error)  # into the job's log.txt
            return {"failed": str(error), "part": part}

    try:
        facts = isolated(safely, file, time_limit=time_limit)
    except PluginError as error:  # the process itself ended
        facts = {"failed": str(error), "part": part}
    if "failed" in facts:
        print(facts["failed"], file=sys.stderr)
        if models is not None:
            write_models_failure(models, facts["part"], facts["failed"])
        write_failure(logits, facts["part"], facts["failed"])
    return facts
