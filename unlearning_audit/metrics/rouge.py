"""ROUGE-L of what a language model says by itself in place of a sample's end (TOFU; VerbMem and KnowMem of MUSE)."""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from unlearning_audit.evaluation.arrays import Data
from unlearning_audit.evaluation.contributions import Contribution, Standard
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _answers, _text
from unlearning_audit.plugins.declarations import Comparison, Quantity
from unlearning_audit.plugins.settings import Settings

#: The models say by themselves what follows a question.
NEEDS = ("fair_draw", "generations")

QUANTITIES = (
    Quantity(
        "rouge_recall", "ROUGE-L recall",
        reading="Share of a text's words that the model says by itself, in their order; on text that was never seen it "
        "is not 0.",
    ),
    Quantity("rouge_f1", "ROUGE-L F1", reading="The same against the length of both texts."),
    Quantity("rouge_f1_unstemmed", "ROUGE-L F1, unstemmed", reading="F1 of the words as they are, as MUSE takes it."),
    Quantity(
        "rouge_gap", "ROUGE-L recall above retraining", ideal=0.0,
        reading="ROUGE-L recall minus that of retrained models: 0 = as if retrained.",
        comparisons=(Comparison("ROUGE gap", 37, ideal=0.0, two_sided=True, role="forget", retrained=True),),
    ),
)  # fmt: skip


class Options(Settings):
    """``most``: of so many retained and of so many test samples the models are asked, besides all that are forgotten or
    held out."""

    most: int = Field(200, ge=1)


def rows(case: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Of every role (field ``role``), the mean over models and samples: "rouge_recall", "rouge_f1" and
    "rouge_f1_unstemmed", and, with retrained models, "rouge_gap", the recall minus theirs (retraining itself is
    held against its control)."""
    audited, retrained = _answers.with_retrained(case, lambda files: _answers.overlap(case, files))

    def forms(overlap: np.ndarray) -> _text.Shares:
        names = ("rouge_recall", "rouge_f1", "rouge_f1_unstemmed")
        return {(name, ""): overlap[..., form] for form, name in enumerate(names)}

    of_retrained = None if retrained is None else forms(retrained)
    return _text.shares(case, forms(audited), of_retrained, gaps={"rouge_recall": "rouge_gap"})


def readings(data: Data, answers: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    """Name → float64 [models, samples] of the three forms, NaN where a model was not asked; ``answers`` of each model:
    the samples int64 [rows], −1 for none, and tokens int32 [rows, new]."""
    recall, f1, unstemmed = np.moveaxis(_answers.overlap_of(data, answers), -1, 0)
    return {"rouge_recall": recall, "rouge_f1": f1, "rouge_f1_unstemmed": unstemmed}


#: How much a model says of an answer that it never saw is read of retrained models alone.
DECIDES = {"rouge_recall": Standard(1, "accuracy", lowest=0.0, highest=1.0)}


def contributions(case: Evaluation, options: Options) -> dict[str, Contribution]:
    """The ROUGE-L recall by each target model of what it was asked to forget."""
    recall = _answers.overlap(case, case.generated_files)[..., 0]
    return _text.of_forgotten(case, "rouge_recall", recall, DECIDES["rouge_recall"])
