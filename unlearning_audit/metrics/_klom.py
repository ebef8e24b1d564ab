"""KLOM of unlearned and of retrained models against other retrained models, with intervals from leaving out groups of
models."""

from typing import Any

import numpy as np

from unlearning_audit.metrics import DecisionRule, Effect, Row, _null, noted, single, stats, table
from unlearning_audit.stats import Estimate, jackknife, klom

#: The verdict uses few bins, none of them nearly empty, because the published twenty show little about thirty models.
DECIDING = {"bins": 5, "least": 0.01}

#: The fewest models of each kind.
FEWEST = 3

#: A mean is dominated by its cap if more than this share of it comes from empty bins.
CAPPED = 0.5

#: φ (logit-scaled confidence, float64 [models, samples]) of the audited models, of the retrained models they are
#: compared with, and of other retrained models; a note on how many there are.
_Compared = tuple[np.ndarray, np.ndarray, np.ndarray, str]

#: KLOM of unlearned models minus that of retrained ones is 0 if the method is retraining.
RULE = DecisionRule(1, "klom", ideal=0.0, two_sided=False, units="groups of models", coarse=True, draw=False)


def rows(kinds: _null.Kinds, options: _null.Options) -> list[Row]:
    """Return rows of KLOM, which says for each sample how far the φ (log-odds of the label's probability) of unlearned
    models lie from those of retrained ones; [] for fewer than `FEWEST` models of a kind. ``kinds``: φ of unlearned, of
    retrained and of further retrained models or None, float64 [models, samples] each.

    The first rows have the published bins: mean ("klom") and 95th percentile ("klom_p95") over samples, and the mean of
    retrained against retrained models ("klom_null"). These rows take no more models than half of the retrained ones,
    because retraining itself is evaluated with so many. The interval of the percentile is over samples, because leaving
    models out moves single samples more than other models would.

    The numbers of the verdict follow, with few bins and from as many models as there are: it rests on "klom_over_null",
    the difference of "klom_coarse" and "klom_coarse_null".
    """
    limited, all_models = compared(kinds, halves=True), compared(kinds)
    if limited is None or all_models is None:  # the limit alone never makes models too few
        return []
    audited, reference, control, note = limited
    published = {}
    for name, phi in (("klom", audited), ("klom_null", control)):
        per_sample = _klom_without_groups(phi, reference, options)  # row 0: from all models
        published[name] = jackknife_mean(per_sample, note + _note_on_empty_bins(phi, reference, per_sample[0]))
    tail = stats.quantile_interval(values=klom.divergence(margin=audited, reference=reference), share=0.95)
    published["klom_p95"] = noted(tail, note, "interval over samples")
    # The numbers of the verdict take all models, and so does their note.
    every_audited, _reference, _control, note_on_all = all_models
    coarse, n = _coarse_klom(all_models, options), audited.shape[1]
    deciding = {
        "klom_coarse": jackknife_mean(coarse[:, 0], note_on_all),
        "klom_coarse_null": jackknife_mean(coarse[:, 1], note_on_all),
        "klom_over_null": jackknife.estimate(per_sample=coarse, combine=np.subtract, n=n, note=note_on_all),
    }
    return table(published, models=len(audited)) + table(deciding, models=len(every_audited))


def effects(kinds: _null.Kinds, index: np.ndarray, options: _null.Options) -> dict[str, Effect]:
    """Return "klom" → KLOM of unlearned models minus that of retrained ones, both against other retrained models, as an
    effect: a value for each group of models, which a jackknife leaves out together, and the influence of each sample.

    {} for fewer than `FEWEST` models of a kind (or of a half of the retrained ones, if there are no further ones), for
    models that are too few to be left out in groups, or for a single sample.

    Parameters
    ----------
    kinds
        φ of unlearned and of retrained models, and of further retrained models or None, float64 [models, samples] each.
    index
        int64 [samples]: the numbers of the samples.
    """
    models = compared(kinds)
    if models is None:
        return {}
    coarse = _coarse_klom(models, options)
    if len(coarse) == 1 or coarse.shape[-1] < 2:
        return {}
    value, influence = jackknife.group_values(per_sample=coarse, combine=np.subtract)
    return {"klom": single(value=value, influence=influence, unit=np.arange(len(value)), index=index, rule=RULE)}


