"""Numbers from result files of other tools: attacks by their scores, and means of the values of each sample."""

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from unlearning_audit.evaluation.effects import OF_SAMPLES, DecisionRule, Effect, several
from unlearning_audit.evaluation.published import Published
from unlearning_audit.metrics import Evaluation, Row, _game, _text, crossed, no_value, row, stats, table
from unlearning_audit.metrics.accuracy import UTILITY
from unlearning_audit.plugins.declarations import Column, Quantity
from unlearning_audit.plugins.settings import FalsePositiveRates, Settings

NEEDS = ("published",)
DEFAULT = "imported"

#: Explanation of the aggregates of OpenUnlearning.
AGGREGATES = (
    "An aggregate of OpenUnlearning from 0 to 1, whose formula stands in the csv. A harmonic mean of clipped parts "
    "hides which part is low, and whether a method forgot too little or too much. Printed tables cannot be recomputed "
    "from published logs, since their formula was not published."
)

#: Ways to compute the privacy part of an aggregate → their column heads; d: the distance from the AUC of retrained
#: models.
PRIVACY_PARTS = {"by_full": "1 − d/|full − retrained|", "by_retrained": "1 − d/retrained", "by_difference": "1 − d"}

#: Fields of an aggregate in result files that make an estimate.
ESTIMATE = ("value", "ci_low", "ci_high", "n", "formula")

QUANTITIES = (
    Quantity(
        "auc_*", "AUC of an attack",
        reading="Chance that a forgotten sample scores above a held-out one, by the scores of the result files. Where "
        "the two sides are no fair draw, retrained models say what to expect, and not .5.",
    ),
    Quantity("unlearning_step"),
    Quantity("tpr_at_fpr_*", "TPR of an attack at a small FPR"),
    Quantity("reading_*", "mean of a reading", reading="Mean over samples of what result files say of each."),
    *(
        Quantity(f"aggregate_{name}", label, "higher", reading=AGGREGATES,
                 columns=(Column(21 + place, label),))
        for place, (name, label) in enumerate((
            ("memorization", "Memorization"), ("utility", "Utility"),
            *((f"{part}_{form}", f"{part.title()}, {formula}") for part in ("privacy", "overall")
              for form, formula in PRIVACY_PARTS.items()),
        ))
    ),
    Quantity("aggregate_*", "*", "higher", reading=AGGREGATES),
    Quantity(
        "printed_numbers", "printed numbers that agree", "higher", ideal=1.0,
        reading="Of the numbers that the result files print, the share that their samples give, to 1e-6.",
    ),
)  # fmt: skip


