"""Expected leak in the worst of k sampled answers, computed exactly from the probabilities of a text's tokens.

Greedy decoding gives one answer. A model whose first guess is wrong may reproduce the text in one answer of ten
(Scholten et al. 2025; leak@k). The metric is how much of the text the best of k answers, sampled at temperature 1,
reproduces from its first scored token on. Its expectation has a closed form, so that no text is sampled.
"""

import numpy as np
from pydantic import Field, PositiveInt

from unlearning_audit.evaluation.shadow import LOGP
from unlearning_audit.metrics import DecisionRule, Effect, Evaluation, Quantity, Row, Settings, _text

NEEDS = ("fair_draw", "tokens")

QUANTITIES = (
    Quantity(
        "leak_at_k", "leak at k",
        reading="Share of a text that the best of k sampled answers says before its first error, in expectation; on "
        "text that was never seen it is not 0.",
    ),
    _text.above_retraining("leak_at_k_gap", "leak at k", "Leak at k"),
    Quantity("whole_at_k", "whole text at k", reading="Probability that one of k sampled answers is the whole text."),
    _text.above_retraining("whole_at_k_gap", "whole text at k"),
)  # fmt: skip


class Options(Settings):
    """``answers``: how many are sampled, k; a verdict rests on the largest."""

    answers: tuple[PositiveInt, ...] = Field((1, 16, 128), min_length=1)


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return rows "leak_at_k", the expected share of a text that the best of k sampled answers says before its first
    error, and "whole_at_k", the probability that one of them says all of it: means over target models and samples, for
    forgotten and held-out samples (field ``role``) and each k (field ``rule``); over all models, then over each swapped
    pair (field ``pair``) if there are several.

    With retrained models, "…_gap" is the difference from the means of retrained models. Intervals cover models and
    samples. A role of which some model has no sample with a scored token is left out.
    """

    def of_every_k(tokens: np.ndarray) -> _text.Shares:
        """Return "leak_at_k" and "whole_at_k" for each k of the ``options``, from log p of the signal ``tokens``
        float64 [models, samples, tokens, 4]."""
        return {
            (name, f"{k} answers"): value
            for k in options.answers
            for name, value in zip(("leak_at_k", "whole_at_k"), leaks(tokens[..., LOGP], k), strict=True)
        }

    return _text.rows_of_tokens(evaluation, of_every_k)


#: How much of a text a model reproduces without having seen it is known from retrained models only.
DECIDES = {"leak_at_k": DecisionRule(1, "accuracy", lowest=0.0, highest=1.0)}


def effects(evaluation: Evaluation, options: Options) -> dict[str, Effect]:
    """Return "leak_at_k" → the expected share at the largest k (`leaks`), as a mean over the forgotten samples of each
    target model. {} if a model has no forgotten sample with a scored token."""
    samples, tokens = _text.forgotten_tokens(evaluation)
    share, _whole = leaks(tokens[..., LOGP], max(options.answers))
    return _text.effect_on_forgotten(evaluation, DECIDES, share, samples)


def leaks(logp: np.ndarray, answers: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected share of each sample that the best of ``answers`` sampled answers reproduces, and the
    probability that one reproduces all: float64 [models, samples] each.

    ``logp`` [models, samples, tokens]: log p of each token, given those before it; NaN where a token is not scored. An
    answer reproduces the first j scored tokens with probability S_j = p_1 ⋯ p_j, and one of k with 1 − (1 − S_j)^k. The
    mean over j is the expected share, and the last term the probability of all. NaN for samples without a scored token.
    """
    scored = ~np.isnan(logp)
    prefix_logp = np.cumsum(np.where(scored, logp, 0.0), axis=-1)  # ln S_j
    with np.errstate(divide="ignore", invalid="ignore"):
        p_of_one = -np.expm1(answers * np.log1p(-np.exp(np.minimum(prefix_logp, 0.0))))  # 1 − (1 − S_j)^k
        share = (p_of_one * scored).sum(-1) / scored.sum(-1)
    return share, np.where(scored.any(-1), p_of_one[..., -1], np.nan)
