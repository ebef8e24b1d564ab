"""Run code that may fail through a plug-in. On failure, write the reason in place of the batch's weights and logits."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, guard, readable, type_of
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.store.files import Json, NoAnswerError, write_failure
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.stack import write_failure as write_models_failure
from unlearning_audit.training.streams import Rows


def guard_model(settings: Json, place: Json) -> AbstractContextManager[Any]:
    """Return a context for running a model. If it is a user's own, any exception in the context, wherever it is raised,
    becomes PluginError, except for interrupts and errors of the machine. If it is a library's, exceptions stay
    unchanged, because they are defects.

    Parameters
    ----------
    settings
        "model": the model's name.
    place
        "file": the file of the user's own model, or None.

    Raises
    ------
    ValueError
        If the file does not exist.
    """
    file = place.get("file")
    return guard(registry.source_file("models", settings["model"], file)) if file else nullcontext()


def run_method(
    stack: ModelStack, unlearn: Callable[[ModelStack, Rows, Rows], object], forget: Rows, retain: Rows, file: str
) -> float:
    """Call ``unlearn`` with a stack of models and with their rows to forget and to retain, and return the seconds that
    it took.

    Parameters
    ----------
    file
        The method's file, named in errors.

    Raises
    ------
    PluginError
        If the method raises an exception, or returns something in place of changing the models.
    """
    started = time.perf_counter()
    with guard(file):
        returned = unlearn(stack, forget, retain)
    if returned is not None:
        demand = "unlearn must change the models of the stack in place and return nothing"
        raise PluginError(f"{readable(file)}: {demand}; it returned {type_of(returned)}")
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
    """Call ``write``, which writes models and logits, and return the facts that it returns for the job's spec.

    If a plug-in makes ``write`` fail, write the reason to the files ``models`` (unless None) and ``logits`` in place of
    results, and return the reason and the part that failed.

    Parameters
    ----------
    part
        "model" or "method", the plug-in whose error is caught.
    before
        The part that is stated as failed if ``write`` finds no models to query, and their file does not name a part.
    file
        The user's own code, which runs in its own process for at most ``time_limit`` seconds. None: ``write`` runs
        library code only, in this process and without a limit, and its defects are raised.
    """
    try:
        return isolated(write, file, trace=False, time_limit=time_limit)
    except NoAnswerError as error:  # an earlier job has failed; its FailedError says which part
        why, part = str(error), getattr(error, "part", before)
    except PluginError as error:
        why = str(error)
        print(error.trace, file=sys.stderr)  # into the job's log.txt
    print(why, file=sys.stderr)
    if models is not None:
        write_models_failure(models, part, why)
    write_failure(logits, part, why)
    return {"failed": why, "part": part}
