"""Make one batch of trained models forget, by one method, and write their logits."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from job import script

import numpy as np
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, guard, readable
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.store.files import ArtifactError, NoAnswerError, read_json
from unlearning_audit.training import checkpoints
from unlearning_audit.training.stack import ModelStack, writing_in_portions
from unlearning_audit.training.streams import Rows
from unlearning_audit.workflow import influence
from unlearning_audit.workflow.attempt import attempt, run_method
from unlearning_audit.workflow.open_stack import open_stacks, write_outputs


def task_of(
    stack: ModelStack, member: Membership, settings: dict[str, Any], place: dict[str, Any]
) -> tuple[Callable[..., Any], Rows, Rows]:
    """Set the seeds of ``stack``'s models for unlearning, and return three things: a function of (models, rows to
    forget, rows to retain) that unlearns, the rows that each model forgets, and the rows that each model retains.

    Parameters
    ----------
    member
        The memberships of these models.
    settings
        The method's name and options. In a sequence of requests, "at_once" says that all requests are forgotten and not
        only the newest.
    place
        "method_file": the file of the user's own method, or None.
    """
    stack.seeds = member.unlearning_seeds()
    forget = Rows.where(member.forget if settings.get("at_once") else member.newest)
    method = registry.load("methods", settings["method"], place.get("method_file"))
    options = method.Options(**settings["method_options"])
    run = partial(registry.call, "methods", method, "unlearn")
    return lambda *models: run(*models, options), forget, Rows.where(member.retain)


#: Data, memberships, the file of the trained models, settings, place, and files of the weights they started from.
Context = tuple[Data, Membership, str, dict[str, Any], dict[str, Any], Sequence[str]]


def unlearned_stacks(
    context: Context, facts: dict[str, Any], folder: Path | None = None, like: Sequence[str] = ()
) -> Iterator[tuple[np.ndarray, Membership, ModelStack]]:
    """Unlearn the models of a batch, portion by portion; yield of each portion the numbers of its models in the batch,
    int64 [models], their memberships and the models.

    Parameters
    ----------
    context
        (data, memberships, file of the trained models, settings, place, files of base weights).
    facts
        Is filled with what the spec records: seconds and privacy budget.
    folder
        Where a method that trains keeps checkpoints; None for no checkpoints.
    like
        For a sham (a random change of the weights), at most one file: the models after the method whose change the sham
        matches in size.
    """
    data, membership, trained, settings, place, base = context
    for part, member, stack in open_stacks(data, membership, settings, place, base, trained):
        stack.checkpoints = checkpoints.Checkpoints(folder, part) if folder else None
        for path in like:  # at most one
            stack.alike = stack.copy()
            stack.alike.load(path, models=part)
        seconds = run_method(stack, *task_of(stack, member, settings, place), file_of(settings, place))
        facts["unlearn_seconds"] = round(facts.get("unlearn_seconds", 0.0) + seconds, 3)
        facts |= {"privacy": stack.privacy} if stack.privacy else {}
        yield part, member, stack


def write_weights(models: str, context: Context) -> dict[str, Any]:
    """Unlearn all models and write only their weights to ``models``, for a user's method, whose process must not
    compute logits; return facts for the spec.

    ``context``: (data, memberships, file of the trained models, settings, place, files of base weights).
    """
    facts: dict[str, Any] = {}
    _, membership, _, settings, place, _ = context
    with writing_in_portions(models, len(membership.seed)) as write:
        for part, _, stack in unlearned_stacks(context, facts):
            with guard(file_of(settings, place)):
                write(part, stack)
    return facts


def file_of(settings: dict[str, Any], place: dict[str, Any]) -> str:
    """Return the path of the method's file: the file of a user's function, of a user's method, or of the library's."""
    file = settings["method_options"].get("file") or place.get("method_file")
    return file or str(registry.source_file("methods", settings["method"]))


def check_independence(context: Context) -> dict[str, Any]:
    """Check that a user's method changes each model of the first batch independently of the others (see `influence`).

    Raises PluginError if models influence each other much. Returns {"remarks": [sentence]} for the spec if they do so a
    little. Returns {} if they do not, if the check itself fails or takes too long, for a method of the library or a
    user's function, and for all later batches. ``context``: (data, memberships, file of the trained models, settings,
    place, files of base weights).
    """
    data, membership, trained, settings, place, base = context
    file = place.get("method_file")
    if file is None or membership.block.min() > 0:
        return {}

    def rehearse() -> dict[str, Any]:
        """Unlearn a few models several times; return how much they influence each other (0: not at all)."""
        _, member, stack = next(open_stacks(data, membership, settings, place, base, trained))
        with guard(file):
            return {"share": influence.influence(stack, *task_of(stack, member, settings, place))}

    try:
        share = isolated(rehearse, file, trace=False, time_limit=influence.SECONDS)["share"]
    except (ValueError, RuntimeError, MemoryError, OSError):
        return {}
    remark = influence.sentence(share, file)
    if share > influence.MUCH:
        raise PluginError(remark)
    return {"remarks": [remark]} if remark else {}


@script
def unlearn(
    data: str, splits: list[str], models: str, trained: list[str], logits: str, settings: dict[str, Any],
    place: dict[str, Any], base: Sequence[str] = (), tuned: Sequence[str] = (), like: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """Unlearn one batch of models and write their weights and logits; return facts for the spec.

    In a sequence of requests, the method forgets the newest request, or, with ``at_once`` in ``settings``, all requests
    so far. If a method fails, the reason is written in place of the weights and the logits.

    A user's own method writes only weights. The logits are computed from them afterwards, with the original data, in a
    process in which the method has not run.

    Parameters
    ----------
    trained
        One file: the original models, or the models after the preceding request. The method changes a copy of them.
    base
        At most one file: the weights that training started from.
    tuned
        At most one file: the options that tuning chose.
    like
        For a sham (a random change of the weights), at most one file: the models after the method whose change the sham
        matches in size.
    """
    for path in tuned:
        settings = {**settings, "method_options": read_json(path)["options"]}
    samples, membership = Data.read(data), Membership.read(splits[0])
    models, logits = (str(Path(path).absolute()) for path in (models, logits))  # a method may change the folder
    terms = place.get("terms", {})
    context = samples, membership, trained[0], settings, place, base
    user_file: str | None = settings["method_options"].get("file") or place.get("method_file")
    all_models, queried = np.arange(len(membership.seed)), np.any(membership.queries, axis=0)

    def unlearn_and_write() -> dict[str, Any]:
        """Unlearn by a method of the library, write weights and logits, and return facts for the spec."""
        facts: dict[str, Any] = {}
        stacks = unlearned_stacks(context, facts, Path(models).parent, like)
        return write_outputs(stacks, samples, models, logits, all_models, queried) | facts

    def write_logits(facts: dict[str, Any]) -> dict[str, Any]:
        """Write the logits of the weights that a user's method left, and return ``facts`` with those of the models."""
        stacks = open_stacks(samples, membership, settings, place, base, models, finite=False)
        try:
            return write_outputs(stacks, samples, None, logits, all_models, queried) | facts
        except NoAnswerError:
            raise
        except ArtifactError as error:
            # The advice to delete the file does not fit here, because the method would write the same weights again.
            why = str(error).removeprefix(f"{models}: ").partition("; delete")[0]
            what = f"{readable(str(user_file))}: the weights that it left cannot be read; {why}"
            raise PluginError(what) from None

    if user_file is None:
        file = place.get("file")  # of a user's own model, with which the job then runs in a separate process
        if "time_limit" in terms:  # without a file, the method would run in this process, which cannot be stopped
            file = file or file_of(settings, place)
        facts = attempt(unlearn_and_write, models, logits, "method", file, **terms)
        checkpoints.remove(Path(models).parent)
        return facts
    facts = attempt(lambda: write_weights(models, context), models, logits, "method", user_file, **terms)
    if "failed" not in facts:
        facts |= attempt(lambda: check_independence(context), models, logits, "method", None)
    if "failed" in facts:
        return facts
    return attempt(lambda: write_logits(facts), models, logits, "method", place.get("file"))
