"""The score of the NeurIPS 2023 unlearning competition, beside that of retrained models."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unlearning_audit.evaluation.effects import Effect, single
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import Group, Row, _klom, _null, generator, or_nothing, or_reason, row, stats, table
from unlearning_audit.metrics._epsilon import CAP, epsilon_bounds, points
from unlearning_audit.metrics._null import Options as Options
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity
from unlearning_audit.stats import Estimate, jackknife

NO_INTERVAL = "no interval: F₀ is 0 without some samples or some models"
HALVES_NEED = 8  # models; fewer leave no two models on a side once a group is left out


NEEDS = ("one_forget_set",)
DEFAULT = ("one_forget_set", "imported")

QUANTITIES = (
    Quantity(
        "forgetting_quality_over_null", "F / F₀", "higher", primary=True, system="NeurIPS 2023", ideal=1.0,
        reading="Forgetting quality over that of retrained against retrained models: 1 = like retraining.",
        columns=(Column(4, "F / F₀", besides=True),),
        comparisons=(Comparison("F / F₀", 5, ideal=1.0, retrained=True),),
    ),
    Quantity(
        "forgetting_quality", "forgetting quality F", "higher",
        reading="Mean per-sample score of the competition; perfect unlearning is not 1 but F₀.",
        columns=(Column(5, "F", besides=True),),
    ),
    Quantity("forgetting_quality_null", "F₀", reading="Forgetting quality of retrained against retrained models."),
    Quantity(
        "score", "final score", "higher",
        reading="Forgetting quality times the ratios of retain and test accuracy.",
        columns=(Column(6, "final score", besides=True),),
        comparisons=(Comparison("final score", 6, retrained=True),),
    ),
    Quantity(
        "klom", "KLOM", "lower",
        reading="Divergence of each sample's margins over unlearned models from those over retrained ones; "
        "klom_null is that of retrained models. Its size depends on the number of models.",
    ),
    Quantity("klom_p95", "KLOM, 95th percentile", "lower", reading="KLOM of the sample that one in twenty exceeds."),
    Quantity("klom_null", "KLOM of retraining", reading="KLOM of retrained against retrained models."),
    Quantity(
        "klom_over_null", "KLOM over retraining's",
        reading="klom_coarse less klom_coarse_null, by which the verdict is made: about 0 for any number of models.",
    ),
    Quantity("klom_coarse", "KLOM in five bins", reading="KLOM with five bins, none of them nearly empty."),
    Quantity("klom_coarse_null", "KLOM of retraining in five bins", reading="klom_coarse of retrained models."),
    *(Quantity(name) for name in ("retain_accuracy_ratio", "test_accuracy_ratio", "epsilon_mean",
                                  "epsilon_at_cap_share", "epsilon_lower_bound_mean", "epsilon_lower_bound_max")),
)  # fmt: skip


@dataclass(frozen=True)
class Models:
    """The inputs of the score from one population of models.

    Parameters
    ----------
    phi
        float [models, forget samples].
    retain_accuracy, test_accuracy
        float [models, samples] or [models]: the accuracy of each model, or numbers of each sample of which it is the
        mean; None without samples of that role. With samples, intervals hold for other samples too.
    """

    phi: np.ndarray
    retain_accuracy: np.ndarray | None = None
    test_accuracy: np.ndarray | None = None


def rows(evaluation: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return rows of ε, F, F₀, F/F₀, KLOM, accuracy ratios, the final score and lower bounds on ε of the target models.

    ε says how well the best threshold on φ of a forgotten sample tells unlearned from retrained models. F is the mean
    of points, which fall from 1 to 0 as ε rises, and F₀ that of retrained against other retrained models.
    Retraining itself is compared with the independent retrained population, its control. Where there are no retrained
    models, or the models cannot be compared with them, ValueError is raised for models that were trained here, and
    imported models get one row with the reason.
    """

    def score() -> list[Row]:
        """Return the rows of ``evaluation`` under ``options``. Raises ValueError for populations that cannot be
        compared."""
        unlearned, retrained, independent = evaluation.yardsticks()
        compared = {"unlearned": population(unlearned), "retrained": population(retrained)}
        control = None if independent is None else population(independent)
        member, settings = evaluation.membership, _with_whole_originals(evaluation, options)
        one_of_each = slice(None) if member.copied is None else member.originals()[0]
        return evaluate(**compared, independent=control, options=settings, rng=rng, one_of_each=one_of_each)

    return or_reason(evaluation, score, "score")


