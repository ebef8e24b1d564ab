"""Efficacy by epistemic uncertainty: 1 / mean squared gradient norm of the target set (Becker and Liebig 2022)."""

from dataclasses import replace

import numpy as np

from unlearning_audit.metrics import DecisionRule, Effect, Estimate, Evaluation, Row, accuracy, single, stats, table
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity


def information(squared_norms: np.ndarray) -> np.ndarray:
    """Return ι of each model, float64 [models]: the mean over its forgotten samples of ‖∇_θ log p_θ(y|x)‖² (equation
    7).

    Parameters
    ----------
    squared_norms
        float [models, samples]: squared norms of gradients for the observed label.

    Raises
    ------
    ValueError
        For negative or NaN values among them.
    """
    if not (squared_norms >= 0).all():
        raise ValueError("squared gradient norms are negative or NaN; look at the logits of these models first")
    return np.asarray(np.asarray(squared_norms, np.float64).mean(axis=1))


def efficacy(information: np.ndarray) -> np.ndarray:
    """Return efficacy 1/ι of each model, float64 [models], inf where ι is 0 (equation 8). ``information``: ι, [models].

    With ‖∇ mean cross-entropy‖² in place of ι, it is the upper bound of efficacy (lemma 1).
    """
    information = np.asarray(information, np.float64)
    with np.errstate(divide="ignore"):
        return np.where(information > 0, 1.0 / information, np.inf)


NEEDS = ("seeds", "squared_norms")
DEFAULT = "seeds"

QUANTITIES = (
    Quantity(
        "efficacy_median", "median efficacy", "lower", logarithmic=True, primary=True, system="efficacy",
        reading="1 over the mean squared gradient norm of the forgotten samples, as a median over models: the "
        "lower, the less settled the weights are on them. Compare with retraining.",
        columns=(Column(9, "median efficacy", besides=True),),
        comparisons=(Comparison("efficacy", 7, falling=True, per_model="efficacy"),),
    ),
    Quantity(
        "efficacy", "efficacy", "lower", logarithmic=True,
        reading="1 over the mean squared gradient norm of the forgotten samples: the lower, the less settled "
        "the weights are on them. Compare with retraining.",
    ),
    Quantity(
        "efficacy_upper_bound", "upper bound of efficacy", "lower", logarithmic=True,
        reading="1 over the squared norm of the mean gradient of the forgotten samples.",
    ),
    Quantity(
        "efficacy_upper_bound_median", "median upper bound", "lower", logarithmic=True,
        reading="1 over the squared norm of the mean gradient of the forgotten samples: never less than efficacy.",
    ),
    Quantity(
        "information", "ι", "higher", logarithmic=True,
        reading="Mean squared gradient norm of the forgotten samples: the higher, the less settled the weights.",
    ),
    Quantity(
        "attack_probability", "probability of membership", "lower", logarithmic=True,
        reading="Mean probability of membership that an attack gives to the forgotten samples. Compare with "
        "retraining.",
    ),
    *map(Quantity, ("efficacy_sd", "efficacy_upper_bound_sd", "information_median", "information_sd")),
    *map(Quantity, ("attack_probability_median", "attack_probability_sd")),
    Quantity("accuracy_sd", printed="{role}_accuracy_sd{on_target}"),
)  # fmt: skip


def rows(evaluation: Evaluation) -> list[Row]:
    """Return rows of "information" (the mean squared norm of the gradients of forgotten samples, for observed labels),
    "efficacy" (1 over it) and "efficacy_upper_bound" (1 over the squared norm of the mean gradient): the mean, "…_sd"
    and "…_median" over target models with intervals over models, then the value of each model.

    If attacks were run, the same rows follow for "attack_probability", the mean probability of membership by each
    attack. The last rows are "accuracy_sd", the spread of accuracies over models, for each of the roles retain, forget
    and test of which all models have samples. Raises ArtifactError if no job computed the norms of gradients, and
    ValueError for scores of an attack that are no probabilities.
    """
    values = evaluate(*evaluation.gradients)
    forget = evaluation.membership[evaluation.target].forget
    for (attack, form), (score, _) in evaluation.scores.items():
        values += rows_over_models({"attack_probability": probability(score, forget)}, attack=f"{attack}/{form}")
    return values + _accuracy_spread(evaluation)


#: The efficacy of retraining is known from retrained models only.
DECIDES = {"efficacy": DecisionRule(1, "efficacy", scale="log", units="models")}


