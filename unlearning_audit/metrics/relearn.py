"""Relearning: hidden knowledge comes back fast when a part of it is learned once more.

Models are taught one half of what they forgot. They are queried on the other half after 0, 1, 2, 4, … steps, and so are
retrained models, in which nothing can come back. Relearning time goes back to Golatkar et al. (2020); its ratio to that
of retraining is the anamnesis index of Chundawat et al. (2023).
"""

from typing import Any

import numpy as np
from pydantic import Field

from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.evaluation.relearned import Relearned
from unlearning_audit.metrics import NO_RETRAINED, Evaluation, Row, Settings, _text, groups, nothing, row, stats, table
from unlearning_audit.plugins.declarations import Comparison, Quantity
from unlearning_audit.stats import Estimate, crossed, jackknife, levels, rates
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
    audited, member = stacked(evaluation.relearned_files), evaluation.membership[evaluation.target]
    queried = member.forget[:, audited.index] & ~audited.taught
    accuracy = _text.mean(np.clip(_over_steps(audited.right, audited.steps), 0, 1), queried)
    places = {"unit": member.block, "split": member.split, "index": audited.index}
    return {name: single(**vars(accuracy), **places, rule=rule) for name, rule in DECIDES.items()}


def rows(evaluation: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return how much more the target models relearn of what they forgot than retrained ones ("relearn_area…"), and how
    many steps they need in comparison ("relearn_steps"). The accuracy of the target models after each number of steps
    follows ("relearn_accuracy").

    Language models also have the area in nats per token. Without retrained models to compare with, all rows but those
    of accuracies have this reason in place of a number.
    """
    audited = stacked(evaluation.relearned_files)
    member = evaluation.membership[evaluation.target]
    queried, places = member.forget[:, audited.index] & ~audited.taught, groups(member)
    accuracies = [
        row(metric="relearn_accuracy", step=step, estimate=rates.rate(hit=audited.right[:, i], rows=queried, **places))
        for i, step in enumerate(audited.steps.tolist())
    ]
    text = evaluation.data.x.dtype.kind == "i" and not evaluation.data.y.any()  # tokens without labels
    names = ("relearn_area", "relearn_area_phi", *["relearn_area_nll"] * text, "relearn_steps")  # NLL of text only
    retrained = compared(evaluation)
    if isinstance(retrained, str):
        return [*accuracies, *(nothing(name, retrained) for name in names)]
    before = evaluation.outputs(evaluation.originals).stacked(evaluation.target, audited.index).argmax(-1)
    goal = NEAR * _mean(before == evaluation.labels_of(evaluation.target)[..., audited.index], queried)
    curves = {"relearn_area": (audited.right, retrained.right), "relearn_area_phi": (audited.phi, retrained.phi)}
    if text:
        nll, retrained_nll = (np.logaddexp(0.0, -phi.astype(np.float64)) for phi in (audited.phi, retrained.phi))
        curves = {"relearn_area_nll": (nll, retrained_nll), **curves}
    numbers = {name: area(*pair, audited.steps, queried, **places) for name, pair in curves.items()}
    numbers["relearn_steps"] = index(audited, retrained, queried, goal, **places)
    return table(numbers) + accuracies


def compared(evaluation: Evaluation) -> Relearned | str:
    """Return the record of relearning of the retrained models that are compared with, or the reason why there are
    none."""
    if not evaluation.compared_relearned_files:
        return NO_RETRAINED
    try:
        return stacked(evaluation.compared_relearned_files)
    except NoAnswerError as error:
        return str(error)


def stacked(files: list[str]) -> Relearned:
    """Return the record of relearning of all models, joined from ``files``, one for each batch of models, on the
    samples that any batch has. Where a batch does not have a sample, its values are 0. Raises NoAnswerError if a method
    left no models."""
    batches = [Relearned.read(path) for path in files]
    index = np.unique(np.concatenate([batch.index for batch in batches]))

    def spread(batch: Relearned, name: str) -> np.ndarray:
        """Return the field ``name`` of one batch on the samples of all batches, which are its last axis. Fields of
        rounded models are empty if no model was rounded (no ``bits``); then they are returned as they are."""
        values: np.ndarray = getattr(batch, name)
        if name.endswith("rounded") and not len(batch.bits):
            return values
        wide = np.zeros((*values.shape[:-1], len(index)), values.dtype)
        wide[..., np.searchsorted(index, batch.index)] = values
        return wide

    names = ("phi", "right", "taught", "phi_rounded", "right_rounded")
    whole = {name: np.concatenate([spread(batch, name) for batch in batches]) for name in names}
    return Relearned(batches[0].steps, **whole, index=index, bits=batches[0].bits)


def weights(steps: np.ndarray) -> np.ndarray:
    """Return the weights of the points of a curve in its mean over log₂(1 + step), by the trapezoidal rule: float64
    [points], of sum 1."""
    widths = np.diff(np.log2(1.0 + steps))
    trapezoids: np.ndarray = (np.r_[widths, 0] + np.r_[0, widths]) / 2 / widths.sum()
    return trapezoids


def _over_steps(values: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the mean of curves ``values`` [models, points, rows] over log₂(1 + step): float64 [models, rows]."""
    area: np.ndarray = np.einsum("p,mpr->mr", weights(steps), values.astype(np.float64))
    return area


def area(audited: np.ndarray, retrained: np.ndarray, steps: np.ndarray, queried: np.ndarray, **places: Any) -> Estimate:
    """Return how far the curve of ``audited`` lies above that of ``retrained`` on the ``queried`` samples, as a mean
    over log₂(1 + step).

    ``audited`` and ``retrained`` [models, points, rows]: right (bool), phi or NLL, of the same samples in paired
    models; ``steps`` int64 [points]; ``queried`` bool [models, rows]; ``places``: "split" and "block", int [models].
    The interval covers samples and models; for predictions it lies in [−1, 1].
    """
    means = [_over_steps(values, steps) for values in (audited, retrained)]
    if audited.dtype == bool:
        of_audited, of_retrained = (_text.mean(np.clip(mean, 0, 1), queried) for mean in means)
        distance, end = crossed.difference(of_audited, of_retrained), 1.0
    else:
        distance, end = levels.per_model(value=means[0] - means[1], weight=queried * 1.0), np.inf
    return levels.mean(distance, **places, n=int(queried.any(axis=0).sum()), bounds=(-end, end))


def index(audited: Relearned, retrained: Relearned, queried: np.ndarray, goal: np.ndarray, **places: Any) -> Estimate:
    """Return the mean number of steps until the accuracy on ``queried`` samples reaches the ``goal`` float64 [models],
    divided by that of retrained models.

    A model that does not reach the goal by the last step counts twice as many steps. There is no number if all
    retrained models reach it at step 0, and no interval if this holds without one split or model. The interval is a
    jackknife over splits, because models of a split are taught the same samples, or over models where there are fewer
    than three splits. ``queried`` bool [models, rows]; ``places``: "split" and "block", int [models].
    """
    last, n = audited.steps[-1], len(goal)
    needed = np.array([first(models, queried, goal) for models in (audited, retrained)], dtype=np.float64)
    late = ", ".join(
        f"{(steps > last).sum()} of {n} {population} were not back after {last} steps"
        for population, steps in zip(("models", "retrained ones"), needed, strict=True)
        if (steps > last).any()
    )
    if not needed[1].sum():
        return stats.empty(n=n, note="retrained models are as right as the originals from the start")
    value = float(needed[0].mean() / needed[1].mean())
    splits, split = np.unique(np.stack([places["block"], places["split"]]), axis=1, return_inverse=True)
    unit, unit_of_model = ("split", split.reshape(-1)) if splits.shape[1] > 2 else ("model", np.arange(n))
    kept = unit_of_model != np.unique(unit_of_model)[:, None]  # [units, models]: without each unit in turn
    with np.errstate(divide="ignore", invalid="ignore"):
        # ``needed`` [2, models]: the sums of steps of audited models over those of retrained ones, [units].
        ratios = np.divide(*(needed @ kept.T))
    if not np.isfinite(ratios).all():
        why = f"no interval: without one {unit} there is no ratio"
        return Estimate(value, np.nan, np.nan, n, "; ".join(filter(None, [late, why])))
    half = stats.t_quantile(p=(1 + stats.LEVEL) / 2, dof=len(kept) - 1) * np.sqrt(jackknife.jackknife_variance(ratios))
    return Estimate(value, max(float(value - half), 0.0), float(value + half), n, late)


def first(models: Relearned, queried: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Return the first step at which each model's accuracy on ``queried`` bool [models, rows] reaches its ``goal``
    float64 [models]: int64 [models]; twice the last step if it never does."""
    accuracy = np.stack([_mean(right, queried) for right in models.right.swapaxes(0, 1)], axis=1)  # [models, points]
    reached = accuracy >= goal[:, None] - 1e-12
    never = NEVER * models.steps[-1]
    step: np.ndarray = np.where(reached.any(axis=1), models.steps[reached.argmax(axis=1)], never)
    return step


def _mean(right: np.ndarray, queried: np.ndarray) -> np.ndarray:
    """Return the share of each model's ``queried`` rows that are right, float64 [models]; both bool [models, rows]."""
    share: np.ndarray = (right & queried).sum(axis=1) / np.maximum(queried.sum(axis=1), 1)
    return share
