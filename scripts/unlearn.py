"""Make one batch of trained models forget, by one method, and dump their logits."""

import time

from job import script
from unlearning.artifacts.arrays import Data, Membership
from unlearning.bank.streams import Rows
from unlearning.plugins import registry
from unlearning.workflow.open_bank import dump, open_bank


@script
def unlearn(
    data: str, splits: list[str], models: str, trained: list[str], logits: str, settings: dict, place: dict
) -> dict:
    """``trained`` are the original models; the method changes a copy of them."""
    samples, membership = Data.read(data), Membership.read(splits[0])
    bank = open_bank(samples, membership, settings, place)
    bank.load(trained[0])
    bank.seeds = membership.unlearning_seeds()
    forget, retain = Rows.where(membership.forget), Rows.where(membership.retain)
    method = registry.load("methods", settings["method"], place.get("method_file"))
    options = method.Options(**settings["method_options"])
    started = time.perf_counter()
    method.unlearn(bank, forget, retain, options)
    seconds = time.perf_counter() - started
    return {
        **dump(bank, samples, models, logits, membership.forget, settings["gradients"]),
        "unlearn_seconds": round(seconds, 3),
    }
