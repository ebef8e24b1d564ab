"""Make one batch of trained models forget, by one method, and write their logits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, guard, readable
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.store.files import ArtifactError, Json, NoAnswerError, read_json
from unlearning_audit.training import checkpoints
from unlearning_audit.training.stack import ModelStack, writing_in_portions
from unlearning_audit.training.streams import Rows
from unlearning_audit.workflow import influence
from unlearning_audit.workflow.attempt import attempt, run_method
from unlearning_audit.workflow.open_stack import ModelBatch, write_outputs


@dataclass(frozen=True)
class Unlearning(ModelBatch):
    """A batch of models that a method makes forget.

    Parameters
    ----------
    trained
        The file of the trained models.
    """

    trained: str

    @property
    def users_file(self) -> str | None:
        """The file of a user's function or method; None for a method of the library."""
        file: str | None = self.settings["method_options"].get("file") or self.place.get("method_file")
        return file

    @property
    def file(self) -> str:
        """The file of the method: the user's or the library's."""
        return self.users_file or str(registry.source_file("methods", self.settings["method"]))

    def task(self, stack: ModelStack, member: Membership) -> tuple[Callable[..., Any], Rows, Rows]:
        """Set the seeds of ``stack``'s models for unlearning, and return three things: a function of (models, rows to
        forget, rows to retain) that unlearns, the rows that each model forgets, and the rows that each model retains.

        In a sequence of requests, "at_once" in the settings says that all requests are forgotten and not only the
        newest. ``member``: the memberships of these models.
        """
        stack.seeds = member.unlearning_seeds()
        forget = Rows.where(member.forget if self.settings.get("at_once") else member.newest)
        method = registry.load("methods", self.settings["method"], self.place.get("method_file"))
        options = method.Options(**self.settings["method_options"])
        run = partial(registry.call, "methods", method, "unlearn")
        return lambda *given: run(*given, options), forget, Rows.where(member.retain)

    def unlearned(
        self, facts: Json, folder: Path | None = None, like: Sequence[str] = ()
    ) -> Iterator[tuple[np.ndarray, Membership, ModelStack]]:
        """Unlearn the models of a batch, portion by portion; yield of each portion the numbers of its models in the
        batch, int64 [models], their memberships and the models.

        Parameters
        ----------
        facts
            Is filled with what the spec records: seconds and privacy budget.
        folder
            Where a method that trains keeps checkpoints; None for no checkpoints.
        like
            For a sham (a random change of the weights), at most one file: the models after the method whose change the
            sham matches in size.
        """
        for portion, member, stack in self.stacks(self.trained):
            stack.checkpoints = checkpoints.Checkpoints(folder, portion) if folder else None
            for path in like:  # at most one
                stack.matched = stack.copy()
                stack.matched.load(path, models=portion)
            seconds = run_method(stack, *self.task(stack, member), self.file)
            facts["unlearn_seconds"] = round(facts.get("unlearn_seconds", 0.0) + seconds, 3)
            facts |= {"privacy": stack.privacy} if stack.privacy else {}
            yield portion, member, stack

    def write_weights(self, models: str) -> Json:
        """Unlearn all models and write only their weights to ``models``, for a user's method, whose process must not
        compute logits; return facts for the spec."""
        facts: Json = {}
        with writing_in_portions(models, len(self.membership.seed)) as write:
            for portion, _, stack in self.unlearned(facts):
                with guard(self.file):
                    write(portion, stack)
        return facts

    def check_independence(self) -> Json:
        """Check that a user's method changes each model of the first batch independently of the others.

        Raises PluginError if models influence each other by more than `influence.MUCH`. Returns {"remarks": [sentence]}
        for the spec if by less, but by more than rounding explains. Returns {} if models are independent, and if the
        check itself fails or takes too long. Without a check, returns {} for a method of the library, for a user's
        function, and for all batches but the first.
        """
        file = self.place.get("method_file")
        if file is None or self.membership.block.min() > 0:  # the first batch has block 0
            return {}

        def rehearse() -> Json:
            """Unlearn a few models several times; return how much they influence each other (0: not at all)."""
            _, member, stack = next(self.stacks(self.trained))  # the first portion
            with guard(file):
                return {"share": influence.influence(stack, *self.task(stack, member))}

        try:
            share = isolated(rehearse, file, trace=False, time_limit=influence.SECONDS)["share"]
        except (ValueError, RuntimeError, MemoryError, OSError):
            return {}
        remark = influence.sentence(share, file)
        if share > influence.MUCH:
            raise PluginError(remark)
        return {"remarks": [remark]} if remark else {}


def unlearn(
    data: str,
    splits: list[str],
    models: str,
    trained: list[str],
    logits: str,
    settings: dict[str, Any],
    place: dict[str, Any],
    base: Sequence[str] = (),
    tuned: Sequence[str] = (),
    like: Sequence[str] = (),
) -> dict[str, Any]:
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
    terms, batch = place.get("terms", {}), Unlearning(samples, membership, settings, place, base, trained[0])
    all_models, queried = np.arange(len(membership.seed)), np.any(membership.queries, axis=0)

    def unlearn_and_write() -> dict[str, Any]:
        """Unlearn by a method of the library, write weights and logits, and return facts for the spec."""
        facts: dict[str, Any] = {}
        stacks = batch.unlearned(facts, Path(models).parent, like)
        return write_outputs(stacks, samples, models, logits, all_models, queried) | facts

    def write_logits(facts: dict[str, Any]) -> dict[str, Any]:
        """Write the logits of the weights that a user's method left, and return ``facts`` together with the facts that
        `write_outputs` returns on the models."""
        try:
            stacks = batch.stacks(models, finite=False)
            # None: the weights are written already.
            return write_outputs(stacks, samples, None, logits, all_models, queried) | facts
        except NoAnswerError:
            raise
        except ArtifactError as error:
            # The advice to delete the file does not fit here, because the method would write the same weights again.
            why = str(error).removeprefix(f"{models}: ").partition("; delete")[0]
            what = f"{readable(batch.file)}: the weights that it left cannot be read; {why}"
            raise PluginError(what) from None

    # Below, "method" and "model" say whose error `attempt` catches and states.
    if batch.users_file is None:
        file = place.get("file")  # of a user's own model, with which the job then runs in a separate process
        if "time_limit" in terms:  # without a file, the method would run in this process, which cannot be stopped
            file = file or batch.file
        facts = attempt(unlearn_and_write, models, logits, "method", file, **terms)
        checkpoints.remove(Path(models).parent)
        return facts
    facts = attempt(lambda: batch.write_weights(models), models, logits, "method", batch.file, **terms)
    if "failed" not in facts:
        # None: this process does not run the user's file; the check starts a process of its own for it.
        facts |= attempt(batch.check_independence, models, logits, "method", None)
    if "failed" in facts:
        return facts
    return attempt(lambda: write_logits(facts), models, logits, "method", place.get("file"))
