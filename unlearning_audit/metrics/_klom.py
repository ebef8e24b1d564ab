"""KLOM of unlearned against retrained models, with groups of models left out, beside that of retrained ones."""

from dataclasses import replace
from typing import Any

import numpy as np

from unlearning_audit import stats
from unlearning_audit.evaluation.contributions import Contribution, Standard, single
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _null, row
from unlearning_audit.stats import Estimate, jackknife, klom, pseudo

#: What decides has few bins, none of them nearly empty: the published twenty say little about thirty models.
DECIDING = {"bins": 5, "least": 0.01}

#: Fewer models say nothing.
FEWEST = 3

#: A mean is dominated by its cap if more than this share of it comes from empty bins.
CAPPED = 0.5

#: The models, the retrained ones they are held against, others, and how many there are of each.
_Sides = tuple[np.ndarray, np.ndarray, np.ndarray, str]

STANDARD = Standard(1, "klom", ideal=0.0, far=False, units="groups of models", coarse=True, draw=False)


def rows(u: np.ndarray, r: np.ndarray, independent: np.ndarray | None, options: _null.Options) -> list[Row]:
    """Mean and 95th percentile over samples with the published bins, and the mean of retrained against retrained, of as
    many models as retraining itself is read by. The interval of the percentile is over samples: leaving models out
    moves single samples more than other models would. Then what decides: its two parts and their difference."""
    both, whole = _sides(u, r, independent, halves=True), _sides(u, r, independent)
    if both is None or whole is None:
        return []
    audited, reference, control, note = both

    def mean(side: np.ndarray) -> Estimate:
        per_sample = _left_out(side, reference, options)
        return _mean(per_sample, note + _capped(side, reference, per_sample[0]))

    tail = stats.quantile_interval(values=klom.divergence(margin=audited, reference=reference), share=0.95)
    tail = replace(tail, note="; ".join(filter(None, (note, "interval over samples", tail.note))))
    quantities = [("klom", mean(audited)), ("klom_p95", tail), ("klom_null", mean(control))]
    found = [row(metric=name, models=len(audited), estimate=estimate) for name, estimate in quantities]
    pair, note = _deciding(whole, options), whole[-1]
    over = jackknife.estimate(per_sample=pair, combine=_difference, n=pair.shape[-1], note=note)
    top, null = (_mean(pair[:, part], note) for part in (0, 1))
    quantities = [("klom_coarse", top), ("klom_coarse_null", null), ("klom_over_null", over)]
    return found + [row(metric=name, models=len(whole[0]), estimate=estimate) for name, estimate in quantities]


def contributions(
    u: np.ndarray, r: np.ndarray, independent: np.ndarray | None, index: np.ndarray, options: _null.Options
) -> dict[str, Contribution]:
    """How much further than retrained models unlearned ones are from other retrained ones, as groups and samples add
    to it; none for fewer than three models on a side."""
    both = _sides(u, r, independent)
    if both is None:
        return {}
    pair = _deciding(both, options)
    if len(pair) < 3 or pair.shape[-1] < 2:
        return {}
    value, influence = pseudo.of_means(per_sample=pair, combine=_difference)
    unit = np.arange(len(value))
    return {"klom": single(value=value, influence=influence, unit=unit, index=index, standard=STANDARD)}


def _difference(top: np.ndarray, null: np.ndarray) -> np.ndarray:
    difference: np.ndarray = top - null
    return difference


def _deciding(both: _Sides, options: _null.Options) -> np.ndarray:
    """What decides, of the models and of other retrained ones: float64 [1 + groups, 2, samples]."""
    audited, reference, control, _ = both
    return np.stack([_left_out(side, reference, options, **DECIDING) for side in (audited, control)], axis=1)


def _sides(u: np.ndarray, r: np.ndarray, independent: np.ndarray | None, *, halves: bool = False) -> _Sides | None:
    """The models, the retrained ones they are held against and others, as many of each, and how many; None if they are
    too few. ``halves``: no more than half of the retrained models, by which retraining is read, if these are enough."""
    u, r = np.asarray(u, np.float64), np.asarray(r, np.float64)
    if independent is None:
        models = min(len(u), len(r) // 2)
        reference, control = r[:models], r[models : 2 * models]
        how = "halves of the retrained models"
    else:
        population = np.asarray(independent, np.float64)
        models = min(len(u), len(r), len(population))
        half = min(len(r), len(population)) // 2
        models = min(models, half) if halves and half >= FEWEST else models
        reference, control = r[:models], population[:models]
        how = "an independent population"
    if models < FEWEST:
        return None
    return u[:models], reference, control, f"{models} models of each kind; null from {how}"


def _capped(u: np.ndarray, r: np.ndarray, per_sample: np.ndarray) -> str:
    """That most of a mean comes from bins without a model, in which it is capped; "" if not."""
    share = float(klom.of_empty_bins(margin=u, reference=r).mean() / max(per_sample.mean(), klom.LEAST))
    if share <= CAPPED:
        return ""
    return f"; {share:.0%} of it comes from bins without a model, where a cap stands for infinity: see klom_over_null"


def _left_out(u: np.ndarray, r: np.ndarray, options: _null.Options, **bins: Any) -> np.ndarray:
    """The divergence of all models, then leaving out each group: float64 [1 + groups, samples]."""
    return _null.replicated(lambda a, b: klom.divergence(margin=a, reference=b, **bins), u, r, options)


def _mean(per_sample: np.ndarray, note: str) -> Estimate:
    return jackknife.estimate(
        per_sample=per_sample[:, None], combine=lambda x: x, n=per_sample.shape[1], note=note, bounds=(0.0, np.inf)
    )
