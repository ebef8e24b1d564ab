"""ROUGE-L of the text that a language model generates in place of a sample's end (TOFU; two parts of MUSE).

The parts of MUSE are VerbMem and KnowMem.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from unlearning_audit.evaluation.effects import DecisionRule, Effect
from unlearning_audit.metrics import Data, Evaluation, Quantity, Row, Settings, _answers, _text, or_none

#: The metric reads answers that the models generate.
NEEDS = ("fair_draw", "generations")

QUANTITIES = (
    Quantity(
        "rouge_recall", "ROUGE-L recall",
        reading="Share of a text's words that the model says by itself, in their order; on text that was never seen it "
        "is not 0.",
    ),
    Quantity("rouge_f1", "ROUGE-L F1", reading="The same against the length of both texts."),
    Quantity("rouge_f1_unstemmed", "ROUGE-L F1, unstemmed", reading="F1 of the words as they are, as MUSE takes it."),
    _text.above_retraining("rouge_gap", "ROUGE-L recall", "ROUGE-L recall", "ROUGE gap", 37),
)  # fmt: skip


class Options(Settings):
    """``most``: so many retained and so many test samples are queried, besides all that are forgotten or held out."""

    most: int = Field(200, ge=1)


def rows(evaluation: Evaluation) -> list[Row]:
    """Return rows "rouge_recall", "rouge_f1" and "rouge_f1_unstemmed": means of ROUGE-L over target models and samples,
    for each role (field ``role``: forget, heldout, retain and test) of which all models have samples; over all models,
    then over each swapped pair (field ``pair``) if there are several.

    With retrained models, "rouge_gap" is the recall minus that of retrained models. Retraining itself is compared with
    its control. Intervals cover models and samples. Raises ValueError for data without a tokenizer.
    """

    def of_files(files: list[str]) -> _text.Shares:
        """Return (name, "") → ROUGE-L of the answers in some files to the samples of ``evaluation``: the recall, F1,
        and F1 without stemming. The "" says that the rows have no ``rule``."""
        return {(name, ""): values for name, values in by_metric(_answers.rouge(evaluation, files)).items()}

    audited, retrained = of_files(evaluation.generated_files), or_none(of_files, evaluation.compared_generated_files)
    return _text.rows_of_shares(evaluation, audited, retrained, gaps={"rouge_recall": "rouge_gap"})


def by_metric(rouge: np.ndarray) -> dict[str, np.ndarray]:
    """Return "rouge_recall", "rouge_f1" and "rouge_f1_unstemmed" → ROUGE-L, float64 [models, samples] each, from
    ``rouge`` [models, samples, 3], these three numbers of each sample."""
    return dict(zip(("rouge_recall", "rouge_f1", "rouge_f1_unstemmed"), np.moveaxis(rouge, -1, 0), strict=True))


def readings(data: Data, answers: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return "rouge_recall", "rouge_f1" and "rouge_f1_unstemmed" → ROUGE-L of the ``answers``, float64 [models,
    samples] each; NaN where a model was not queried.

    Parameters
    ----------
    answers
        For each model the samples int64 [rows], −1 for none, and the tokens of its answers int32 [rows, new].
    """
    return by_metric(_answers.rouge_of(data, answers))


#: How much a model reproduces of an answer that it never saw is known from retrained models only.
DECIDES = {"rouge_recall": DecisionRule(1, "accuracy", lowest=0.0, highest=1.0)}


def effects(evaluation: Evaluation) -> dict[str, Effect]:
    """Return "rouge_recall" → each target model's mean ROUGE-L recall of its forgotten samples. {} if a model has no
    forgotten sample with an answer."""
    recall = _answers.rouge(evaluation, evaluation.generated_files)[..., 0]
    return _text.effect_on_forgotten(evaluation, DECIDES, recall)
