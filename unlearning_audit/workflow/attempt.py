"""Failing plug-ins: the failure and its reason are written in place of the batch's weights and logits."""

import functools
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
from unlearning_audit.store.files import FailedError, NoAnswerError, write_failure
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
    names = [name for name, _ in model.named_parameters()]
    if not names:
        raise PluginError(
            f"{readable(file)}: the model that build returned has no parameters, so that nothing is learned"
        )
    head = getattr(model, "head", None)
    if not isinstance(head, str):
        if not list(model.children()):  # a layer by itself has no name
            model = nn.Sequential(model)
        model.final_layer_name = _final(model, classes, file)
    elif not any(name.startswith(f"{head}.") for name in names):
        advice = f"give the name of the last layer, or leave it out where one layer has {classes} outputs"
        raise PluginError(f"{readable(file)}: model.head is {head!r}, which is not a layer of the model; {advice}")
    return model


def _final(model: nn.Module, classes: int, file: str) -> str:
    """The name of the one linear or convolutional layer with ``classes`` outputs."""
    parameters = {name for name, _ in model.named_parameters()}
    alike = [
        name
        for name, layer in model.named_modules()
        if getattr(layer, "out_features", getattr(layer, "out_channels", None)) == classes
        and f"{name}.weight" in parameters
    ]
    if len(alike) == 1:
        return alike[0]
    subject = f"{', '.join(alike)} each have" if alike else "no linear or convolutional layer has"
    example = alike[-1] if alike else "fc"
    raise PluginError(
        f"{readable(file)}: {subject} {classes} outputs, which does not identify the last layer; set model.head to "
        f"its name, such as model.head = {example!r}"
    )


def check_model(bank: Bank, classes: int, file: str) -> None:
    """Check that a user's model answers two samples, and always the same. Raises PluginError that says what it must
    answer, or when its answers change."""
    rows = min(2, len(bank.x))
    x = bank.scaled(bank.x[:rows])
    kind = str(x.dtype).removeprefix("torch.")
    requirement = f"to {kind} {list(x.shape)} the model must answer with logits, float [{rows}, {classes}]"
    try:
        with guard(file), torch.no_grad():
            answer = forward_one(bank.model.eval(), *bank.state(0), x)
    except PluginError as error:
        raise PluginError(f"{error} ({requirement})") from None
    if not isinstance(answer, torch.Tensor) or answer.shape != (rows, classes) or not answer.is_floating_point():
        raise PluginError(f"{readable(file)}: {requirement}; it answered {type_of(answer)}")
    if _probabilities(answer):
        problem = "the model answers probabilities, of at least 0 and of sum 1, in the place of logits"
        raise PluginError(f"{readable(file)}: {problem}; let forward return what goes into softmax")
    _check_steady(bank, answer, file)


def _probabilities(answer: torch.Tensor) -> bool:
    """Whether all rows [rows, classes] are what a softmax gives, to the precision of their type."""
    rounding = max(1e-4, 8 * torch.finfo(answer.dtype).eps)
    return bool((answer >= 0).all() and ((answer.double().sum(-1) - 1).abs() < rounding).all())


#: Samples among which two are asked about once more, and by how much answers may differ by rounding alone, in units of
#: the largest answer.
AMONG, ROUNDING = 8, 1e-4


def _check_steady(bank: Bank, answer: torch.Tensor, file: str) -> None:
    """Check that a model answers the first samples as it answered before, ``answer``, also among others."""
    with guard(file), torch.no_grad():
        again, among = (
            forward_one(bank.model.eval(), *bank.state(0), bank.scaled(bank.x[:rows]))[: len(answer)]
            for rows in (len(answer), AMONG)
        )
    rounding = max(ROUNDING, 8 * torch.finfo(answer.dtype).eps) * max(1.0, float(answer.abs().max()))
    for result, when, cause in (
        (again, "it is asked twice", "dropout, or other noise,"),
        (among, "other samples are in the batch", "normalisation by the batch"),
    ):
        apart = float((result - answer).abs().max())
        if apart > rounding:
            raise PluginError(
                f"{readable(file)}: the model answers the same samples differently when {when}, by {apart:.2g} in a "
                f"logit: {cause} that goes on after model.eval(); let each such layer follow self.training, or take it "
                "out"
            )


