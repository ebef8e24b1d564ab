"""Relearning: hidden knowledge comes back fast when a part of it is learned once more.

Models are taught one half of what they forgot. They are queried on the other half after 0, 1, 2, 4, … steps, and so are
retrained models, in which nothing can come back. Relearning time goes back to Golatkar et al. (2020); its ratio to that
of retraining is the anamnesis index of Chundawat et al. (2023).
"""

from typing import Any

import numpy as np
from pydantic import Field

from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.evaluation.signal_files import Relearned
from unlearning_audit.metrics import NO_RETRAINED, Evaluation, Row, Settings, _text, no_value, rates, row, splits, table
from unlearning_audit.plugins.declarations import Comparison, Quantity
from unlearning_audit.stats import LEVEL, Estimate, crossed, empty, jackknife, levels, t_quantile, without_interval
from unlearning_audit.store.files import NoAnswerError

NEEDS = ("forgotten", "weights", "relearned")

QUANTITIES = (
    Quantity(
        "relearn_area", "relearning", ideal=0.0,
        reading="How much more often models are right about the forgotten samples that they are not taught, while they "
        "learn the others once more, than retrained models are: 0 = like retraining, above = more comes back.",
        comparisons=(Comparison("relearning", 13, ideal=0.0, two_sided=True, retrained=True),),
    ),
    Quantity(
        "relearn_area_phi", "relearning, phi", ideal=0.0,
        reading="The same in units of phi, the logit-scaled confidence.",
    ),
    Quantity(
        "relearn_area_nll", "relearning, NLL", ideal=0.0,
        reading="The same of a language model in nats per token: 0 = like retraining, below = more comes back.",
    ),
    Quantity(
        "relearn_steps", "relearning steps", "higher", ideal=1.0,
        reading="Steps until models are nearly as often right as before unlearning, over the steps that retrained ones "
        "need: 1 = like retraining, 0 = nothing had been forgotten.",
    ),
    Quantity("relearn_accuracy", reading="Share of right predictions on the forgotten samples that are not taught."),
)  # fmt: skip

#: The share of the original's accuracy that counts as back; and by how much the last step is multiplied for models that
#: do not reach it.
NEAR, NEVER = 0.95, 2


class Options(Settings):
    """``steps`` of training by the study's recipe, at its ``lr`` without a schedule; ``decides``: a verdict rests on
    the area as well."""

    steps: int = Field(16, ge=1, le=100_000)
    decides: bool = False


#: How much retrained models relearn is known from them only.
DECIDES = {"relearn_area": DecisionRule(1, "accuracy", lowest=0.0, highest=1.0)}


def effects(evaluation: Evaluation, options: Options) -> dict[str, Effect]:
    """Return "relearn_area" → each target model's accuracy during relearning, on those of its forgotten samples that
    are not taught, as a mean over log₂(1 + step). {} unless ``decides`` is set."""
    if not options.decides:
        return {}
    audited, member = joined_record(evaluation.relearned_files), evaluation.membership[evaluation.target]
    queried = member.forget[:, audited.index] & ~audited.taught
    # Means of right (1) and wrong (0) lie in [0, 1] except for rounding, which the clip removes.
    accuracy = _text.mean(np.clip(_mean_over_steps(audited.right, audited.steps), 0, 1), queried)
    places = {"unit": member.block, "split": member.split, "index": audited.index}
    # vars: the accuracy's value, influence and imagined
    return {"relearn_area": single(**vars(accuracy), **places, rule=DECIDES["relearn_area"])}


