"""Texts that language models generate, compared with the texts of the data."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from unlearning_audit.evaluation.generations import Generations, Sampled
from unlearning_audit.metrics import Data, Evaluation


def overlap(evaluation: Evaluation, files: list[str]) -> np.ndarray:
    """Return ROUGE-L of the answers that the defender's models generate, against the scored tokens of each sample.

    float64 [models, samples, 3]: recall, F1, and F1 of unstemmed words; NaN where a model was not queried. It is
    computed once for an evaluation. Raises NoAnswerError where a method left no models, and ValueError for data without
    a tokenizer.
    """

    return evaluation.once("overlap", files, lambda: overlap_of(evaluation.data, of_files(files)))


def of_files(files: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Read the generated answers of all models in these files: for each model, the samples int64 [rows], −1 for none,
    and the tokens of its answers int32 [rows, new]."""
    parts = [Generations.read(path) for path in files]
    return [pair for part in parts for pair in zip(part.index, part.tokens, strict=True)]


def recalls(evaluation: Evaluation, files: list[str]) -> np.ndarray:
    """Return the ROUGE-L recall of each sampled answer of the defender's models, float64 [models, samples, answers].

    NaN where a model was not queried. It is computed once for an evaluation. Raises NoAnswerError where a method left
    no models, and ValueError for data without a tokenizer.
    """

    def compute() -> np.ndarray:
        """Score the k-th answers of all samples for each k in turn, and keep their recall, which `overlap_of` gives
        first.

        Every model has as many answers as are in the file with the fewest; files without models do not count.
        """
        parts = [Sampled.read(path) for path in files]
        of_models = [model for part in parts for model in zip(part.index, part.tokens, strict=True)]
        answers = min((part.tokens.shape[2] for part in parts if len(part.index)), default=0)
        overlaps = [
            overlap_of(evaluation.data, [(index, tokens[:, k]) for index, tokens in of_models]) for k in range(answers)
        ]
        return np.stack([scores[..., 0] for scores in overlaps], axis=-1)

    return evaluation.once("recalls", files, compute)


def overlap_of(data: Data, answers: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return ROUGE-L of ``answers`` against the texts of samples, float64 [models, samples, 3]: recall, F1, and F1 of
    unstemmed words; NaN where a model was not queried.

    ``answers``: for each model the samples int64 [rows], −1 for none, and the tokens of its answers int32 [rows, new].
    """
    return scored(data, answers, rouge_l, 3)


def scored(
    data: Data, answers: Sequence[tuple[np.ndarray, np.ndarray]], score: Callable[[str, str], tuple[float, ...]],
    numbers: int,
) -> np.ndarray:  # fmt: skip
    """Score each answer against the text of its sample; return float64 [models, samples, numbers], NaN where a model
    was not queried.

    ``score(text of the sample, text of the answer)`` returns as many numbers as ``numbers`` says; ``answers`` are as in
    `overlap_of`. Raises ValueError for data without a tokenizer.
    """
    tokenizer, scores = tokenizer_of(data), np.full((len(answers), len(data.y), numbers), np.nan)
    references: dict[int, str] = {}
    for model, (index, tokens) in enumerate(answers):
        at = np.flatnonzero(index >= 0)
        texts = tokenizer.decode_batch([row[row >= 0].tolist() for row in tokens[at]])
        for sample, text in zip(index[at].tolist(), texts, strict=True):
            if sample not in references:
                references[sample] = _text(tokenizer, data.x[sample, 1:])
            scores[model, sample] = score(references[sample], text)
    return scores


def texts(data: Data) -> Iterator[str]:
    """Yield the scored text of every row of the data. Raises ValueError for data without a tokenizer."""
    tokenizer = tokenizer_of(data)
    return (_text(tokenizer, row[1:]) for row in data.x)


def tokenizer_of(data: Data) -> Any:
    """Return the tokenizer of the data. Raises ValueError if there is none."""
    from tokenizers import Tokenizer

    if data.tokenizer is None:
        raise ValueError("the data hold no tokenizer, so that no generated text can be read; choose question_answer")
    return Tokenizer.from_str(data.tokenizer.tobytes().decode())


def _text(tokenizer: Any, tokens: np.ndarray) -> str:
    """Decode ``tokens`` to text, without those that are negative (not scored, or padding)."""
    text: str = tokenizer.decode(tokens[tokens >= 0].tolist())
    return text


@functools.cache
def _scorer(stemmed: bool) -> Any:
    """Return a scorer of ROUGE-L, with or without stemming of words."""
    from rouge_score.rouge_scorer import RougeScorer  # slow to import: it brings all of nltk

    return RougeScorer(["rougeL"], use_stemmer=stemmed)


@functools.lru_cache(1 << 16)
def rouge_l(reference: str, answer: str) -> tuple[float, float, float]:
    """Return recall and F1 of the longest common subsequence of stemmed words (Lin 2004), and F1 of unstemmed words.

    TOFU uses the first, MUSE the last. They are 0 where a text has no word of Latin letters or digits.
    """
    stemmed, whole = (_scorer(stem).score(reference, answer)["rougeL"] for stem in (True, False))
    return stemmed.recall, stemmed.fmeasure, whole.fmeasure
