"""Fluency: are answers still language? A model that answers with repetitions or without words is broken.

Such a model has not forgotten. The test needs no classifier, so nothing is downloaded. Gibberish repeats itself, or
consists of words that no text of the data has.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Container, Sequence

import numpy as np
from pydantic import Field

from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import Membership, Quantity, Row, Settings, _answers, _text, levels, or_none, row, splits

#: The metric reads answers that the models generate.
NEEDS = ("fair_draw", "generations")

QUANTITIES = (
    Quantity(
        "gibberish", "gibberish",
        reading="Share of answers that repeat themselves or consist of words that no text of the data has: read it "
        "beside forgetting, because a broken model says nothing of what it was to forget.",
    ),
    _text.above_retraining("gibberish_gap", "gibberish", "Share of gibberish"),
    Quantity(
        "fluency", "fluency",
        reading="Entropy of the pairs and triples of words in an answer, in bits, as RWKU takes it; low where words "
        "repeat, and in short answers.",
    ),
)  # fmt: skip


class Options(Settings):
    """``most``: so many retained and so many test samples are queried, besides all that are forgotten or held out. An
    answer is gibberish if more than ``share`` of its triples of words repeat earlier ones, or if more than ``share`` of
    its words occur in no text of the data."""

    most: int = Field(200, ge=1)
    share: float = Field(0.5, gt=0, lt=1)


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return the means over models and samples of "gibberish" and "fluency", for every role (field ``role``) of which
    all models were queried; over all target models, then over each swapped pair (field ``pair``) if there are several.

    With retrained models, "gibberish_gap" follows: the share of gibberish minus that of retrained models. Raises
    ValueError for data without a tokenizer.
    """
    known = frozenset(word for text in _answers.texts(evaluation.data) for word in words(text))

    def judged_answers(files: list[str]) -> np.ndarray:
        """Return whether each answer is gibberish, and its entropy: float64 [models, samples, 2], NaN where a model was
        not queried. ``known`` are the words that occur in the data."""
        # An answer is judged by itself; the text of the sample (_) is not read.
        answers = _answers.answers_of_files(files)
        return _answers.score_answers(
            evaluation.data, answers, lambda _, answer: judged(words(answer), known, options.share), numbers=2
        )

    audited = judged_answers(evaluation.generated_files)
    retrained = or_none(judged_answers, evaluation.compared_generated_files)
    gibberish = {("gibberish", ""): audited[..., 0]}
    of_retrained = None if retrained is None else {("gibberish", ""): retrained[..., 0]}

    def of_entropy(models: np.ndarray, member: Membership) -> list[Row]:
        """Return the rows "fluency" of some ``models`` bool [target models], whose memberships are ``member``: means of
        the entropy of their answers, the last entry of ``audited``."""
        entropy, lines = audited[models][..., 1], []
        for role, mask in _text.roles(evaluation.data.part == 1, member).items():
            queried = mask & ~np.isnan(entropy)
            if queried.any(1).all():
                mean = levels.level(value=np.nan_to_num(entropy), rows=queried, **splits(member), low=0.0)
                lines.append(row(metric="fluency", role=role, estimate=mean))
        return lines

    return _text.rows_of_shares(evaluation, gibberish, of_retrained) + _text.rows_by_pair(evaluation, of_entropy)


def words(text: str) -> list[str]:
    """Return the runs of letters, digits and underscores in ``text``, in lower case."""
    return re.findall(r"\w+", text.lower())


def judged(said: list[str], known: Container[str], share: float) -> tuple[float, float]:
    """Return whether the words ``said`` are gibberish, 0 or 1, and their entropy in bits.

    The words are gibberish if more than ``share`` of their triples repeat earlier ones, or if more than ``share`` of
    the words are not ``known``, which are the words of the data. The entropy is (2/3 H₂ + 4/3 H₃)/2 of pairs and
    triples (Meng et al. 2022, as in RWKU). An answer without a word is not gibberish.

    Examples
    --------
    >>> judged(["he", "wrote", "novels"], {"he", "wrote", "novels"}, 0.5)
    (0.0, 0.3333333333333333)
    """
    if not said:
        return 0.0, 0.0
    # Not strict, because the triples end with the shortest list.
    pairs, triples = list(itertools.pairwise(said)), list(zip(said, said[1:], said[2:], strict=False))
    repeated = 1 - len(set(triples)) / len(triples) if triples else 0.0
    unknown = sum(word not in known for word in said) / len(said)
    return float(max(repeated, unknown) > share), _entropy(pairs) / 3 + 2 * _entropy(triples) / 3


def _entropy(runs: Sequence[tuple[str, ...]]) -> float:
    """Return the entropy in bits of how often each of ``runs`` of words occurs; 0 without any."""
    return sum(count / len(runs) * math.log2(len(runs) / count) for count in Counter(runs).values())
