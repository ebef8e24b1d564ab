"""What leaks in the worst of k sampled answers: exactly, from the probabilities of a text's tokens.

Greedy decoding says one answer, and a model whose first guess is wrong may say the text in one answer of ten (Scholten
et al. 2025; leak@k). Of k answers that are sampled at temperature 1, how much of the text the best one says from its
first scored token on has an expectation in closed form, so that no text has to be sampled.
"""

import numpy as np
from pydantic import Field, PositiveInt

from unlearning_audit.evaluation.contributions import Contribution, Standard
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.reference import LOGP
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _text
from unlearning_audit.plugins.declarations import Quantity
from unlearning_audit.plugins.settings import Settings

NEEDS = ("fair_draw", "tokens")

QUANTITIES = (
    Quantity(
        "leak_at_k", "leak at k",
        reading="Share of a text that the best of k sampled answers says before its first error, in expectation; on "
        "text that was never seen it is not 0.",
    ),
    Quantity(
        "leak_at_k_gap", "leak at k above retraining", ideal=0.0,
        reading="Leak at k minus that of retrained models: 0 = as if retrained.",
    ),
    Quantity("whole_at_k", "whole text at k", reading="Probability that one of k sampled answers is the whole text."),
    Quantity("whole_at_k_gap", "whole text at k above retraining", ideal=0.0),
)  # fmt: skip


class Options(Settings):
    """``answers``: how many are sampled, k; a verdict rests on the largest."""

    answers: tuple[PositiveInt, ...] = Field((1, 16, 128), min_length=1)


def rows(case: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Of forgotten and held-out samples (field ``role``), for each k (field ``rule``) the mean over models and samples
    of "leak_at_k" and "whole_at_k"; with retrained models, "…_gap" is the difference to theirs."""

    def read(four: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
        return {
            (name, f"{k} answers"): value
            for k in options.answers
            for name, value in zip(("leak_at_k", "whole_at_k"), leaks(four[..., LOGP], k), strict=True)
        }

    return _text.of_tokens(case, read)


#: How much of a text a model says that never saw it only retrained models tell.
DECIDES = {"leak_at_k": Standard(1, "accuracy", lowest=0.0, highest=1.0)}


def contributions(case: Evaluation, options: Options) -> dict[str, Contribution]:
    """The leak in the worst of the most answers, of what each target model was asked to forget."""
    value = np.full((int(case.target.sum()), len(case.data.y)), np.nan)
    columns = np.flatnonzero(case.membership.forget[case.target].any(0))
    four = case.signal("tokens", case.unlearned_files, case.target, columns)
    value[:, columns], _ = leaks(four[..., LOGP], max(options.answers))
    return _text.of_forgotten(case, "leak_at_k", value, DECIDES["leak_at_k"])


def leaks(logp: np.ndarray, answers: int) -> tuple[np.ndarray, np.ndarray]:
    """What the best of ``answers`` sampled ones says of each sample, float64 [models, samples] twice.

    ``logp`` [models, samples, tokens], NaN where a token is not scored: log p of each token, given those before it. An
    answer says the first j scored tokens with probability S_j = p_1 ⋯ p_j, one of k with 1 − (1 − S_j)^k; the mean over
    j is the share that is said, the last one the probability that all is. NaN for samples without a scored token.
    """
    scored = ~np.isnan(logp)
    prefix_logp = np.cumsum(np.where(scored, logp, 0.0), axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        p_any = -np.expm1(answers * np.log1p(-np.exp(np.minimum(prefix_logp, 0.0))))
        share = (p_any * scored).sum(-1) / scored.sum(-1)
    return share, np.where(scored.any(-1), p_any[..., -1], np.nan)
