"""KLOM of unlearned against retrained models, with groups of models left out, beside that of retrained ones."""

from dataclasses import replace
from typing import Any

import numpy as np

from unlearning_audit import stats
from unlearning_audit.artifacts.contributions import Contribution, Standard, single
from unlearning_audit.artifacts.rows import Row
from unlearning_audit.metrics import _null, row
from unlearning_audit.stats import Estimate, jackknife, klom, pseudo

#: What decides has few bins, none of them nearly empty: the published twenty say little about thirty models.
DECIDING = {"bins": 5, "least": 0.01}

STANDARD = Standard(0.0, 1, "klom", far=False, units="groups of models", coarse=True, draw=False)


def rows(u: np.ndarray, r: np.ndarray, independent: np.ndarray | None, options: _null.Rules) -> list[Row]:
    """Mean and 95th percentile over samples with the published bins, and the mean of retrained against retrained. The
    interval of the percentile is over samples: leaving models out moves single samples more than other models would."""
    both = _sides(u, r, independent)
    if both is None:
        return []
    audited, null, models, note = both
    per_sample = klom.divergence(margin=audited, reference=null[0])
    mean = _mean(_left_out(audited, null[0], options), note)
    tail = stats.quantile_interval(values=per_sample, share=0.95)
    tail = replace(tail, note="; ".join(filter(None, (note, "interval over samples", tail.note))))
    quantities = [("klom", mean), ("klom_p95", tail), ("klom_null", _mean(_left_out(null[1], null[0], options), note))]
    return [row(metric=name, models=models, estimate=estimate) for name, estimate in quantities]


def contributions(
    u: np.ndarray, r: np.ndarray, independent: np.ndarray | None, index: np.ndarray, options: _null.Rules
) -> dict[str, Contribution]:
    """How much further than retrained models unlearned ones are from other retrained ones, as groups and samples add
    to it; none for fewer than three models on a side."""
    both = _sides(u, r, independent)
    if both is None:
        return {}
    audited, (reference, control), *_ = both
    pair = [_left_out(side, reference, options, **DECIDING) for side in (audited, control)]
    if len(pair[0]) < 3 or pair[0].shape[1] < 2:
        return {}
    value, influence = pseudo.of_means(per_sample=np.stack(pair, axis=1), combine=lambda top, null: top - null)
    unit = np.arange(len(value))
    return {"klom": single(value=value, influence=influence, unit=unit, index=index, standard=STANDARD)}


def _sides(
    u: np.ndarray, r: np.ndarray, independent: np.ndarray | None
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], int, str] | None:
    """The models, the retrained ones they are held against and others, as many of each; None if they are too few."""
    u, r = np.asarray(u, np.float64), np.asarray(r, np.float64)
    if independent is None:
        models = min(len(u), len(r) // 2)
        reference, control = r[:models], r[models : 2 * models]
        how = "halves of the retrained models"
    else:
        population = np.asarray(independent, np.float64)
        models = min(len(u), len(r), len(population))
        reference, control = r[:models], population[:models]
        how = "an independent population"
    if models < 3:
        return None
    return u[:models], (reference, control), models, f"{models} models of each kind; null from {how}"


def _left_out(u: np.ndarray, r: np.ndarray, options: _null.Rules, **bins: Any) -> np.ndarray:
    """The divergence of all models, then leaving out each group: float64 [1 + groups, samples]."""
    return _null.replicated(lambda a, b: klom.divergence(margin=a, reference=b, **bins), u, r, options)


def _mean(per_sample: np.ndarray, note: str) -> Estimate:
    return jackknife.estimate(
        per_sample=per_sample[:, None], combine=lambda x: x, n=per_sample.shape[1], note=note, bounds=(0.0, np.inf)
    )
