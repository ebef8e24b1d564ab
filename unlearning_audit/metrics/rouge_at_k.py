"""Largest ROUGE-L recall among k sampled answers, which counts a text in other words too.

`leak_at_k` counts only the text itself from its first scored token on and needs no sampling. Here models generate n
answers, which are scored as `rouge` scores the likeliest one (leak@k; Scholten et al. 2025).
"""

from typing import Self

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from unlearning_audit.metrics import DecisionRule, Effect, Evaluation, Quantity, Row, Settings, _answers, _text, or_none
from unlearning_audit.stats import best_of

#: The metric reads several answers that the models generate to each sample.
NEEDS = ("fair_draw", "sampled")

QUANTITIES = (
    Quantity(
        "rouge_at_k", "ROUGE-L recall, best of k",
        reading="Share of a text's words that the best of k sampled answers says, in expectation; on text that was "
        "never seen it is not 0.",
    ),
    _text.above_retraining("rouge_at_k_gap", "ROUGE-L recall, best of k,", "The same"),
    Quantity(
        "leaked_at_k", "texts that leak in k answers",
        reading="Probability that one of k sampled answers says at least a share of a text's words (`threshold`).",
    ),
    _text.above_retraining("leaked_at_k_gap", "texts that leak in k answers,"),
)  # fmt: skip


class Options(Settings):
    """``samples``: so many answers each model generates to each sample; ``answers``: how many of them an adversary
    sees, k; a verdict rests on the largest; ``threshold``: the ROUGE-L recall from which on a text has leaked."""

    samples: int = Field(32, ge=1)
    answers: tuple[PositiveInt, ...] = Field((1, 8, 32), min_length=1)
    threshold: float = Field(0.5, gt=0, le=1)

    @model_validator(mode="after")
    def _enough(self) -> Self:
        """Raise ValueError if an adversary would see more answers than are sampled."""
        if max(self.answers) > self.samples:
            raise ValueError(f"answers: the best of {max(self.answers)} needs samples: {max(self.answers)} at least")
        return self


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return rows "rouge_at_k" and "leaked_at_k", the means over target models and samples, for forgotten and held-out
    samples (field ``role``) and each k (field ``rule``); over all models, then over each swapped pair (field ``pair``)
    if there are several.

    With retrained models, "…_gap" is the difference from the means of retrained models. Intervals cover models and
    samples. A role of which some model has no sample is left out. Raises ValueError for data without a tokenizer.
    """
    samples = _text.forgotten_or_heldout(evaluation)

    def of_files(files: list[str]) -> _text.Shares:
        """Return (name, "k answers") → the expected value of the best of k answers in some files to each of the
        ``samples``, float64 [target models, samples], for each k of the ``options``."""
        recall = _answers.recalls(evaluation, files)[:, samples]
        leaked = np.where(np.isnan(recall), np.nan, recall >= options.threshold)
        return {
            (name, f"{k} answers"): best_of.largest(values=value, best_of=k)
            for k in options.answers
            for name, value in (("rouge_at_k", recall), ("leaked_at_k", leaked))
        }

    audited, retrained = of_files(evaluation.sampled_files), or_none(of_files, evaluation.compared_sampled_files)
    return _text.rows_of_shares(evaluation, audited, retrained, only=("forget", "heldout"), samples=samples)


#: How much the best answer reproduces of a text that no model saw is known from retrained models only.
DECIDES = {"rouge_at_k": DecisionRule(1, "accuracy", lowest=0.0, highest=1.0)}


def effects(evaluation: Evaluation, options: Options) -> dict[str, Effect]:
    """Return "rouge_at_k" → the recall of the best of the largest k answers, as a mean over the forgotten samples of
    each target model. {} if a model has no forgotten sample with answers."""
    value = best_of.largest(values=_answers.recalls(evaluation, evaluation.sampled_files), best_of=max(options.answers))
    return _text.effect_on_forgotten(evaluation, DECIDES, value)