def rows(evaluation: Evaluation) -> list[Row]:
    """Return how much more the target models relearn of what they forgot than retrained ones ("relearn_area…"), and how
    many steps they need in comparison ("relearn_steps"); also the accuracy of the target models after each number of
    steps ("relearn_accuracy", field ``step``).

    An area is the mean over log₂(1 + step) of the difference of two curves: "relearn_area" in accuracy,
    "relearn_area_phi" in φ and, for language models, "relearn_area_nll" in nats per token. Without retrained models to
    compare with, all rows but those of accuracies have this reason in place of a number. Only forgotten samples that
    are not taught are queried.
    """
    audited = joined_record(evaluation.relearned_files)
    member = evaluation.membership[evaluation.target]
    queried, places = member.forget[:, audited.index] & ~audited.taught, splits(member)
    accuracies = [
        row(metric="relearn_accuracy", step=step, estimate=rates.rate(hit=right, rows=queried, **places))
        for step, right in zip(audited.steps.tolist(), audited.right.swapaxes(0, 1), strict=True)
    ]
    is_text = evaluation.data.x.dtype.kind == "i" and not evaluation.data.y.any()  # tokens without labels
    retrained = retrained_record(evaluation)
    if isinstance(retrained, str):  # the reason why there are none
        names = ["relearn_area", "relearn_area_phi", "relearn_steps"]
        if is_text:
            names.insert(2, "relearn_area_nll")
        return accuracies + [no_value(name, retrained) for name in names]
    # The goal of relearning is most of the accuracy before unlearning.
    predicted_before = evaluation.outputs(evaluation.originals).stacked(evaluation.target, audited.index).argmax(-1)
    goal = NEAR * _accuracy(predicted_before == evaluation.labels_of(evaluation.target)[..., audited.index], queried)
    curves = {"relearn_area": (audited.right, retrained.right), "relearn_area_phi": (audited.phi, retrained.phi)}
    if is_text:
        # φ is the log-odds of a token, so NLL = log(1 + exp(−φ)).
        nll, retrained_nll = (np.logaddexp(0.0, -phi.astype(np.float64)) for phi in (audited.phi, retrained.phi))
        curves = {"relearn_area_nll": (nll, retrained_nll), **curves}
    numbers = {name: area(*pair, audited.steps, queried, **places) for name, pair in curves.items()}
    numbers["relearn_steps"] = steps_ratio(audited, retrained, queried, goal, **places)
    return table(numbers) + accuracies


def retrained_record(evaluation: Evaluation) -> Relearned | str:
    """Return how the retrained models relearned what they never saw; or, as a str, why this is unknown: there are no
    retrained models, or they failed."""
    if not evaluation.compared_relearned_files:
        return NO_RETRAINED
    try:
        return joined_record(evaluation.compared_relearned_files)
    except NoAnswerError as error:
        return str(error)


def joined_record(files: list[str]) -> Relearned:
    """Return the record of relearning of all models, joined from ``files``, one for each batch of models, on the
    samples that any batch has. Where a batch does not have a sample, its values are 0. Raises NoAnswerError if a method
    left no models."""
    batches = [Relearned.read(path) for path in files]
    index = np.unique(np.concatenate([batch.index for batch in batches]))

    def spread(batch: Relearned, name: str) -> np.ndarray:
        """Return the field ``name`` of one batch with the samples of all batches (``index``) as its last axis, 0 for
        samples that the batch does not have. If no model was rounded (no ``bits``), the fields "…_rounded" are empty;
        these are returned unchanged."""
        values: np.ndarray = getattr(batch, name)
        if name.endswith("rounded") and not len(batch.bits):
            return values
        wide = np.zeros((*values.shape[:-1], len(index)), values.dtype)
        wide[..., np.searchsorted(index, batch.index)] = values
        return wide

    names = ("phi", "right", "taught", "phi_rounded", "right_rounded")
    whole = {name: np.concatenate([spread(batch, name) for batch in batches]) for name in names}
    # The steps and the bits are settings, the same ones in every batch.
    return Relearned(batches[0].steps, **whole, index=index, bits=batches[0].bits)


def weights(steps: np.ndarray) -> np.ndarray:
    """Return the weights of the points of a curve in its mean over log₂(1 + step), by the trapezoidal rule: float64
    [points], of sum 1. ``steps`` int64 [points]."""
    widths = np.diff(np.log2(1.0 + steps))
    # A point gets half of the width on each of its sides.
    return np.asarray((np.r_[widths, 0] + np.r_[0, widths]) / 2 / widths.sum())


