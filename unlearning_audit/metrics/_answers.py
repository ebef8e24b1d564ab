"""Texts that language models generate, compared with the texts of the data."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from unlearning_audit.evaluation.signal_files import Generations, Sampled
from unlearning_audit.metrics import Data, Evaluation


def rouge(evaluation: Evaluation, files: list[str]) -> np.ndarray:
    """Return ROUGE-L of the answers that the defender's models generate, against the scored tokens of each sample.

    float64 [models, samples, 3]: recall, F1, and F1 of unstemmed words; NaN where a model was not queried. The result
    is computed once for an evaluation, and kept. Raises NoAnswerError where a method left no models, and ValueError for
    data without a tokenizer.
    """
    return evaluation.cached("rouge", files, lambda: rouge_of(evaluation.data, answers_of_files(files)))


def answers_of_files(files: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the generated answers of all models in these files: for each model, the samples int64 [rows], −1 for none,
    and the tokens of its answers int32 [rows, new], −1 after the last one. ``rows`` and ``new`` may differ between
    files. Raises NoAnswerError where a method left no models."""
    return [answers for path in files for answers in _by_model(Generations.read(path))]


def _by_model(batch: Generations | Sampled) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each model in one file's ``batch`` the samples int64 [rows], −1 for none, and the tokens of its answers
    int32 [rows, new], or [rows, answers, new] if several were sampled; −1 after the last token."""
    return zip(batch.index, batch.tokens, strict=True)


def recalls(evaluation: Evaluation, files: list[str]) -> np.ndarray:
    """Return the ROUGE-L recall of each sampled answer of the defender's models, float64 [models, samples, answers].

    NaN where a model was not queried. The result is computed once for an evaluation, and kept. Raises NoAnswerError
    where a method left no models, and ValueError for data without a tokenizer.
    """

    def compute() -> np.ndarray:
        """Return the recalls of the answers in ``files`` to the samples of ``evaluation``, from ROUGE-L of the k-th
        answers of all samples for each k in turn.

        Of each sample, only the first answers count: as many as there are in the file with the fewest.
        """
        of_models = [answers for path in files for answers in _by_model(Sampled.read(path))]
        count = min(tokens.shape[1] for _, tokens in of_models)
        kth_answers = ([(index, tokens[:, k]) for index, tokens in of_models] for k in range(count))
        overlaps = [rouge_of(evaluation.data, answers) for answers in kth_answers]
        return np.stack([of_kth[..., 0] for of_kth in overlaps], axis=-1)  # recall is the first of the three numbers

    return evaluation.cached("recalls", files, compute)


def rouge_of(data: Data, answers: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return ROUGE-L of ``answers`` against the texts of samples, float64 [models, samples, 3]: recall, F1, and F1 of
    unstemmed words; NaN where a model was not queried.

    Parameters
    ----------
    answers
        For each model the samples int64 [rows], −1 for none, and the tokens of its answers int32 [rows, new], −1 after
        the last one.
    """
    return score_answers(data, answers, rouge_l, numbers=3)


def score_answers(
    data: Data,
    answers: Sequence[tuple[np.ndarray, np.ndarray]],
    score: Callable[[str, str], tuple[float, ...]],
    numbers: int,
) -> np.ndarray:
    """Return the scores of each answer against the scored text of its sample, float64 [models, samples, numbers]; NaN
    where a model was not queried. Tokens that are not scored, such as those of a question, are left out of the text.

    ``score(scored text of the sample, text of the answer)`` returns as many numbers as ``numbers`` says.

    Parameters
    ----------
    answers
        For each model, the sample of each row, int64 [rows], −1 for an unused row, and the tokens of its answer, int32
        [rows, new], filled with negative numbers.

    Raises
    ------
    ValueError
        For data without a tokenizer.
    """
    tokenizer, scores = tokenizer_of(data), np.full((len(answers), len(data.y), numbers), np.nan)
    references: dict[int, str] = {}
    for model, (index, tokens) in enumerate(answers):
        queried = index >= 0
        texts = tokenizer.decode_batch([row[row >= 0].tolist() for row in tokens[queried]])
        for sample, text in zip(index[queried].tolist(), texts, strict=True):
            if sample not in references:
                references[sample] = _text(tokenizer, data.x[sample, 1:])  # no model predicts the first token
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
    """Return the text of ``tokens`` int [length], without those that are negative (not scored, or padding)."""
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

    TOFU uses the first of the three numbers, MUSE the last. All three are 0 where a text has no word of Latin letters
    or digits.
    """
    stemmed, whole = (_scorer(stem).score(reference, answer)["rougeL"] for stem in (True, False))
    return stemmed.recall, stemmed.fmeasure, whole.fmeasure
