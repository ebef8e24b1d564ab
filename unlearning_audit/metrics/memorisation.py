"""Memorisation of texts by language models: exact memorisation and extraction strength."""

import numpy as np

from unlearning_audit.evaluation.shadow import RANK
from unlearning_audit.metrics import DecisionRule, Effect, Evaluation, Quantity, Row, _text

#: The metric reads the numbers of single tokens, which are stored beside the logits.
NEEDS = ("fair_draw", "tokens")

QUANTITIES = (
    Quantity(
        "exact_memorisation",
        reading="Share of tokens that are the model's first guess; on text that was never seen it is not 0.",
    ),
    _text.above_retraining(
        "exact_memorisation_gap", "exact memorisation", "Exact memorisation", "memorisation gap", 32
    ),
    Quantity(
        "extraction_strength",
        reading="Share of a text's end that greedy decoding gives without an error: 0 = not even the last token.",
    ),
    _text.above_retraining("extraction_strength_gap", "extraction strength"),
)  # fmt: skip


def rows(evaluation: Evaluation) -> list[Row]:
    """Return the means over models and samples of two numbers in [0, 1], for forgotten and held-out samples (field
    ``role``); over all target models, then over each swapped pair (field ``pair``) if there are several.

    "exact_memorisation" is the share of scored tokens that are the model's first guess (Tirumala et al. 2022).
    "extraction_strength" is the share of the text's end that greedy decoding reproduces without an error from the text
    before it (Carlini et al. 2021). With retrained models, "…_gap" is the difference from the means of retrained
    models: 0 = as if retrained. A role of which some model has no sample with a scored token is left out.
    """

    def both_by_rule(tokens: np.ndarray) -> _text.Shares:
        """Return (metric, field ``rule`` of its rows, which is empty) → values, from the signal ``tokens`` float64
        [models, samples, tokens, 4]."""
        return {(name, ""): value for name, value in both(tokens[..., RANK]).items()}

    return _text.rows_of_tokens(evaluation, both_by_rule)


#: How many tokens of an unseen text a model guesses is known from retrained models only. Extraction strength uses the
#: same ranks and does not decide, because it is 0 for nearly all texts and models.
DECIDES = {"exact_memorisation": DecisionRule(1, "accuracy", lowest=0.0, highest=1.0)}


def effects(evaluation: Evaluation) -> dict[str, Effect]:
    """Return "exact_memorisation" → each target model's mean exact memorisation of its forgotten samples. {} if a model
    has no forgotten sample with a scored token."""
    samples, tokens = _text.forgotten_tokens(evaluation)
    return _text.effect_on_forgotten(evaluation, DECIDES, exact(tokens[..., RANK]), samples)


def both(rank: np.ndarray) -> dict[str, np.ndarray]:
    """Return exact memorisation and extraction strength of each sample, float64 [models, samples] each.

    ``rank`` [models, samples, tokens]: the rank of each token from 0, NaN where it is not scored. NaN for samples
    without a scored token.
    """
    return {"exact_memorisation": exact(rank), "extraction_strength": strength(rank)}


def exact(rank: np.ndarray) -> np.ndarray:
    """Return the share of scored tokens that a model predicts first, float64 [..., samples]; NaN for a sample without
    any.

    ``rank`` [..., samples, tokens]: the rank of each token from 0, NaN where it is not scored.
    """
    return _share_of_scored(rank == 0, rank)


def strength(rank: np.ndarray) -> np.ndarray:
    """Return the share of scored tokens in the unbroken run of right predictions at the end, float64 [..., samples].

    ``rank`` [..., samples, tokens]: the rank of each token, 0 if right, NaN where it is not scored. 0 if the last token
    is wrong, NaN for a sample without a scored token.
    """
    right = (rank == 0) | np.isnan(rank)  # tokens that are not scored do not end the run
    # Accumulated from the end: whether a token and all tokens after it are right.
    return _share_of_scored(np.logical_and.accumulate(right[..., ::-1], axis=-1)[..., ::-1], rank)


def _share_of_scored(counted: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return the share of the scored tokens of each sample that are ``counted``, float64 [..., samples]; NaN for a
    sample without a scored token.

    Parameters
    ----------
    counted
        bool [..., samples, tokens].
    rank
        [..., samples, tokens]: the rank of each token, NaN where it is not scored.
    """
    scored = ~np.isnan(rank)
    with np.errstate(invalid="ignore"):
        return np.asarray((counted & scored).sum(-1) / scored.sum(-1))
