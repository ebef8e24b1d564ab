"""Numbers from published values of each text of imported language models, and those that combine several values."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from unlearning_audit.evaluation import signals
from unlearning_audit.evaluation.arrays import Data
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.published import Published
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.evaluation.shadow import LOGP, RANK
from unlearning_audit.metrics import (
    _text,
    memorisation,
    multiple_choice,
    no_value,
    perplexity,
    privleak,
    rouge,
    splits,
    table,
    truth_ratio,
    utility,
)

#: Values that are higher where more is remembered, one for each quantity; verdicts rest on these.
RISE_WITH_MEMORY = ("probability", "exact_memorisation", "truth_ratio_probability", "rouge_recall", "choice_accuracy")

#: Values that may lie outside [0, 1]: the mean negative log-likelihood of a token in nats, the mean log p of the least
#: likely tokens, and log R, where R is the probability of wrong answers over that of the right one.
LOSS, MIN_K, RATIO = "nll", "min_k_of_privleak", "log_truth_ratio"
UNBOUNDED = (LOSS, MIN_K, RATIO)

#: The terms of TOFU's model utility: on retained samples, and on each set of the test part.
RETAIN_TERMS = ("probability", "rouge_recall", "truth_ratio_utility")
TEST_TERMS = ("choice_probability", *RETAIN_TERMS[1:])

NEEDS = ("published",)
DEFAULT = "imported"

QUANTITIES = (*perplexity.QUANTITIES, *privleak.QUANTITIES, *truth_ratio.QUANTITIES, *utility.QUANTITIES)


def rows(evaluation: Evaluation) -> list[Row]:
    """Return the rows that published values of the audited language models give: "nll" and "perplexity" for each role
    of samples, and "model_utility"; with retrained models of the same samples also "nll_gap", "privleak",
    "truth_ratio_ks" and "forget_quality".

    Rows whose values were not published are left out; [] without values of the negative log-likelihood.
    """
    retrain = evaluation.group("retrain")
    retrained = None if retrain is None else retrain.published
    assert evaluation.published is not None
    return published_rows(evaluation.published, retrained, evaluation.data)


def text_readings(
    tokens: np.ndarray, data: Data, answers: Sequence[tuple[np.ndarray, np.ndarray]]
) -> dict[str, np.ndarray]:
    """Return name → the values of each sample that metrics of texts read, float64 [models, samples]: the probability of
    its tokens, memorisation, loss, and what compares answers.

    Parameters
    ----------
    tokens
        float64 [models, rows, tokens, 4]: log p of each token, its mean and standard deviation under the model, and the
        token's rank from 0. Rows are the samples and, as rows of their own, their views: texts with other answers to
        the same question.
    answers
        For each model, the rows int64 [queried] that it answered and the tokens int32 [queried, new] of its answers;
        empty without answers.
    """
    samples, mean_logp = data.part < 2, np.nanmean(tokens[..., LOGP], axis=-1)  # rows of part 2 are views
    of_answers = answer_readings(mean_logp, data) | (rouge.readings(data, answers) if answers else {})
    return {
        "probability": np.exp(mean_logp[:, samples]),
        **memorisation.both(tokens[..., RANK][:, samples]),
        LOSS: -mean_logp[:, samples],
        MIN_K: signals.lowest(tokens[..., LOGP][:, samples], privleak.Options().share),
        **{name: value[:, samples] for name, value in of_answers.items()},
    }


def answer_readings(mean_logp: np.ndarray, data: Data) -> dict[str, np.ndarray]:
    """Return name → values that compare the right answer of each row with wrong ones, float64 [models, rows]: the log
    of the truth ratio and three functions of it, whether the right answer is the likeliest, and its share of the
    probability of all choices. NaN for rows without wrong answers; {} if no row has wrong answers.

    ``mean_logp`` [models, rows]: the mean log p of a token. Rows are samples and their views: texts with other answers,
    wrong ones ("perturbed"), or right ones in other words ("paraphrase").
    """
    wrong, paraphrase = data.views("perturbed"), data.views("paraphrase")
    if not wrong.shape[1]:
        return {}
    of_wrong = np.where(wrong >= 0, mean_logp[:, wrong], np.nan)
    ratio = truth_ratio.log_quotient(of_wrong, mean_logp[:, truth_ratio.first_answers(paraphrase)])
    choices = np.concatenate([mean_logp[..., None], of_wrong], axis=-1)
    share = np.exp(mean_logp) / np.nansum(np.exp(choices), axis=-1)
    return {
        RATIO: ratio,
        **truth_ratio.by_metric(ratio),
        "choice_accuracy": multiple_choice.right_by_logp(choices),
        "choice_probability": np.where(np.isnan(ratio), np.nan, share),
    }


def published_rows(published: Published, retrained: Published | None, data: Data) -> list[Row]:
    """Return rows of NLL and perplexity of each role of samples, and of model utility, from the ``published`` values of
    the audited models.

    With ``retrained`` models of the same samples, the gap of NLL, PrivLeak, the distance of truth ratios and forget
    quality follow. Numbers whose values were not published are left out; [] without the NLL. A role of which some model
    has fewer than two samples has no rows.
    """
    columns = dict(zip(published.readings.tolist(), published.values, strict=True))  # name → [models, samples]
    if LOSS not in columns:
        return []
    member, roles = published.membership, _text.roles(published.test, published)
    of_retrained = {}
    if retrained is not None and (partners := _partners(published, retrained)) is not None:
        of_retrained = dict(zip(retrained.readings.tolist(), retrained.values[:, partners], strict=True))
    enough = {role: mask for role, mask in roles.items() if (mask.sum(axis=1) > 1).all()}
    lines = perplexity.loss_rows(columns[LOSS], of_retrained.get(LOSS), enough, **splits(member))
    if set(RETAIN_TERMS) | set(TEST_TERMS) <= set(columns):
        terms = [(columns[name], roles["retain"]) for name in RETAIN_TERMS]
        terms += [(columns[name], roles["test"] & subset) for subset in utility.test_sets(data) for name in TEST_TERMS]
        lines += utility.rows_of_terms([(value, mask & ~np.isnan(value)) for value, mask in terms], member)
    return [*lines, *_rows_against_retrained(columns, of_retrained, published, splits(member))]


def _partners(published: Published, retrained: Published) -> np.ndarray | None:
    """Return for each audited model the number of a retrained one with the same forgotten and held-out samples, int64
    [models]. If several retrained models have these samples, the audited models that have them take them in turn.

    None if an audited model has no such partner, or if the populations are of different samples.
    """
    if not np.array_equal(published.samples, retrained.samples):
        return None
    partners: list[int] = []
    turn: Counter[int] = Counter()  # the first retrained model with some samples → how many audited models have them
    for forget, heldout in zip(published.forget, published.heldout, strict=True):
        alike = np.flatnonzero((retrained.forget == forget).all(axis=1) & (retrained.heldout == heldout).all(axis=1))
        if not alike.size:
            return None
        partners.append(int(alike[turn[int(alike[0])] % len(alike)]))
        turn[int(alike[0])] += 1
    return np.array(partners)


def _rows_against_retrained(
    columns: dict[str, np.ndarray], of_retrained: dict[str, np.ndarray], published: Published, places: dict[str, Any]
) -> list[Row]:
    """Return the rows that compare audited with retrained models: PrivLeak, the distance of truth ratios and forget
    quality.

    Numbers whose values are missing are left out. PrivLeak is left out, too, if a model has no forgotten or no held-out
    samples. Where PrivLeak is not defined, its row has the reason in place of a number.

    Parameters
    ----------
    columns, of_retrained
        Name → values [models, samples] of audited and of retrained models: `MIN_K` for PrivLeak, `RATIO` for the
        distance of truth ratios and for forget quality.
    places
        int64 [models]: "split", "block" and "copied" (each model's original; None without copies), from `splits`.
    """
    forget, heldout, lines = published.forget, published.heldout, []
    if MIN_K in columns and MIN_K in of_retrained and forget.any(axis=1).all() and heldout.any(axis=1).all():
        # Samples that are neither forgotten nor held out may be NaN; their values are not used.
        audited, retrained = (np.nan_to_num(values[MIN_K]) for values in (columns, of_retrained))
        try:
            lines += table({"privleak": privleak.leak(audited, retrained, forget, heldout, **places)})
        except ValueError as error:
            lines.append(no_value("privleak", str(error)))
    if RATIO in columns and RATIO in of_retrained:
        known = forget & ~np.isnan(columns[RATIO])
        if known.any():
            lines += table(truth_ratio.distances(columns[RATIO], of_retrained[RATIO], known, **places), role="forget")
    return lines