#: Perfect unlearning has the score F₀. More models do not narrow its interval, because F₀ and its spread come from the
#: luckiest threshold, however many models there are.
DECIDES = {
    "forgetting_quality_over_null": replace(
        _klom.RULE, direction=-1, margin="forgetting_quality", ideal=1.0, scale="ratio", narrows=False
    ),
    "klom": _klom.RULE,
}


def effects(evaluation: Evaluation, options: Options) -> dict[str, Effect]:
    """Return "forgetting_quality_over_null" (F/F₀) and "klom" → a value for each group of models, which a jackknife
    leaves out together, and the influence of every forgotten sample on it.

    A number is left out if there are too few models or samples for it. Where models cannot be compared with retrained
    ones, {} is returned for imported models, and ValueError is raised for models that were trained here.
    """
    forget = np.flatnonzero(evaluation.membership.forget.any(axis=0))
    rng = generator(evaluation.seed, "competition")

    def both() -> dict[str, Effect]:
        """Return the effects on F/F₀ and on KLOM, from φ of the ``forget`` samples. Raises ValueError for populations
        that cannot be compared."""
        unlearned, retrained, independent = evaluation.yardsticks()
        phi = unlearned.phi(forget), retrained.phi(forget), None if independent is None else independent.phi(forget)
        settings = _with_whole_originals(evaluation, options)
        return over_null(phi, forget, settings, rng) | _klom.effects(phi, forget, settings)

    return or_nothing(evaluation, both)


