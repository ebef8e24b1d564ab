"""Confidence alone: how well φ distinguishes forgotten from held-out samples, without shadow models."""

import numpy as np

from unlearning_audit.metrics import OF_SAMPLES, DecisionRule, Effect, Evaluation, Row, _game, no_value, single, swap
from unlearning_audit.metrics.swap import QUANTITIES as QUANTITIES
from unlearning_audit.metrics.swap import Options as Options

NEEDS = ("game",)
DEFAULT = "imported"
ALONE = True


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return rows on how well φ distinguishes forgotten from held-out samples of the target models: "auc", "mia_score"
    (1 minus the AUC) and "tpr_at_fpr" for each rate of the options (field ``rate``), as means over splits.

    Intervals cover models and samples. If a model has no held-out samples, "auc" and "mia_score" have this reason in
    place of a number, and there is no TPR.
    """
    member = evaluation.membership[evaluation.target]
    if not member.heldout.any(axis=1).all():
        return [no_value(metric, "a model has no heldout samples", attack="phi") for metric in ("auc", "mia_score")]
    game, phi = _game_and_phi(evaluation)  # which samples each model forgets and never saw, and its φ on them
    # Without the rows of single pairs.
    return [row for row in swap.rows_of_attack(game, phi, name="phi", fprs=options.fpr) if row.pair is None]


#: Which of the drawn samples are forgotten is a random draw, of which retrained models know nothing.
DECIDES = {"auc": DecisionRule(1, "auc", ideal=0.5, chance=OF_SAMPLES, lowest=0.0, highest=1.0)}


def effects(evaluation: Evaluation) -> dict[str, Effect]:
    """Return "auc" → the AUC of φ for each target model, forgotten against held-out samples. {} if the study has
    attacks or canaries, which find more, or if a model has no forgotten or no held-out samples."""
    member = evaluation.membership[evaluation.target]
    attacks = [attack for attack, _ in evaluation.scores if attack != "random"]  # "random" is a control
    if attacks or member.pair is not None or not _game.sided(member):
        return {}
    game, phi = _game_and_phi(evaluation)
    places = {"unit": member.block, "split": member.split, "index": game.columns}
    # vars: the value of each AUC, its influence and imagined
    return {"auc": single(**vars(_game.auc(phi, game.forget, game.heldout)), **places, rule=DECIDES["auc"])}


def _game_and_phi(evaluation: Evaluation) -> tuple[_game.Game, np.ndarray]:
    """Return the game of the target models, and their φ on its samples, float64 [models, columns]."""
    game = _game.of_models(evaluation.membership[evaluation.target])
    return game, evaluation.audited.phi(game.columns)
