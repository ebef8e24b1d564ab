"""Model utility of TOFU (Maini et al. 2024): the performance of a language model on text that it should not forget."""

import numpy as np
from pydantic import Field

from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.evaluation.cohort import views_logp
from unlearning_audit.evaluation.effects import Effect, single
from unlearning_audit.metrics import Evaluation, Quantity, Row, Settings, _answers, _text, row, splits, truth_ratio
from unlearning_audit.metrics.accuracy import UTILITY
from unlearning_audit.stats import crossed, levels, without_interval

#: The metric reads answers that the models generate.
NEEDS = ("fair_draw", "generations")

QUANTITIES = (
    Quantity(
        "model_utility", better="higher",
        reading="Harmonic mean of the probability of right answers, of ROUGE-L recall and of how much likelier right "
        "answers are than wrong ones, on what is kept and on each set of the test part: 0 = worthless on one of them.",
    ),
)  # fmt: skip


class Options(Settings):
    """``most``: so many retained and so many test samples are queried for an answer."""

    most: int = Field(200, ge=1)


def rows(evaluation: Evaluation) -> list[Row]:
    """Return the row "model_utility": for each model, the harmonic mean of three terms on retained samples and on the
    test part; over all target models, then over each swapped pair (field ``pair``) if there are several.

    Each term is a mean over samples. If the test part has sets (TOFU: real authors and world facts), each set has terms
    of its own. The first term is p̄, the mean probability of a token of the answer. In the test part, p̄ is divided by
    the sum of the p̄ of all choices. The second term is ROUGE-L recall, and the third max(0, 1 − R), where R is the
    truth ratio. Without a test part, retained samples alone count. The interval covers models and samples. [] if a
    model has fewer than two samples in a term. Raises ValueError for data without perturbed answers.
    """
    all_terms = terms(evaluation)

    def of_models(models: np.ndarray, member: Membership) -> list[Row]:
        """Return the row of some ``models`` bool [target models], whose memberships are ``member``. ``all_terms`` has
        the terms of all target models."""
        return rows_of_terms([(value[models], mask[models]) for value, mask in all_terms], member)

    return _text.rows_by_pair(evaluation, of_models)


def rows_of_terms(terms: list[tuple[np.ndarray, np.ndarray]], member: Membership) -> list[Row]:
    """Return the row "model_utility" of some models, whose memberships are ``member``, from the ``terms`` of their
    harmonic mean: for each, values float64 [models, samples] and a mask of those that count. [] if a model has fewer
    than two samples in a term. There is no interval if a term is 0 for some model."""
    of_models, n = mean_of_terms(terms)
    if of_models is None:
        return []
    utility = levels.mean(of_models, **splits(member), n=n, bounds=(0, 1))
    if (of_models.value == 0).any():  # where the mean has no slope, which an interval needs
        utility = without_interval(utility.value, n=n, note="no interval: a term is 0 for some model")
    return [row(metric="model_utility", estimate=utility)]


def effects(evaluation: Evaluation) -> dict[str, Effect]:
    """Return "model_utility" → the model utility of each target model, which verdicts read as utility; {} where a term
    is 0 for some model, or has fewer than two samples. Raises ValueError for data without perturbed answers."""
    of_models, _samples = mean_of_terms(terms(evaluation))
    if of_models is None or (of_models.value == 0).any():
        return {}
    units = _text.units(evaluation.membership[evaluation.target])
    # vars: the value of each model, its influence and imagined
    return {"model_utility": single(**vars(of_models), **units, rule=UTILITY)}


def terms(evaluation: Evaluation) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the terms of the harmonic mean: for each term, values float64 [target models, samples], and the samples
    that count, bool of the same shape.

    The terms are p̄, ROUGE-L recall and max(0, 1 − R) of retained samples, then the same three terms of each set of the
    test part, where p̄ is divided by its sum over all choices. p̄ is the mean probability of a token of the answer, and
    R the truth ratio. Raises ValueError for data without perturbed answers.
    """
    wrong, paraphrase = (evaluation.data.views(kind) for kind in ("perturbed", "paraphrase"))
    if not wrong.shape[1]:
        raise ValueError("utility needs perturbed answers; choose question_answer data that have them")
    logits = evaluation.unlearned[evaluation.target]
    roles = _text.roles(evaluation.data.part == 1, evaluation.membership[evaluation.target])
    # The probability p̄ of the answer of each sample, and the sum of p̄ of its wrong answers.
    p = np.exp(views_logp(logits, np.arange(len(wrong))[:, None])[..., 0])
    wrong_p = np.nansum(np.exp(views_logp(logits, wrong)), -1)
    # max(0, 1 − R)
    better = truth_ratio.by_metric(truth_ratio.log_ratio(logits, wrong, paraphrase))["truth_ratio_utility"]
    recall = _answers.rouge(evaluation, evaluation.generated_files)[..., 0]  # of recall and two F1
    share = np.where((wrong >= 0).any(1), p / (p + wrong_p), np.nan)  # of p̄ among all choices
    all_terms = [(value, roles["retain"]) for value in (p, recall, better)]
    for subset in test_sets(evaluation.data):
        all_terms += [(value, roles["test"] & subset) for value in (share, recall, better)]
    return [(value, mask & ~np.isnan(value)) for value, mask in all_terms]


def mean_of_terms(terms: list[tuple[np.ndarray, np.ndarray]]) -> tuple[crossed.PerModel | None, int]:
    """Return the harmonic mean of ``terms`` for each model, where each term is a mean over its samples, and the number
    of all samples; None and 0 if a model has a term with fewer than two samples. A term is values, float64 [models,
    samples], and a mask of those that count."""
    if not all((mask.sum(1) > 1).all() for _, mask in terms):
        return None, 0
    means = [levels.per_model(value=np.where(mask, value, 0.0), weight=mask * 1.0) for value, mask in terms]
    return harmonic(means), int(np.any([mask for _, mask in terms], axis=(0, 1)).sum())


def test_sets(data: Data) -> list[np.ndarray]:
    """Return which samples are in each set of the test part (TOFU: real authors and world facts): a mask, bool
    [samples], for each set. The whole test part is one set if data have no sets; [] without a test part."""
    test = data.part == 1
    if data.group is None:
        return [test] if test.any() else []
    return [test & (data.group == number) for number in np.unique(data.group[test]).tolist()]


def harmonic(parts: list[crossed.PerModel]) -> crossed.PerModel:
    """Return the harmonic mean of statistics in [0, 1] of the same models, 0 where one of them is 0, with influences to
    first order."""
    value = np.stack([part.value for part in parts])
    positive = np.maximum(value, 1e-12)  # can be divided by
    mean = len(parts) / (1 / positive).sum(0)
    # The derivative of the harmonic mean by each statistic, [statistics, models].
    slopes = (mean / positive) ** 2 / len(parts)
    changes = [part.times(slope) for part, slope in zip(parts, slopes, strict=True)]
    influence = np.sum([change.influence for change in changes], axis=0)
    imagined = np.sum([change.imagined for change in changes], axis=0)
    return crossed.PerModel(np.where((value <= 0).any(0), 0.0, mean), influence, imagined)