def _mean_over_steps(values: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the mean of curves ``values`` [models, points, rows] over log₂(1 + step): float64 [models, rows]. The
    points of a curve are the numbers of ``steps`` int64 [points]."""
    return np.asarray(np.einsum("p,mpr->mr", weights(steps), values.astype(np.float64)))


def area(audited: np.ndarray, retrained: np.ndarray, steps: np.ndarray, queried: np.ndarray, **places: Any) -> Estimate:
    """Return how far the curve of ``audited`` lies above that of ``retrained`` on the ``queried`` samples, as a mean
    over log₂(1 + step).

    The interval covers samples and models; for right or wrong predictions it lies in [−1, 1], else it has no bounds.

    Parameters
    ----------
    audited, retrained
        [models, points, rows]: right (bool), phi or NLL, of the same samples in paired models.
    steps
        int64 [points]: the number of steps at each point of a curve.
    queried
        bool [models, rows].
    places
        int64 [models]: "split", "block" and "copied" (each model's original; None without copies), from `splits`.
    """
    above, below = (_mean_over_steps(values, steps) for values in (audited, retrained))  # the two heights
    if audited.dtype == bool:
        # The clip removes rounding, which may lead out of [0, 1].
        of_audited, of_retrained = (_text.mean(np.clip(mean, 0, 1), queried) for mean in (above, below))
        distance, bound = crossed.difference(of_audited, of_retrained), 1.0
    else:
        distance, bound = levels.per_model(value=above - below, weight=queried * 1.0), np.inf  # a weight is a float
    return levels.mean(distance, **places, n=int(queried.any(axis=0).sum()), bounds=(-bound, bound))


def steps_ratio(
    audited: Relearned, retrained: Relearned, queried: np.ndarray, goal: np.ndarray, **places: Any
) -> Estimate:
    """Return the mean number of steps that ``audited`` models need to relearn, divided by that of ``retrained`` models.

    A model that does not reach the goal by the last step counts as twice that step; the note says how many do not.
    There is no number if all retrained models reach the goal at step 0. The interval is a jackknife over splits,
    because models of a split are taught the same samples; over models where there are fewer than three splits; and over
    originals if models are copies of several. There is no interval if without one of these all other retrained models
    reach the goal at step 0, or if leaving one out never changes the ratio.

    Parameters
    ----------
    queried
        bool [models, rows]: the samples on which accuracy is measured.
    goal
        float64 [models]: the accuracy at which a model has relearned.
    places
        int64 [models]: "split", "block" and "copied" (each model's original; None without copies), from `splits`.
    """
    last, n = audited.steps[-1], len(goal)
    # [2, models]: the steps that audited models need, and those that retrained models need.
    needed = np.array([first_steps(models, queried, goal) for models in (audited, retrained)], dtype=np.float64)
    # The note says how many models do not reach the goal.
    late = ", ".join(
        f"{(steps > last).sum()} of {n} {population} were not back after {last} steps"
        for population, steps in zip(("models", "retrained ones"), needed, strict=True)
        if (steps > last).any()
    )
    mean_audited, mean_retrained = needed.mean(axis=1)
    if not mean_retrained:
        return empty(n=n, note="retrained models are as right as the originals from the start")
    value = float(mean_audited / mean_retrained)
    # A split is one value of block and split together. The jackknife leaves out one unit, a split or a model, in turn.
    distinct, split = np.unique(np.stack([places["block"], places["split"]]), axis=1, return_inverse=True)
    unit, unit_of_model = ("split", split.reshape(-1)) if distinct.shape[1] > 2 else ("model", np.arange(n))
    if places.get("copied") is not None:
        unit, unit_of_model = "original", places["copied"]
    kept = unit_of_model != np.unique(unit_of_model)[:, None]  # [units, models]: the models without each unit
    sums_audited, sums_retrained = needed @ kept.T  # [units]: of the steps of the models that are kept
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = sums_audited / sums_retrained
        differ = 0 < np.ptp(ratios) < np.inf
    if not differ:
        why = f"no interval: without one {unit} there is no ratio, or always the same"
        return without_interval(value, n=n, note="; ".join(filter(None, [late, why])))
    half = t_quantile(p=(1 + LEVEL) / 2, dof=len(kept) - 1) * np.sqrt(jackknife.jackknife_variance(ratios))
    return Estimate(value, low=max(float(value - half), 0.0), high=float(value + half), n=n, note=late)


def first_steps(models: Relearned, queried: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Return the first step at which each model's accuracy on ``queried`` bool [models, rows] reaches its ``goal``
    float64 [models]: int64 [models]; `NEVER` times the last step for a model that never does."""
    # [models, points]: a point of the curve is a number of steps.
    accuracy = np.stack([_accuracy(right, queried) for right in models.right.swapaxes(0, 1)], axis=1)
    reached = accuracy >= goal[:, None] - 1e-12  # less, so that rounding does not matter
    # argmax: the first point at which the goal is reached
    return np.asarray(np.where(reached.any(axis=1), models.steps[reached.argmax(axis=1)], NEVER * models.steps[-1]))


def _accuracy(right: np.ndarray, queried: np.ndarray) -> np.ndarray:
    """Return the share of each model's ``queried`` rows that are ``right``, float64 [models]; both arguments bool
    [models, rows]. 0 for a model without queried rows."""
    return np.asarray((right & queried).sum(axis=1) / np.maximum(queried.sum(axis=1), 1))