def run_method(
    bank: Bank, unlearn: Callable[[Bank, Rows, Rows], object], forget: Rows, retain: Rows, file: str
) -> float:
    """Let a method change the models of a bank; the seconds that it took. Raises PluginError for what it raises, and if
    it does not keep the models' tensors or returns something."""
    before, started = _described(bank), time.perf_counter()
    with guard(file):
        returned = unlearn(bank, forget, retain)
    seconds = time.perf_counter() - started
    with guard(file):
        _check_models(bank, before, returned, file)
    return seconds


def _check_models(bank: Bank, before: dict[str, tuple[Any, ...]], returned: object, file: str) -> None:
    """Check that a method kept the models' tensors and ``returned`` None. Raises PluginError."""
    if returned is not None:
        requirement = "it must change the models of the bank and return nothing"
        raise PluginError(f"{readable(file)}: unlearn returned {type_of(returned)}; {requirement}")
    after = _described(bank)
    for name in before | after:
        if before.get(name) != after.get(name):
            was, now = (_words(tensors.get(name)) for tensors in (before, after))
            raise PluginError(
                f"{readable(file)}: unlearn must leave every tensor as it is: {name!r} was {was}, now {now}"
            )


def _described(bank: Bank) -> dict[str, tuple[Any, ...]]:
    """Name → (shape, dtype) of every parameter and buffer of a bank."""
    return {
        name: (tuple(value.shape), str(value.dtype).rpartition(".")[2]) if isinstance(value, torch.Tensor)
        else (type(value).__name__,)
        for name, value in (dict(bank.parameters) | dict(bank.buffers)).items()
    }  # fmt: skip


def _words(tensor: tuple[Any, ...] | None) -> str:
    if tensor is None:
        return "not there"
    return tensor[0] if len(tensor) == 1 else f"{tensor[1]} {list(tensor[0])}"


def attempt(
    write: Callable[[], dict[str, Any]], models: str, logits: str, part: str, file: str | None, **terms
) -> dict[str, Any]:
    """Facts of what ``write`` writes; where it fails through a plug-in, ``models`` and ``logits`` say so instead.

    ``part``: "model" or "method", whichever ``write`` is the first to use. ``file`` is that of the user's own code, or
    None: the library's own is trusted not to end the process. ``terms`` as of `isolated`.
    """

    def write_failures(cause: str, why: str) -> None:
        print(why, file=sys.stderr)
        write_models_failure(models, cause, why)
        write_failure(logits, cause, why)

    return _facts(write, write_failures, part, "", file, terms)


def answered(ask: Callable[[], dict[str, Any]], place: dict[str, Any], path: str) -> dict[str, Any]:
    """Facts of what ``ask`` writes to ``path`` about models that were unlearned; a user's own model is asked in a
    process of its own. Where there are no models, or these fail, the file says what failed, and why."""
    failure = functools.partial(write_failure, path)
    return _facts(ask, failure, "model", "method", place.get("file"), place.get("terms", {}))


def _facts(
    write: Callable[[], dict[str, Any]],
    fail: Callable[[str, str], None],
    part: str,
    part_before: str,
    file: str | None,
    terms: dict[str, Any],
) -> dict[str, Any]:
    """Facts of what ``write`` writes, in a fork if there is a ``file``; else why not, which ``fail`` writes.

    ``part``: what fails with ``write``; ``part_before``: what has failed where there is nothing to ask, unless it says.
    """

    def safely() -> dict[str, Any]:
        try:
            return write()
        except NoAnswerError as error:
            cause, why = (error.part, error.why) if isinstance(error, FailedError) else ("", str(error))
            return {"failed": why, "part": cause or part_before}
        except PluginError as error:
            traceback.print_exception(error.__cause__ or error)  # into the job's log.txt
            return {"failed": str(error), "part": part}

    try:
        facts = safely() if file is None else isolated(safely, file, **terms)
    except PluginError as error:  # the process itself ended
        facts = {"failed": str(error), "part": part}
    if "failed" in facts:
        fail(facts["part"], facts["failed"])
    return facts