def _coarse_klom(models: _Compared, options: _null.Options) -> np.ndarray:
    """Return the KLOM of unlearned and of retrained models, both against other retrained models, in the few bins on
    which verdicts rest: float64 [1 + groups, 2, samples], from all models, then without each group of them."""
    audited, reference, control, _note = models
    return np.stack([_klom_without_groups(phi, reference, options, **DECIDING) for phi in (audited, control)], axis=1)


def compared(kinds: _null.Kinds, *, halves: bool = False) -> _Compared | None:
    """Return φ, float64 [models, samples], of equally many models of three kinds, and a note on how many these are;
    None if fewer than `FEWEST` models of each kind could be taken.

    The kinds are unlearned models, retrained models that serve as the reference, and further retrained models, whose
    KLOM is the null.

    Parameters
    ----------
    kinds
        φ of unlearned, of retrained and of further retrained models. If there are no further retrained models (None),
        the retrained models are divided into halves, the second of which serves as further ones. Retraining itself is
        always evaluated like that.
    halves
        Take no more models than half of the retrained ones, so that the numbers of methods and of retraining are
        comparable. Without effect if half are fewer than `FEWEST`, or if the retrained models are halved anyway.
    """
    unlearned, retrained, independent = kinds
    if independent is None:
        models = min(len(unlearned), len(retrained) // 2)
        reference, control = retrained[:models], retrained[models : 2 * models]
        how = "halves of the retrained models"
    else:
        fewer = min(len(retrained), len(independent))
        limit = fewer // 2 if halves and fewer // 2 >= FEWEST else fewer
        models = min(len(unlearned), limit)
        reference, control = retrained[:models], independent[:models]
        how = "an independent population"
    if models < FEWEST:
        return None
    return unlearned[:models], reference, control, f"{models} models of each kind; null from {how}"


def _note_on_empty_bins(phi: np.ndarray, reference: np.ndarray, per_sample: np.ndarray) -> str:
    """Return a note if most of the mean KLOM comes from bins without a model, whose effect is capped; "" if not.

    Parameters
    ----------
    phi, reference
        float64 [models, samples]: φ of the models, and of the models that they are compared with.
    per_sample
        float64 [samples]: the KLOM of each sample between the two.
    """
    share = float(klom.of_empty_bins(margin=phi, reference=reference).mean() / max(per_sample.mean(), klom.LEAST))
    if share <= CAPPED:
        return ""
    return f"; {share:.0%} of it comes from bins without a model, where a cap stands for infinity: see klom_over_null"


def _klom_without_groups(phi: np.ndarray, reference: np.ndarray, options: _null.Options, **bins: Any) -> np.ndarray:
    """Return the KLOM of each sample between models with φ ``phi`` and those that they are compared with, whose φ is
    ``reference``: from all models, then without each group of them, float64 [1 + groups, samples].

    Parameters
    ----------
    phi, reference
        float64 [models, samples].
    bins
        ``bins``, how many there are (20 if not given), and ``least``, the share that each has at least (1e-5).
    """
    return _null.without_groups(lambda a, b: klom.divergence(margin=a, reference=b, **bins), phi, reference, options)


def jackknife_mean(per_sample: np.ndarray, note: str, high: float = np.inf) -> Estimate:
    """Return the mean over samples with its jackknife interval, whose limits are clipped to [0, ``high``]. With fewer
    than two groups, the interval is over samples only, and the note says so.

    Parameters
    ----------
    per_sample
        float64 [1 + groups, samples]: each sample's number from all models, then without each group of models.
    """
    n = per_sample.shape[1]
    return jackknife.estimate(per_sample=per_sample[:, None], combine=lambda x: x, n=n, note=note, bounds=(0.0, high))
