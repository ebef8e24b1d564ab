"""Train one model on public text, from which all others of a scenario start."""

from pathlib import Path
from typing import Any

import numpy as np
from unlearning_audit import stats
from unlearning_audit.evaluation.arrays import Data
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.training import card
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows
from unlearning_audit.workflow.attempt import guard_model
from unlearning_audit.workflow.open_stack import builder, check_tokens, device_facts


def pretrain(data: str, models: str, settings: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    """Train one model on the data's public text, by the recipe under model.base, and write its weights to ``models``.

    ``place``: the path and limits of a user's file for the model, which runs in a separate process. Returns facts for
    the spec, among them the mean negative log-likelihood of that text in nats. Raises ValueError if the data have no
    public text.
    """
    samples = Data.read(data)
    public = samples.public
    if public is None or not len(public):
        raise ValueError(f"{data}: there is no public text to pretrain on; leave out base under model")
    models = str(Path(models).absolute())  # a model may change the folder

    def train() -> dict[str, Any]:
        """Train, and return facts for the spec. Errors of a user's own model are raised as PluginError."""
        with guard_model(settings, place):
            labels = np.zeros(len(public), np.int64)
            build, _ = builder(samples, settings, place)
            seeds, recipe = [settings["seed"]], Recipe(**settings["recipe"])
            stack = ModelStack.create(build, public, labels, seeds, recipe=recipe, device=card.use())
            check_tokens(stack, samples)
            stack.train(Rows.where(np.ones((1, len(public)), bool)))  # the one model is trained on all texts
            stack.write(models)
            # phi is log(p / (1 - p)) for the probability p of a text, so that log(1 + exp(-phi)) is -log p.
            phi = stats.phi(logits=stack.logits()[0], y=labels)  # of the one model
            return {"models": 1, **device_facts(stack.device), "nll": round(float(np.logaddexp(0, -phi).mean()), 4)}

    return isolated(train, place.get("file"), where=place.get("where", "model"), **place.get("terms", {}))
