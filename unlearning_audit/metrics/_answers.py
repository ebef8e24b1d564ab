"""What language models say by themselves beside what is written, as texts."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from unlearning_audit.evaluation.arrays import Data
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.generations import Generations, Sampled
from unlearning_audit.store.files import NoAnswerError


def with_retrained(
    case: Evaluation, read: Callable[[list[str]], np.ndarray]
) -> tuple[np.ndarray, np.ndarray | None]:  # fmt: skip
    """What ``read`` makes of the files with answers of the audited models, and of those of retrained ones; None where
    these gave no answers. Raises NoAnswerError where a method left no models."""
    audited = read(case.generated_files)
    try:
        files = case.compared_generated_files
        return audited, read(files) if files else None
    except NoAnswerError:
        return audited, None


def overlap(case: Evaluation, files: list[str]) -> np.ndarray:
    """ROUGE-L of what the defender's models say by themselves, against the scored tokens of each sample: recall, F1 and
    F1 of unstemmed words, float64 [models, samples, 3], NaN where a model was not asked; computed once for a case.

    Raises NoAnswerError where a method left no models, and ValueError for data without a tokenizer.
    """

    return case.once("overlap", files, lambda: overlap_of(case.data, of_files(files)))


def of_files(files: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The answers of all models of these files, as `overlap_of` takes them."""
    parts = [Generations.read(path) for path in files]
    return [pair for part in parts for pair in zip(part.index, part.tokens, strict=True)]


def recalls(case: Evaluation, files: list[str]) -> np.ndarray:
    """ROUGE-L recall of each sampled answer of the defender's models, float64 [models, samples, answers], NaN where a
    model was not asked; computed once for a case. Raises as `overlap`."""

    def compute() -> np.ndarray:
        parts = [Sampled.read(path) for path in files]
        pairs = [pair for part in parts for pair in zip(part.index, part.tokens, strict=True)]
        count = min((part.tokens.shape[2] for part in parts if len(part.index)), default=0)
        overlaps = [overlap_of(case.data, [(index, tokens[:, k]) for index, tokens in pairs]) for k in range(count)]
        return np.stack([scores[..., 0] for scores in overlaps], axis=-1)

    return case.once("recalls", files, compute)


def overlap_of(data: Data, answers: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """As `overlap`; ``answers`` of each model: the samples int64 [rows], −1 for none, and tokens int32 [rows, new]."""
    return scored(data, answers, rouge_l, 3)


def scored(
    data: Data, answers: Sequence[tuple[np.ndarray, np.ndarray]], score: Callable[[str, str], tuple[float, ...]],
    numbers: int,
) -> np.ndarray:  # fmt: skip
    """``score(text of the sample, text of the answer)``, so many ``numbers``, of each answer of `overlap_of`: float64
    [models, samples, numbers], NaN where a model was not asked. Raises ValueError for data without a tokenizer."""
    tokenizer, scores = _tokenizer(data), np.full((len(answers), len(data.y), numbers), np.nan)
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
    """The scored text of every row. Raises as `scored`."""
    tokenizer = _tokenizer(data)
    return (_text(tokenizer, row[1:]) for row in data.x)


def _tokenizer(data: Data) -> Any:
    from tokenizers import Tokenizer

    if data.tokenizer is None:
        raise ValueError("the data hold no tokenizer, so that no generated text can be read; choose question_answer")
    return Tokenizer.from_str(data.tokenizer.tobytes().decode())


def _text(tokenizer: Any, tokens: np.ndarray) -> str:
    text: str = tokenizer.decode(tokens[tokens >= 0].tolist())
    return text


@functools.cache
def _scorer(stemmed: bool) -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # slow to import: it brings all of nltk

    return RougeScorer(["rougeL"], use_stemmer=stemmed)


@functools.lru_cache(1 << 16)
def rouge_l(reference: str, answer: str) -> tuple[float, float, float]:
    """Recall and F1 of the longest common subsequence of stemmed words (Lin 2004), the first as TOFU takes it, and F1
    of the words as they are, as MUSE takes it; 0 where a text has no word of Latin letters or digits."""
    stemmed, whole = (_scorer(stem).score(reference, answer)["rougeL"] for stem in (True, False))
    return stemmed.recall, stemmed.fmeasure, whole.fmeasure
