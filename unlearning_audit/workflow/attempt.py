"""Run code that may fail through a plug-in. On failure, write the reason in place of the batch's weights and logits."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, guard, readable, type_of
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.store.files import Json, NoAnswerError, write_failure
from unlearning_audit.training.engine import forward_one
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.stack import write_failure as write_models_failure
from unlearning_audit.training.streams import Rows


def of_model(settings: Json, place: Json) -> AbstractContextManager[Any]:
    """Return a context in which errors of a user's own model raise PluginError. For a library's model, errors stay
    unchanged, because they are defects.

    ``settings["model"]``: the model's name; ``place["file"]``: the file of the user's own model, or None.
    """
    if not place.get("file"):
        return nullcontext()
    return guard(registry.source_file("models", settings["model"], place["file"]))


def check_built(model: object, classes: int, file: str) -> nn.Module:
    """Return the model that a user's file built, after checking that its final layer has a name.

    The name is ``model.head``, or else that of the only layer with ``classes`` outputs, which is then stored in the
    model. A model that is a single layer is put into a Sequential. Raises PluginError that says what is missing.
    """
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


def check_model(stack: ModelStack, classes: int, file: str) -> None:
    """Check that a user's model maps two samples of its stack to logits, float [2, classes], which are not
    probabilities. Raises PluginError that says what is wrong."""
    rows = min(2, len(stack.x))
    kind = str(stack.scaled(stack.x[:1]).dtype).removeprefix("torch.")
    requirement = f"for {kind} {[rows, *stack.x.shape[1:]]} the model must return logits, float [{rows}, {classes}]"
    try:
        with guard(file), torch.no_grad():
            answer = forward_one(stack.model.eval(), *stack.state(0), stack.scaled(stack.x[:rows]))
    except PluginError as error:
        raise PluginError(f"{error} ({requirement})") from None
    if not isinstance(answer, torch.Tensor) or answer.shape != (rows, classes) or not answer.is_floating_point():
        raise PluginError(f"{readable(file)}: {requirement}; it returned {type_of(answer)}")
    if (answer >= 0).all() and ((answer.double().sum(-1) - 1).abs() < 8 * torch.finfo(torch.bfloat16).eps).all():
        problem = "the model returns probabilities (at least 0, with sum 1) instead of logits"
        raise PluginError(f"{readable(file)}: {problem}; forward must return the input of softmax")


def run_method(
    stack: ModelStack, unlearn: Callable[[ModelStack, Rows, Rows], object], forget: Rows, retain: Rows, file: str
) -> float:
    """Call ``unlearn`` with a stack of models and with their rows to forget and to retain, and return the seconds that
    it took.

    ``file``: the method's file, named in errors. Raises PluginError if the method raises an exception, or returns
    something in place of changing the models.
    """
    started = time.perf_counter()
    with guard(file):
        returned = unlearn(stack, forget, retain)
    if returned is not None:
        rule = "unlearn must change the models of the stack in place and return nothing"
        raise PluginError(f"{readable(file)}: {rule}; it returned {type_of(returned)}")
    return time.perf_counter() - started


def attempt(
    write: Callable[[], dict[str, Any]],
    models: str | None,
    logits: str,
    part: str,
    file: str | None,
    *,
    before: str = "",
    time_limit: float | None = None,
) -> Json:
    """Call ``write``, which writes models and logits, and return the facts that it returns for the job's spec. If it
    fails through a plug-in, write the reason to the files ``models`` (unless None) and ``logits`` instead, and return
    that.

    ``part``: "model" or "method", the plug-in that ``write`` uses first. ``before``: the part that is stated as failed
    if there are no models to query and their file does not name one. ``file``: the user's own code, which runs in its
    own process for at most ``time_limit`` seconds, or None.
    """
    try:
        return isolated(write, file, trace=False, time_limit=time_limit)
    except NoAnswerError as error:
        why, part = str(error), getattr(error, "part", before)
    except PluginError as error:
        why = str(error)
        print(error.trace, file=sys.stderr)  # into the job's log.txt
    print(why, file=sys.stderr)
    if models is not None:
        write_models_failure(models, part, why)
    write_failure(logits, part, why)
    return {"failed": why, "part": part}
