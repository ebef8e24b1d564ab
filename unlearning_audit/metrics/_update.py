"""AUC of attacks that have both models, before and after unlearning; each is compared with retrained models."""

from dataclasses import replace

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.effects import DecisionRule, Effect, several
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _game, row
from unlearning_audit.stats import crossed, separation

#: Without unlearning the AUC is .5. The AUC of retraining is known from retrained models only, even if the forgotten
#: samples are drawn at random.
STANDARD = DecisionRule(-1, "auc", units="pairs", lowest=0.0, highest=1.0, coarse=True)

NOTE = "retrained models are not at chance: compare with them"


def rows(case: Evaluation, target: Membership) -> list[Row]:
    """Return ``update_auc`` of every attack of the form "both". An attack whose scores are NaN for some sample has no
    row."""
    names, parts = _parts(case, target)
    numbers = _game.estimates(_game.of_models(target), parts) if parts else []
    noted = [replace(number, note="; ".join(filter(None, (number.note, NOTE)))) for number in numbers]
    return [row(attack=name, metric="update_auc", estimate=of) for name, of in zip(names, noted, strict=True)]


def effects(case: Evaluation, target: Membership) -> dict[str, Effect]:
    """Return "update_auc" of each target model and attack, as verdicts read it.

    Empty if no attack of the form "both" scored every forgotten and held-out sample, or if a model has samples on one
    side only.
    """
    names, parts = _parts(case, target)
    if not names:
        return {}
    places = {"unit": target.block, "split": target.split, "index": _game.of_models(target).columns}
    return {"update_auc": several(names, parts, **places, rule=STANDARD)}


def _parts(case: Evaluation, target: Membership) -> tuple[list[str], list[crossed.PerModel]]:
    """Return the names of the attacks on the update (form "both"), and the AUC of each per model, forgotten against
    held-out.

    Attacks whose scores are not finite on all forgotten and held-out samples are left out; nothing is returned if a
    model has samples on one side only.
    """
    if not case.updates or not _game.sided(target):
        return [], []
    rules, sides = _game.of_models(target), target.forget | target.heldout
    scores = {name: score for name, score in case.updates.items() if not np.isnan(score[sides]).any()}
    parts = [
        separation.auc(score=score[:, rules.columns], positive=rules.forget, negative=rules.heldout)
        for score in scores.values()
    ]
    return [f"{name}/both" for name in scores], parts
