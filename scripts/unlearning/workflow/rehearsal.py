"""Tries the user's own models of a plan on one batch of their data, before anything is made."""

import json

from unlearning.plugins.guard import PluginError, guard
from unlearning.plugins.isolation import isolated
from unlearning.workflow import forecast
from unlearning.workflow.job_sizes import DOWNLOADS, Draws
from unlearning.workflow.nodes import Plan

#: Sources that are there without a download; of those in `DOWNLOADS` black images take their place.
AT_HAND = ("digits", "arrays", "image_folder", *DOWNLOADS)


def models(plan: Plan) -> list[str]:
    """The files of the user's own models, each of which was built, trained on one batch and asked.

    A model whose data would have to be downloaded is left to its training. Raises ValueError, which names the scenario
    or all that share the model, the file, the line and what was expected.
    """
    nodes = forecast.nodes(plan)
    draws, tried, own = Draws(nodes), {}, {}
    for node in nodes:
        if node["stage"] != "train" or not node["place"].get("file"):
            continue
        (data,) = node["after"]["data"]
        source = draws.nodes[data]
        if source["settings"]["source"] in AT_HAND or source["place"].get("file"):
            settings = {name: node["settings"][name] for name in ("model", "options", "recipe")}
            own.setdefault(json.dumps([settings, node["place"], data], sort_keys=True), (settings, node["place"], data))
    for settings, place, data in own.values():
        try:
            isolated(lambda s=settings, p=place, d=data: _tried(draws.data(d), s, p), place["file"], trace=False)
        except PluginError as error:
            where = _scenarios(plan, settings["model"], place["file"])
            raise ValueError(f"{where}: {error}") from None
        tried[place["file"]] = None
    return list(tried)


def _scenarios(plan: Plan, model: str, file: str) -> str:
    """ "scenarios.noisy.model", of the first scenario that has the model."""
    users = [one.name for one in plan.study.scenarios if (one.model.name, one.model.file) == (model, file)]
    return f"scenarios.{users[0]}.model"


def _tried(data, settings: dict, place: dict) -> dict:
    """Builds one model and trains it on one batch, as a job would. Raises PluginError."""
    import numpy as np

    from unlearning.bank.bank import Bank
    from unlearning.bank.recipe import Recipe
    from unlearning.bank.streams import Rows
    from unlearning.workflow.attempt import check_model
    from unlearning.workflow.open_bank import builder

    recipe = Recipe(**{**settings["recipe"], "epochs": 1, "record_updates": False})
    rows = np.flatnonzero(data.part == 0)[: recipe.batch_size]
    build, file = builder(data, settings, place)
    with guard(file):
        bank = Bank.create(build, data.x[rows], data.y[rows], [0], recipe=recipe)
    check_model(bank, data.classes, file)
    with guard(file):
        bank.train(Rows(np.arange(len(rows))[None]))
    return {}
