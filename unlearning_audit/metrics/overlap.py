"""Overlap of samples with retained or held-out text: a control of the data, not of a method.

It is the same for all methods, so verdicts and the meta-evaluation do not use it.
"""

from dataclasses import replace

import numpy as np
from pydantic import Field

from unlearning_audit.metrics import Evaluation, Quantity, Row, Settings, _text

NEEDS = ("fair_draw",)

QUANTITIES = (
    Quantity(
        "ngram_overlap", "n-gram overlap",
        reading="Share of a sample's runs of n tokens that also stand in the retained text. Alike for forgotten and "
        "held-out samples, or attacks may know them by this alone; near 0, or little of a sample can be forgotten.",
    ),
    Quantity(
        "exact_overlap", "spans that are held out as well",
        reading="Share of forgotten samples of which a held-out sample has the same scored tokens, all of them: such "
        "a sample cannot be distinguished from what was never seen.",
    ),
    Quantity(
        "token_overlap", "tokens that are held out as well",
        reading="Share of the scored tokens of forgotten samples that held-out ones have too: far below that of two "
        "random sets, and the two sides may be distinguished by their words alone.",
    ),
)  # fmt: skip


class Options(Settings):
    """``n``: how many tokens make a run (RULI: 7)."""

    n: int = Field(7, ge=1)


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return the overlap of forgotten and held-out samples with retained text, and of forgotten with held-out samples.

    "ngram_overlap" (field ``role``): the share of a sample's runs of n tokens that occur in what its model keeps.
    "exact_overlap": the share of forgotten samples whose scored tokens are all those of a held-out sample, in order;
    "token_overlap": the share of their scored tokens that held-out samples have too (RULI, A.3.1). All are means over
    models and samples, over all target models, then over each swapped pair (field ``pair``) if there are several.
    Samples without such runs or tokens are left out; if some model has no other sample, so is the row. Raises
    ValueError for data that are not tokens.
    """
    if evaluation.data.x.dtype.kind != "i":
        raise ValueError(f"overlap: the data are {evaluation.data.x.dtype}, not tokens; leave the metric out")
    member = evaluation.membership[evaluation.target]
    runs, spans = run_numbers(evaluation.data.x, options.n), scored_tokens(evaluation.data.x)
    share = np.stack([share_found(runs, retain) for retain in member.retain])
    with_retained = {("ngram_overlap", ""): np.where((runs >= 0).any(1), share, np.nan)}
    # Samples with a scored token, of models that have held-out samples to compare with.
    defined: np.ndarray = np.any(spans >= 0, axis=1) & member.heldout.any(axis=1, keepdims=True)
    with_heldout = {
        (name, ""): np.where(defined, np.stack([share_found(numbers, heldout) for heldout in member.heldout]), np.nan)
        for name, numbers in (("exact_overlap", text_numbers(spans)), ("token_overlap", spans))
    }
    table = _text.rows_of_shares(evaluation, with_retained, only=("forget", "heldout"))
    # These are of the forget set by definition, so the field ``role`` stays empty.
    return table + [replace(line, role="") for line in _text.rows_of_shares(evaluation, with_heldout, only=("forget",))]


def scored_tokens(x: np.ndarray) -> np.ndarray:
    """Return the scored tokens of each sample in their order, then −1: int [samples, most scored tokens of a sample],
    with one column at least.

    Parameters
    ----------
    x
        int [samples, length]: ~id is a token that is read and not scored, −1 is padding.
    """
    order = np.argsort(x < 0, axis=1, kind="stable")  # scored tokens before others, each in their order
    tokens = np.take_along_axis(np.where(x < 0, -1, x), order, axis=1)
    return tokens[:, : max(int((tokens >= 0).sum(1).max(initial=0)), 1)]


def text_numbers(spans: np.ndarray) -> np.ndarray:
    """Return one number for the whole text of each sample, int64 [samples, 1]: equal texts have equal numbers, texts
    without scored tokens −1. ``spans`` int [samples, tokens]: the scored tokens, filled with −1."""
    _, number_of_text = np.unique(spans, axis=0, return_inverse=True)
    return np.where((spans >= 0).any(1), number_of_text.reshape(-1), -1)[:, None]


def run_numbers(x: np.ndarray, n: int) -> np.ndarray:
    """Return for each position of each sample the number of the run of ``n`` tokens that begins there, int64 [samples,
    length − n + 1].

    Equal runs have equal numbers; runs with padding have −1. If samples are shorter than ``n``, the result is a single
    column of −1.

    Parameters
    ----------
    x
        int [samples, length]: ~id is a token that is read and not scored, −1 is padding.
    """
    if x.shape[1] < n:
        return np.full((len(x), 1), -1)
    windows = np.lib.stride_tricks.sliding_window_view(x, n, axis=1)
    # Which runs have no padding, and the tokens of these, [runs, n].
    real = ~np.lib.stride_tricks.sliding_window_view(_text.padding(x), n, axis=1).any(-1)
    _, number_of_run = np.unique(np.where(windows < 0, ~windows, windows)[real], axis=0, return_inverse=True)
    numbers = np.full(real.shape, -1)
    numbers[real] = number_of_run.reshape(-1)
    return numbers


def share_found(numbers: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the share of each sample's ``numbers`` that some sample of ``others`` has too: float64 [samples]; 0 for
    samples without a number.

    Parameters
    ----------
    numbers
        int [samples, k]: what identifies each of a sample's runs of tokens, its tokens or its whole text; −1 for none.
    others
        bool [samples].
    """
    # Entry k: whether some sample of ``others`` has the number k. −1, no number, is the index of the last entry.
    present = np.zeros(numbers.max(initial=0) + 2, bool)
    present[numbers[others]] = True
    present[-1] = False
    return np.asarray(present[numbers].sum(1) / np.maximum((numbers >= 0).sum(1), 1))