def effects(evaluation: Evaluation) -> dict[str, Effect]:
    """Return "efficacy" → the logarithm of every model's efficacy; {} where one is infinite.

    With logarithms, the difference between two methods is the mean logarithm of a ratio, seed by seed. It equals the
    difference of the medians if the logarithms are distributed symmetrically.
    """
    with np.errstate(divide="ignore"):
        squared_norms, _of_mean_gradient = evaluation.gradients
        logarithms = np.log(efficacy(information(squared_norms)))
    if not np.isfinite(logarithms).all():
        return {}
    return {"efficacy": single(value=logarithms, unit=np.arange(len(logarithms)), rule=DECIDES["efficacy"])}


def probability(score: np.ndarray, forget: np.ndarray) -> np.ndarray:
    """Return the mean of ``score`` [models, samples], a probability of membership, over each model's ``forget`` set:
    float64 [models].

    Figures 3 and 4 of the paper show this mean.

    Parameters
    ----------
    forget
        bool [models, samples].

    Raises
    ------
    ValueError
        For values of forgotten samples that are NaN or outside [0, 1].
    """
    if not ((score[forget] >= 0) & (score[forget] <= 1)).all():
        raise ValueError("scores of the attack lie outside [0, 1], so they are no probabilities of membership")
    return np.asarray(np.where(forget, score, 0.0).sum(axis=1) / forget.sum(axis=1))


def evaluate(squared_norms: np.ndarray, squared_norm_of_mean: np.ndarray) -> list[Row]:
    """Return the mean, standard deviation and median over models of information, efficacy and its upper bound, then the
    values of every model, as rows (`rows_over_models`).

    Where a model has ι = 0 its efficacy is inf; means and standard deviations are then empty, and the median is given.

    Parameters
    ----------
    squared_norms
        float [models, samples]: squared norms of gradients for the observed label.
    squared_norm_of_mean
        float [models]: ‖∇ of the mean cross-entropy over the same samples‖².

    Raises
    ------
    ValueError
        For norms that are negative or NaN.
    """
    iota = information(squared_norms)
    # Rounding must not put the bound below efficacy: with one target sample they are equal.
    bound = np.minimum(np.asarray(squared_norm_of_mean, np.float64), iota)
    return rows_over_models({"information": iota, "efficacy": efficacy(iota), "efficacy_upper_bound": efficacy(bound)})


def rows_over_models(quantities: dict[str, np.ndarray], *, attack: str = "") -> list[Row]:
    """Return rows of each quantity, name → float64 [models].

    The rows of a quantity are its mean, standard deviation ("_sd") and median ("_median") over models, with intervals
    by Student's t, chi-square and order statistics. The value of every model (field ``model``) follows, without an
    interval. Infinite values leave mean and standard deviation empty, with the reason.
    """
    lines = []
    for name, values in quantities.items():
        if infinite := int(np.isinf(values).sum()):
            mean = sd = stats.empty(n=len(values), note=f"{name} is infinite in {infinite} of {len(values)} models")
        else:
            mean, sd = stats.mean_interval(values=values), stats.sd_interval(values=values)
        # The quantile interpolates, which gives NaN between two infinite values; the median does not.
        median = replace(stats.quantile_interval(values=values, share=0.5), value=float(np.median(values)))
        lines += table({name: mean, f"{name}_sd": sd, f"{name}_median": median}, attack=attack)
        for model, value in enumerate(values.tolist()):
            lines += table({name: Estimate(value, low=np.nan, high=np.nan, n=1)}, attack=attack, model=model)
    return lines


def _accuracy_spread(evaluation: Evaluation) -> list[Row]:
    """Return rows "accuracy_sd": the standard deviation over models of each model's accuracy, for the roles retain,
    forget and test. Test samples are judged by their clean labels. A role is left out if a model has no sample of
    it."""
    predicted = evaluation.outputs(evaluation.unlearned_files).predicted(evaluation.target)
    of_roles = accuracy.roles_and_labels(evaluation, evaluation.target)
    lines = []
    for role in ("retain", "forget", "test"):
        rows, labels = of_roles[role]
        if rows.any(axis=1).all():
            accuracies = ((predicted == labels) & rows).sum(axis=1) / rows.sum(axis=1)
            lines += table({"accuracy_sd": stats.sd_interval(values=accuracies)}, role=role)
    return lines