class Options(Settings):
    """``fpr``: the false positive rates at which TPR is given, where there are enough held-out samples."""

    fpr: FalsePositiveRates = (0.01,)


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return the rows that published scores and values of the audited models give.

    The rows are "unlearning_step" of a checkpoint; "auc_…" and "tpr_at_fpr_…" of each attack; "reading_…", the mean of
    each value for each role; "aggregate_…" of each aggregate; and "printed_numbers", the share of printed numbers that
    agree with recomputed ones. If some model lacks scores of an attack on one side, its AUC has this reason in place of
    a number. If some model lacks values of a role, the row is left out. Raises ValueError if a model has no forgotten
    sample.
    """
    published = evaluation.published
    assert published is not None
    lines = []
    if published.step >= 0:  # −1: unknown
        lines.append(row(metric="unlearning_step", estimate=stats.without_interval(published.step, n=0)))
    splits, split = np.unique(published.membership.split, return_inverse=True)  # models of a split forget the same
    for name, score, forget, heldout, aucs in _scored_attacks(published):
        if aucs is None:
            lines.append(no_value(f"auc_{name}", "some model has no score on one of the two sides"))
            continue
        # Splits count equally.
        reading = crossed.mean([aucs], split=split, share=np.full(len(splits), 1 / len(splits)))
        (auc,) = crossed.estimates(reading, n=int((forget | heldout).any(axis=0).sum()))
        lines.append(row(metric=f"auc_{name}", estimate=auc))
        for rate in options.fpr:
            lines += table({f"tpr_at_fpr_{name}": _tpr(score, forget, heldout, rate)}, rate=rate)
    for name, value, is_share in zip(published.readings.tolist(), published.values, published.share, strict=True):
        for role, mask in _text.roles(published.test, published).items():
            known = mask & np.isfinite(value)
            if known.any(axis=1).all():
                lines += table({f"reading_{name}": _mean_estimate(value, known, is_share=bool(is_share))}, role=role)
    for aggregate in json.loads(published.aggregates):
        # The fields of an estimate in its order; the formula is its note.
        estimate = stats.Estimate(*(aggregate.get(field) for field in ESTIMATE))
        lines.append(row(metric=f"aggregate_{aggregate['name']}", estimate=estimate))
    return lines + _agreement_rows(published)


#: An attack's name; its scores; which samples with a finite score are forgotten; which are held out, [models, samples]
#: each; and its AUC for each model.
Attack = tuple[str, np.ndarray, np.ndarray, np.ndarray, crossed.PerModel | None]


def _scored_attacks(published: Published) -> Iterator[Attack]:
    """Yield each attack: its name, scores, forgotten samples and held-out samples with a finite score, and the AUC of
    each model. The AUC is None if some model has no forgotten or no held-out sample with a finite score."""
    for name, score in zip(published.attacks.tolist(), published.scores, strict=True):
        forget, heldout = (side & np.isfinite(score) for side in (published.forget, published.heldout))
        sided = forget.any(axis=1).all() and heldout.any(axis=1).all()
        yield name, score, forget, heldout, _game.auc(score, forget, heldout) if sided else None


def _tpr(score: np.ndarray, forget: np.ndarray, heldout: np.ndarray, rate: float) -> stats.Estimate:
    """Return the mean over models of each model's own TPR at the false positive rate ``rate``, without an interval. The
    estimate has no value if some model has fewer than 1/rate held-out samples.

    Parameters
    ----------
    score
        float64 [models, samples].
    forget, heldout
        bool [models, samples].
    """
    fewest = int(heldout.sum(axis=1).min())
    if rate * fewest < 1:
        return stats.empty(n=fewest, note=f"{fewest} held-out samples do not resolve a false positive rate of {rate:g}")
    tprs = [
        float((of_model[forgot] > stats.cut_at_fpr(negative_score=of_model[unseen], fpr=rate)).mean())
        for of_model, forgot, unseen in zip(score, forget, heldout, strict=True)
    ]
    note = "no interval: the threshold is that of these held-out samples"
    return stats.without_interval(float(np.mean(tprs)), n=int(forget.any(axis=0).sum()), note=note)


def _mean_estimate(value: np.ndarray, known: np.ndarray, is_share: bool) -> stats.Estimate:
    """Return the mean over models of the mean of ``value`` over the ``known`` samples, [models, samples] both; with an
    interval only if the value is a share, from 0 to 1."""
    n = int(known.any(axis=0).sum())
    if is_share:
        reading = crossed.mean([_text.mean(value, known)], split=np.zeros(len(value), np.int64))
        return crossed.estimates(reading, n=n)[0]  # the one estimate of the one number
    means = np.array([of_model[mask].mean() for of_model, mask in zip(value, known, strict=True)])
    return stats.without_interval(float(means.mean()), n=n, note="no interval: values are not between 0 and 1")


def _agreement_rows(published: Published) -> list[Row]:
    """Return the row "printed_numbers": the share of printed numbers that agree with recomputed ones, whose note lists
    up to five that do not; [] if no printed number could be recomputed."""
    numbers = [number for number in json.loads(published.agreements) if number["agrees"] is not None]
    if not numbers:
        return []
    sentence = "{quantity} is {printed:.6g}, recomputed {recomputed:.6g}"
    wrong = [sentence.format_map(number) for number in numbers if not number["agrees"]]
    note = "; ".join(wrong[:5]) + (f"; and {len(wrong) - 5} more" if len(wrong) > 5 else "")
    estimate = stats.without_interval(1 - len(wrong) / len(numbers), n=len(numbers), note=note)
    return [row(metric="printed_numbers", estimate=estimate)]


# ---------------------------------------------------------------- effects to verdicts


DECIDES = {
    "auc": DecisionRule(1, "auc", lowest=0.0, highest=1.0),
    "memory": DecisionRule(1, "accuracy", lowest=0.0, highest=1.0),
}


def effects(evaluation: Evaluation) -> dict[str, Effect]:
    """Return what the published numbers of the audited models contribute to verdicts. Only attacks and values that all
    populations of the evaluation have are used.

    ``auc``: AUC of attacks; ``memory``: means over forgotten samples of values that rise as more is remembered, where
    1 − value takes the place of a value that falls; ``kept`` and ``elsewhere``: means of values of retained and of test
    samples, which measure utility. A name without values is left out.
    """
    published = evaluation.published
    assert published is not None
    comparable, unit = set(published.comparable.tolist()), published.membership.block
    # Retraining has an AUC of ½ where forgotten and held-out samples are a random draw (``fair``).
    auc_rule = replace(DECIDES["auc"], ideal=0.5, chance=OF_SAMPLES) if published.fair else DECIDES["auc"]
    roles = _text.roles(published.test, published)
    metrics = {
        "auc": (_aucs(published, comparable), auc_rule),
        "memory": (_means_of_readings(published, comparable, roles["forget"]), DECIDES["memory"]),
        "kept": (_means_of_readings(published, comparable, roles["retain"]), UTILITY),
        "elsewhere": (_means_of_readings(published, comparable, roles["test"]), UTILITY),
    }
    split = np.zeros(len(unit), np.int64)  # all models of a block have the same forget set
    return {
        metric: several([*numbers], [*numbers.values()], unit=unit, split=split, rule=rule)
        for metric, (numbers, rule) in metrics.items()
        if numbers
    }


def _aucs(published: Published, comparable: set[str]) -> dict[str, crossed.PerModel]:
    """Return attack → its AUC for each model, forgotten against held-out samples, for the attacks in ``comparable``,
    the names of attacks that all populations have. {} if the AUC of one of these attacks is missing, because some model
    has no score of forgotten or of held-out samples."""
    aucs = {name: auc for name, *_, auc in _scored_attacks(published) if name in comparable}
    return {name: auc for name, auc in aucs.items() if auc is not None and None not in aucs.values()}


def _means_of_readings(published: Published, comparable: set[str], mask: np.ndarray) -> dict[str, crossed.PerModel]:
    """Return name of a published value → its mean over the samples in ``mask``, bool [models, samples], for each model.

    A value is used under four conditions. The value lies in [0, 1]; it is known whether the value rises (``direction``
    1) or falls (−1) as more is remembered; all populations have the value (``comparable``: names of such values); and
    each model has it for some sample. A value v that falls is replaced by 1 − v.
    """
    means = {}
    # ``share``: whether a value lies in [0, 1]; a ``direction`` of 0 is unknown.
    columns = (published.readings.tolist(), published.values, published.direction, published.share)
    for name, value, direction, is_share in zip(*columns, strict=True):
        known = mask & np.isfinite(value)
        if is_share and direction and name in comparable and known.any(axis=1).all():
            means[name] = _text.mean(value if direction > 0 else 1 - value, known)
    return means
