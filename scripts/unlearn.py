"""Make one batch of trained models forget, by one method, and dump their logits."""

import time

from job import script
from unlearning.artifacts.arrays import Data, Membership
from unlearning.bank.streams import Rows
from unlearning.plugins import registry
from unlearning.plugins.guard import guard
from unlearning.workflow.attempt import attempt, check_models, described
from unlearning.workflow.open_bank import asked, dump, open_bank


@script
def unlearn(
    data: str,
    splits: list[str],
    models: str,
    trained: list[str],
    logits: str,
    settings: dict,
    place: dict,
    base: list[str] = (),
) -> dict:
    """``trained`` are the original models, or what an earlier request left; the method changes a copy of them.

    In a sequence it is asked to forget the newest request, or, with ``at_once``, all that were made.
    A method that fails leaves neither weights nor logits, and the reason is written in their place.
    """
    samples, membership = Data.read(data), Membership.read(splits[0])
    own = settings["method_options"].get("file") if settings["method"] == "classic" else place.get("method_file")

    def made() -> dict:
        bank = open_bank(samples, membership, settings, place, base)
        bank.load(trained[0])
        bank.seeds = membership.unlearning_seeds()
        named = membership.forget if settings.get("at_once") else membership.newest
        forget, retain = Rows.where(named), Rows.where(membership.retain)
        method = registry.load("methods", settings["method"], place.get("method_file"))
        options = method.Options(**settings["method_options"])
        before, file = described(bank), own or method.__file__
        started = time.perf_counter()
        with guard(file):
            returned = method.unlearn(bank, forget, retain, options)
            check_models(bank, before, returned, file)
        seconds = time.perf_counter() - started
        tokens_of = asked(membership, settings)
        facts = dump(
            bank, samples, models, logits, membership.forget, settings["gradients"], tokens_of=tokens_of,
            first=membership.asked.any(axis=0),
        )  # fmt: skip
        return {**facts, "unlearn_seconds": round(seconds, 3)}

    return attempt(made, models, logits, "method", own or place.get("file"))