def _with_whole_originals(evaluation: Evaluation, options: Options) -> Options:
    """Return the options with a number of groups that puts all models from one original into one group.

    Models from one original resemble each other. In different groups they would count as more independent than they
    are. The options are unchanged if all models come from one original, or each from its own.
    """
    if evaluation.membership.copied is None:
        return options
    originals = len(np.unique(evaluation.membership.copied))
    most = min(options.groups, originals)
    # Groups are consecutive models, so a divisor of the number of originals splits none. If there is no divisor above
    # half of what was asked for, each original is a group.
    groups = next((count for count in range(most, most // 2, -1) if originals % count == 0), originals)
    return options.model_copy(update={"groups": groups})


def over_null(phi: _null.Kinds, index: np.ndarray, options: Options, rng: np.random.Generator) -> dict[str, Effect]:
    """Return "forgetting_quality_over_null" → F/F₀ as an effect: a value for each group of models, which a jackknife
    leaves out together, and the influence of every sample.

    F is the mean over samples of the competition's points ``h`` of unlearned models, F₀ the mean of the points ``null``
    of retrained models. {} if models are too few for halves or to be left out in groups, or if F₀ rests on a single
    group or sample.

    Parameters
    ----------
    phi
        φ of unlearned and of retrained models, and of further retrained models or None, float64 [models, samples] each.
    index
        int64 [samples]: the numbers of the samples.
    """
    u, r, independent = phi
    if independent is None and min(len(u), len(r)) < HALVES_NEED:
        return {}
    of_all = points(_null.without_groups(_null.epsilons_of(options), u, r, options), models=min(len(u), len(r)))
    h, null, _models, _note = _null.with_null(phi, of_all, options, rng)  # ``h`` of as many models as ``null``
    if len(h) == 1 or h.shape[1] < 2 or not stays_positive(null):
        return {}
    value, influence = jackknife.group_values(per_sample=np.stack([h, null], axis=1), combine=lambda f, f0: f / f0)
    metric, unit = "forgetting_quality_over_null", np.arange(len(value))
    return {metric: single(value=value, influence=influence, unit=unit, index=index, rule=DECIDES[metric])}


def population(models: Group) -> Models:
    """Return the inputs of the score from some models. An accuracy is None where a model has no sample of the role."""
    data, retain, test = models.cohort.data, models.membership.retain, models.cohort.data.part == 1
    predicted = models.outputs.predicted(models.models)
    retain_accuracy = None
    if retain.any(axis=1).all():
        columns = retain.any(axis=0)
        # Models may retain different samples. With these weights, a mean over all columns is one over retained samples.
        weight = retain[:, columns] * (columns.sum() / retain.sum(axis=1, keepdims=True))
        retain_accuracy = (predicted == models.labels)[:, columns] * weight.astype(np.float32)
    return Models(
        phi=models.phi(np.flatnonzero(models.membership.forget.any(axis=0))),
        retain_accuracy=retain_accuracy,
        test_accuracy=(predicted[:, test] == data.y_clean[test]) if test.any() else None,
    )


def evaluate(
    *,
    unlearned: Models,
    retrained: Models,
    independent: Models | None = None,
    options: Options,
    rng: np.random.Generator,
    one_of_each: np.ndarray | slice = slice(None),
) -> list[Row]:
    """Return rows of ε, F, the null F₀, F/F₀, KLOM, accuracy ratios, the final score and lower bounds on ε.

    ε of a forgotten sample says how well the best threshold on its φ tells unlearned from retrained models. Its points
    fall from 1 to 0 as ε rises, and F is the mean of the points. The populations may differ in size. F uses all models
    of both, with bins for the number of models of the smaller one. F₀ and F/F₀ use as many models of each population as
    the smallest has, because F depends on the number of models.

    Parameters
    ----------
    independent
        A second population of retrained models that shares nothing with ``retrained``: F₀ compares the two. Without it,
        F₀ compares random halves of ``retrained``.
    one_of_each
        The unlearned models on which the lower bounds rest: one copy of each original, because bounds count models that
        are independent of each other; all by default.

    Raises
    ------
    ValueError
        For fewer than two models of a population, no forgotten sample, or φ that is not finite.
    """
    u, r = (np.asarray(models.phi, np.float64) for models in (unlearned, retrained))
    fewest = min(len(u), len(r))
    place: dict[str, Any] = {"rule": options.rule, "models": fewest}
    counts = f"{len(u)} unlearned and {len(r)} retrained models"

    # ``eps`` and the points ``h`` [1 + groups, samples]: from all models in row 0, then without each group of them.
    eps = _null.without_groups(_null.epsilons_of(options), u, r, options)
    h = points(eps, models=fewest)
    estimates = {
        "epsilon_mean": _klom.jackknife_mean(eps, counts, high=CAP),
        "epsilon_at_cap_share": _share(eps >= CAP),
        "forgetting_quality": _klom.jackknife_mean(h, counts, high=1.0),
    }
    phi = u, r, None if independent is None else np.asarray(independent.phi, np.float64)
    lines = table(estimates, **place) + _null_rows(phi, h, options, rng) + _klom.rows(phi, options)
    return lines + _final_rows(unlearned, retrained, h, place, options) + _bound_rows(u[one_of_each], r, options, rng)


def _share(hit: np.ndarray) -> Estimate:
    """Return the share of samples that are a ``hit`` with its interval.

    ``hit`` bool [1 + groups, samples]: by all models in row 0, then without each group of models.

    The interval adds two half-widths in squares (Banerjee 1960): Clopper and Pearson's over samples, and Student's t
    over groups of models, which move all samples together.
    """
    exact = stats.clopper_pearson(successes=int(hit[0].sum()), n=hit.shape[1])
    groups = len(hit) - 1
    if groups < 2:
        return replace(exact, note="too few models for an interval over models")
    error = float(np.sqrt(jackknife.jackknife_variance(hit[1:].mean(axis=1))))
    quantile = float(stats.t_quantile(p=(1 + stats.LEVEL) / 2, dof=groups - 1))
    return stats.widened_rate(exact=exact, half=quantile * error)


def _null_rows(phi: _null.Kinds, h: np.ndarray, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return the rows of F₀ and F/F₀ with intervals. F/F₀ takes F from as many models as F₀.

    Without further retrained models, random halves of the retrained ones are compared. With too few unlearned or
    retrained models for halves, both rows say so in place of a number.

    Parameters
    ----------
    phi
        φ of unlearned and of retrained models, and of further retrained models or None.
    h
        [1 + groups, samples]: the competition's points of the unlearned models, from all models in row 0, then without
        each group of them.
    """
    names = ("forgetting_quality_null", "forgetting_quality_over_null")
    unlearned, retrained, independent = phi
    if independent is None and min(len(unlearned), len(retrained)) < HALVES_NEED:
        why = f"halves need {HALVES_NEED} models of each kind: train more, or a second retrained population"
        return table(dict.fromkeys(names, stats.empty(n=h.shape[1], note=why)))
    equally_many, null, models, how = _null.with_null(phi, h, options, rng)
    estimates = _klom.jackknife_mean(null, how, high=1.0), _ratio(equally_many, null, how)
    return table(dict(zip(names, estimates, strict=True)), rule=options.rule, models=models)


def stays_positive(null: np.ndarray) -> bool:
    """Return whether F₀ stays above 0 without any one group of models and any one sample.

    ``null`` [1 + groups, samples]: the points of retrained models, from all of them in row 0, then without each group.
    """
    total = null.sum(axis=1, keepdims=True)
    # A single sample cannot be left out: with ``where`` false, ``all`` is True.
    return bool((total > 0).all() and (total - null > 0).all(where=null.shape[1] > 1))


def _ratio(h: np.ndarray, null: np.ndarray, note: str) -> Estimate:
    """Return F/F₀ with its jackknife interval: empty where F₀ is 0, and without interval where F₀ rests on a single
    group of models or sample (`stays_positive`).

    Parameters
    ----------
    h, null
        [1 + groups, samples]: the points of unlearned and of retrained models, from all models in row 0, then without
        each group of them.
    """
    if not null[0].any():
        return stats.empty(n=h.shape[1], note=f"F₀ is 0 ({note})")
    if not stays_positive(null):
        return stats.without_interval(float(h[0].mean() / null[0].mean()), n=h.shape[1], note=f"{NO_INTERVAL} ({note})")
    return _quotient(np.stack([h, null], axis=1), h.shape[1], note)


def _final_rows(
    unlearned: Models, retrained: Models, h: np.ndarray, place: dict[str, Any], options: Options
) -> list[Row]:
    """Return the rows of RA and TA, the retain and test accuracy of unlearned over that of retrained models, and of the
    final score F · RA · TA. A row is empty, with the reason, where an accuracy that it needs is missing, or 0 for
    retrained models.

    Parameters
    ----------
    h
        [1 + groups, samples]: the points of the forgotten samples, whose mean is F, from all models in row 0, then
        without each group of them.
    place
        Fields of the row of the score.
    """
    sizes = len(unlearned.phi), len(retrained.phi)
    subsets, n = _null.subsets(*sizes, options), min(sizes)
    accuracies, rows = [], []  # accuracies [1 + groups, 2 (unlearned, retrained), samples]
    for name in ("retain_accuracy", "test_accuracy"):
        of_u, of_r = getattr(unlearned, name), getattr(retrained, name)
        if of_u is None or of_r is None or not np.any(of_r):
            estimate = stats.empty(n=n, note=f"there is no {name.replace('_', ' ')} above 0 of retrained models")
        else:
            u, r = (np.reshape(right, (len(right), -1)) for right in (of_u, of_r))  # [models, samples]
            accuracies.append(np.array([
                [u[keep_u].mean(axis=0, dtype=np.float64), r[keep_r].mean(axis=0, dtype=np.float64)]
                for keep_u, keep_r in subsets
            ]))  # fmt: skip
            estimate = _quotient(accuracies[-1], n)  # of the accuracies that were just appended
        rows.append(row(metric=f"{name}_ratio", estimate=estimate))
    if len(accuracies) < 2:
        score = stats.empty(n=h.shape[1], note="the final score needs retain and test accuracy of both populations")
    else:
        # [retain and test, 1 + groups, unlearned and retrained], so that the quotients are RA and TA.
        means = np.stack([accuracy.mean(axis=2) for accuracy in accuracies])
        how = {"per_model": (means[..., 0] / means[..., 1]).T, "combine": lambda f, ra, ta: f * ra * ta}
        score = jackknife.estimate(per_sample=h[:, None], **how, n=h.shape[1], bounds=(0.0, np.inf))
        # This interval covers models and forgotten samples. Row 0 alone gives RA and TA intervals over their samples.
        score = _widened(score, [_quotient(accuracy[:1], n) for accuracy in accuracies])
    return [*rows, row(metric="score", **place, estimate=score)]


def _quotient(both: np.ndarray, n: int, note: str = "") -> Estimate:
    """Return the mean over samples of ``both[:, 0]`` divided by the mean of ``both[:, 1]``, with a jackknife interval.

    Parameters
    ----------
    both
        [1 + groups, 2, samples]: from all models in row 0, then without each group of them. With row 0 alone, the
        interval is over samples only.
    n, note
        The count and the note of the estimate.
    """
    return jackknife.estimate(per_sample=both, combine=np.divide, n=n, note=note, bounds=(0.0, np.inf))


def _widened(score: Estimate, factors: list[Estimate]) -> Estimate:
    """Return the score with an interval widened by the intervals of its ``factors`` RA and TA over samples.

    Half-widths are added in squares (Banerjee 1960), because each factor has samples of its own.
    """
    widths = [score.value * (ratio.high / ratio.value - 1) for ratio in factors if ratio.high > ratio.value > 0]
    half_widths = score.value - score.low, score.high - score.value
    below, above = (float(np.linalg.norm([half_width, *widths])) for half_width in half_widths)
    return replace(score, low=max(score.value - below, 0.0), high=score.value + above)


def _bound_rows(u: np.ndarray, r: np.ndarray, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return the rows of the lower bound on ε (equation 2 of the competition's document): its mean over samples, and
    the largest with Bonferroni's correction over samples.

    The threshold is chosen on a random half of the models, and its rates are bounded on the other. With fewer than four
    models of a kind, both rows have this reason in place of a number.

    Parameters
    ----------
    u, r
        float64 [models, forget samples]: φ of unlearned and of retrained models.
    """
    names, samples = ("epsilon_lower_bound_mean", "epsilon_lower_bound_max"), u.shape[1]
    if min(len(u), len(r)) < 4:
        why = "a threshold chosen on half of the models needs four of each kind"
        return table(dict.fromkeys(names, stats.empty(n=samples, note=why)))
    half_u, half_r = (rng.permutation(len(phi)) < len(phi) // 2 for phi in (u, r))
    halves = (u[half_u], u[~half_u]), (r[half_r], r[~half_r])
    how = f"threshold chosen on {half_u.sum()}, bounded on {(~half_u).sum()} models of each kind"
    mean = stats.mean_interval(values=epsilon_bounds(*halves, options.confidence, options.delta))
    mean = replace(mean, low=max(mean.low, 0.0), note=f"{how}; interval over samples")
    bound = float(epsilon_bounds(*halves, 1 - (1 - options.confidence) / samples, options.delta).max())
    how += "; holds for all samples together; one-sided"
    largest = Estimate(bound, low=bound, high=np.inf, n=samples, note=how)
    return table(dict(zip(names, (mean, largest), strict=True)), confidence=options.confidence)
