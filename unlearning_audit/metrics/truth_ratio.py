"""Truth ratio and forget quality of questions and answers (TOFU, Maini et al. 2024).

open-unlearning averages min(R, 1/R) ("closer_to_1_better") and max(0, 1 − R) ("true_better"); since its commit
d3d7cf9 of December 2025 also the share of the right answer, correct/(correct + wrong) = 1/(1 + R)
("prob_mean"; Dorna et al. 2025).
"""

import numpy as np
from scipy import special

from unlearning_audit.evaluation.cohort import views_logp
from unlearning_audit.metrics import DecisionRule, Effect, Evaluation, Membership, Row, _text, crossed, splits, table
from unlearning_audit.plugins.declarations import Comparison, Quantity
from unlearning_audit.stats import Estimate, empty, mean_interval

NEEDS = ("fair_draw",)

QUANTITIES = (
    Quantity(
        "truth_ratio",
        reading="Mean of min(R, 1/R), where R is the probability of wrong answers over that of a right one: 1 = the "
        "model tells them no better than chance, 0 = it is sure of one of the two.",
    ),
    Quantity(
        "truth_ratio_utility", better="higher",
        reading="Mean of max(0, 1 − R): how much likelier the right answer is than wrong ones.",
    ),
    Quantity(
        "truth_ratio_probability",
        reading="Mean of 1/(1 + R): the probability of the right answer over that of the right and wrong ones.",
    ),
    Quantity(
        "truth_ratio_ks", "truth ratio, KS distance", better="lower",
        reading="Largest distance between the distributions of R on the forget set before the audited and before the "
        "retrained model: 0 = the same. Retraining itself, against its control, shows what chance does.",
        comparisons=(Comparison("truth ratio KS", 36, falling=True, retrained=True),),
    ),
    Quantity(
        "forget_quality", better="higher", logarithmic=True,
        reading="p-value of the Kolmogorov–Smirnov test for the same distributions, the geometric mean over models. It "
        "falls with the size of the forget set (n), so compare it between methods on one forget set only.",
    ),
)  # fmt: skip


def rows(evaluation: Evaluation) -> list[Row]:
    """Return the means of three functions of the truth ratio R for each role of samples. If there are retrained models,
    also return how far the distribution of R on the forget set is from its distribution in retrained models. All rows
    are given for all target models together, then for each swapped pair (field ``pair``) if there are several.

    R is the probability of wrong answers over that of the right one: exp(mean over perturbed answers of the mean log p
    of a token) / exp(mean log p of a token of the paraphrase, or of the answer itself where there is no paraphrase).
    "truth_ratio" is the mean of min(R, 1/R), "truth_ratio_utility" of max(0, 1 − R) and "truth_ratio_probability" of
    1/(1 + R), each with an interval over models and samples. "truth_ratio_ks" is the Kolmogorov–Smirnov distance from
    retrained models, with an interval over samples, models and blocks, and "forget_quality" its p-value, with one over
    blocks, or over splits of a single block. Raises ValueError for data without perturbed answers.
    """
    perturbed, right = (evaluation.data.views(kind) for kind in ("perturbed", "paraphrase"))
    if not perturbed.shape[1]:
        raise ValueError("truth_ratio needs perturbed answers; choose question_answer data that have them")
    audited = log_ratio(evaluation.unlearned[evaluation.target], perturbed, right)
    files = _text.compared_files(evaluation)
    # `_text.rows_of_shares` takes (metric, field ``rule`` of its rows) → values; these rows have no rule.
    lines = _text.rows_of_shares(evaluation, {(name, ""): value for name, value in by_metric(audited).items()})
    if files is None:
        return lines
    retrained = log_ratio(evaluation.outputs(files).logits[evaluation.target], perturbed, right)

    def of_models(models: np.ndarray, member: Membership) -> list[Row]:
        """Return the rows "truth_ratio_ks" and "forget_quality" of some ``models`` bool [target models], whose
        memberships are ``member``. ``audited`` and ``retrained`` have log R of all target models and of their retrained
        models."""
        known = member.forget & ~np.isnan(audited[models])
        return table(distances(audited[models], retrained[models], known, **splits(member)), role="forget")

    return lines + _text.rows_by_pair(evaluation, of_models)


#: A verdict rests on the mean of 1/(1 + R), which falls as the right answer is forgotten. min(R, 1/R) does not: it is
#: near 0 for a model that knows the answer and for one that was destroyed. Forget quality is a p-value, and the
#: distance behind it is above 0 for retrained models too.
DECIDES = {"truth_ratio_probability": DecisionRule(1, "accuracy", lowest=0.0, highest=1.0)}


def effects(evaluation: Evaluation) -> dict[str, Effect]:
    """Return "truth_ratio_probability" → 1/(1 + R), the probability of the right answer where R is the truth ratio, as
    a mean over the forgotten samples of each target model. {} if no forgotten sample of some model has perturbed
    answers."""
    wrong, paraphrase = (evaluation.data.views(kind) for kind in ("perturbed", "paraphrase"))
    # 1/(1 + R)
    value = special.expit(-log_ratio(evaluation.unlearned[evaluation.target], wrong, paraphrase))
    return _text.effect_on_forgotten(evaluation, DECIDES, value)


def log_ratio(logits: np.ndarray, perturbed: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the logarithm of the truth ratio R of every sample, float64 [models, samples]; NaN for samples without
    perturbed answers.

    Parameters
    ----------
    logits
        [models, rows, 2]: (φ, 0) of each text; rows are samples, and their perturbed and paraphrased answers.
    perturbed, right
        int64 [samples, k]: the rows of the wrong and of the right answers of each sample, filled with −1. If ``right``
        names no row for a sample, the sample itself counts as the right answer.
    """
    first = first_answers(right)
    return log_quotient(views_logp(logits, perturbed), views_logp(logits, first[:, None])[..., 0])


def first_answers(right: np.ndarray) -> np.ndarray:
    """Return the row of the right answer of each sample, int64 [samples]: the first of its paraphrases, or the sample
    itself if it has none.

    Parameters
    ----------
    right
        int64 [samples, k]: the rows of the paraphrases, −1 where there is none.
    """
    samples = np.arange(len(right))
    return np.where(right[:, 0] < 0, samples, right[:, 0]) if right.shape[1] else samples


def log_quotient(wrong: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the logarithm of the truth ratio R, float64 [...]. R is the geometric mean of the probabilities of the
    wrong answers, as in open-unlearning, over the probability of the right one. NaN where there is no wrong answer.

    Parameters
    ----------
    wrong
        [..., answers]: log-probabilities of the wrong answers; NaN: there is no such answer.
    right
        [...]: log-probability of the right answer.
    """
    present = ~np.isnan(wrong)
    with np.errstate(invalid="ignore"):  # 0/0 where there is no wrong answer
        return np.asarray(np.where(present, wrong, 0.0).sum(-1) / present.sum(-1) - right)


def by_metric(log_ratio: np.ndarray) -> dict[str, np.ndarray]:
    """Return three functions of the truth ratio R from log R, each under the name of the metric that is its mean:
    float64 of the shape of ``log_ratio``."""
    return {
        "truth_ratio": np.exp(-np.abs(log_ratio)),  # min(R, 1/R)
        "truth_ratio_utility": np.maximum(0.0, -np.expm1(np.minimum(log_ratio, 0.0))),  # max(0, 1 − R)
        "truth_ratio_probability": special.expit(-log_ratio),  # 1/(1 + R)
    }


def distances(
    audited: np.ndarray, retrained: np.ndarray, known: np.ndarray, **places: np.ndarray
) -> dict[str, Estimate]:
    """Return "truth_ratio_ks" → the Kolmogorov–Smirnov distance of R of the audited from R of the retrained models, as
    a mean over models, and "forget_quality" → its p-value, as a geometric mean over models.

    Both numbers are missing if a model has no ``known`` sample.

    The distance of a model is a difference of two shares of its samples, those below the point where the two
    distributions are furthest apart. So its interval is that of a mean over samples, models and blocks. Models of a
    block depend on each other: the interval of the p-value is Student's over the means of blocks, or of splits where
    there is one block. ``n`` counts samples.

    Parameters
    ----------
    audited, retrained
        float64 [models, samples]: log R, where R is the probability of wrong answers over that of the right one.
    known
        bool [models, samples]: the forgotten samples that have perturbed answers.
    places
        int [models]: "split" and "block" are used; "copied" may be there and is not.
    """
    from scipy.stats import ks_2samp

    samples = int(known.any(0).sum())
    if not known.any(axis=1).all():
        nothing = empty(n=samples, note="no perturbed answers in the forget set of some model")
        return {"truth_ratio_ks": nothing, "forget_quality": nothing}
    tests = [ks_2samp(a[mask], r[mask]) for a, r, mask in zip(audited, retrained, known, strict=True)]
    at, sign = (np.array([getattr(test, f"statistic_{name}") for test in tests]) for name in ("location", "sign"))
    of_audited, of_retrained = (_text.mean(side <= at[:, None], known) for side in (audited, retrained))
    (unit, _), split = np.unique(np.stack([places["block"], places["split"]]), axis=1, return_inverse=True)
    # Splits count equally.
    how = {"split": split.reshape(-1), "share": np.full(len(unit), 1 / len(unit)), "unit": unit}
    distance = crossed.mean([crossed.difference(of_audited, of_retrained).times(sign)], **how)
    group = places["block"] if len(np.unique(places["block"])) > 1 else places["split"]
    # A p-value may be 0, which has no logarithm.
    logarithms = np.log(np.maximum([test.pvalue for test in tests], 1e-300))
    log_p = mean_interval(values=np.array([logarithms[group == number].mean() for number in np.unique(group)]))
    quality, least, most = np.exp(np.minimum([log_p.value, log_p.low, log_p.high], 0.0)).tolist()
    return {
        "truth_ratio_ks": crossed.estimates(distance, n=samples)[0],  # of the one number
        "forget_quality": Estimate(quality, least, most, n=samples, note=log_p.note),
    }
