"""The aggregates that OpenUnlearning prints of a model (Dorna et al. 2025), with intervals over samples and models.

The authors published no code for them, and existing tools compute the privacy part in three ways. All three are
computed here.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from unlearning_audit.readers._groups import Group
from unlearning_audit.readers._model import FORGET, HELDOUT, Model

#: Memorisation is the harmonic mean of 1 minus each of these values on the forget set. The truth ratio is used as the
#: share of the right answer, right / (right + wrong).
MEMORISATION = ("extraction_strength", "exact_memorization", "forget_Q_A_PARA_Prob", "forget_truth_ratio")
#: The attacks by whose AUCs privacy is measured.
ATTACKS = ("loss", "zlib", "min_k", "min_k_plus_plus")
#: Utility is the harmonic mean of these values, listed by the questions on which they are measured.
UTILITY = {
    "retain": ("retain_Q_A_Prob", "retain_Q_A_ROUGE", "retain_Truth_Ratio"),
    "ra": ("ra_Q_A_Prob_normalised", "ra_Q_A_ROUGE", "ra_Truth_Ratio"),
    "wf": ("wf_Q_A_Prob_normalised", "wf_Q_A_ROUGE", "wf_Truth_Ratio"),
}
#: Name of a privacy score → its formula; d is the difference between a model's AUC and that of retrained models.
PRIVACY = {
    "by_full": "1 − |d| / |AUC of the full model − AUC of retrained models|",
    "by_retrained": "1 − |d| / AUC of retrained models",
    "by_difference": "1 − |d|",
}
FORMULAS = {
    "memorization": "harmonic mean of 1 − extraction strength, 1 − exact memorisation, 1 − probability of the "
                    "paraphrased answer and 1 − truth ratio (right / (right + wrong))",
    "utility": "harmonic mean of probability, ROUGE and truth ratio of three parts, and of that and fluency, where the "
               "log has it",
}  # fmt: skip
#: The number of bootstrap draws.
DRAWS = 1000

#: Name of a number of one model → its value and that in each bootstrap draw of samples, float64 [1 + draws].
Values = dict[str, np.ndarray]


def of_models(group: Group) -> dict[Model, Values]:
    """Compute OpenUnlearning's memorisation, its utility and the AUC of each attack for every model of a group.

    Return model → name → float64 [1 + draws], the value and its bootstrap draws over samples. A name is missing if the
    model's log does not contain what the value is computed from. Return {} unless all logs have the probability of
    paraphrased answers, by which logs of OpenUnlearning are recognised. Models are compared on the samples that all of
    them have.
    """
    models = group.models
    if not models or not all(f"{FORGET}_Q_A_PARA_Prob" in model.readings for model in models):
        return {}
    rng = np.random.default_rng(0)
    # The samples that attacks score on all models; none if a model has no scores.
    forget, heldout = (
        _in_all(np.array(model.ids)[getattr(model, side)] if model.scores else [] for model in models)
        for side in (FORGET, HELDOUT)  # fields of a model with these names are masks of its samples
    )
    questions = _samples_with_all(models, MEMORISATION)  # forgotten samples, not always those that attacks score
    # How often each bootstrap draw contains each sample, float32 [1 + draws, samples]. All numbers on forgotten samples
    # are computed from the same draws, of which each number uses the columns of its samples.
    column = {sample: number for number, sample in enumerate(sorted({*forget, *questions}))}
    draws = _draws(rng, len(column))
    others = {part: _samples_with_all(models, names) for part, names in UTILITY.items()}
    draws_of = {part: _draws(rng, len(ids)) for part, ids in others.items()}
    draws_heldout = _draws(rng, len(heldout))
    draws_questions, draws_forget = (draws[:, [column[sample] for sample in ids]] for ids in (questions, forget))
    values: dict[Model, Values] = {model: {} for model in models}
    for model, of_model in values.items():
        if questions:
            forgotten = [1 - _mean(_values_on(model, name, questions), draws_questions) for name in MEMORISATION]
            of_model["memorization"] = _harmonic_mean(forgotten)
        if all(others.values()):
            of_model["utility"] = _harmonic_mean([
                _mean(_values_on(model, name, others[part]), draws_of[part])
                for part in UTILITY for name in UTILITY[part]
            ])  # fmt: skip
            # A classifier of gibberish measures fluency, so its name has this word.
            fluency = next((name for name in model.readings if "gibberish" in name.lower()), "")
            if fluency and set(questions) <= set(model.readings[fluency].ids):
                fluent = _mean(_values_on(model, fluency, questions), draws_questions)
                of_model["utility"] = _harmonic_mean([of_model["utility"], fluent])
        if forget and heldout and all(name in model.scores for name in ATTACKS):
            row_of = {sample: row for row, sample in enumerate(model.ids)}
            sides = [[row_of[sample] for sample in side] for side in (forget, heldout)]
            pairs = draws_forget.sum(1) * draws_heldout.sum(1)
            for name in ATTACKS:
                # The AUC in each draw is the mean over all pairs of a forgotten and a held-out sample, of 1 if the
                # forgotten one scores higher, .5 in a tie and 0 if it scores lower. A pair counts as often as a draw
                # contains its forgotten sample, times how often it contains its held-out sample.
                of_forget, of_heldout = (model.scores[name][rows] for rows in sides)
                above = (of_forget[:, None] > of_heldout) + 0.5 * (of_forget[:, None] == of_heldout)
                of_model[name] = ((draws_forget @ above.astype(np.float32)) * draws_heldout).sum(1) / pairs
    return values


def rows(models: Sequence[Model], group: Group, values: dict[Model, Values]) -> list[dict[str, Any]]:
    """Return a row for each aggregate of OpenUnlearning, for one population of models, with the columns name, value,
    ci_low, ci_high, n and formula.

    An aggregate is left out if a number is missing from which it is computed, or if it is NaN because the scale of a
    privacy score is 0. The value is a mean over the n models, and the interval goes from the .025 to the .975 quantile
    of the value's bootstrap draws, without draws that are NaN.

    Parameters
    ----------
    models
        The population, such as all models of one method.
    group
        The group that the population belongs to, with the models that it is compared with.
    values
        Model → name of a number → its value and bootstrap draws over samples, float64 [1 + draws].
    """
    of_population = [values.get(model, {}) for model in models]
    # Name → float64 [models, 1 + draws]; [0] selects the only name of the first dimension.
    parts = {name: drawn[0] for name in FORMULAS if (drawn := _draws_of_models(of_population, (name,))) is not None}
    # Name → (formula, its values as in ``parts``).
    aggregates = {name: (FORMULAS[name], part) for name, part in parts.items()}
    for name, private in _privacy(of_population, group, values).items():
        formula = f"harmonic mean over {', '.join(ATTACKS)} of {PRIVACY[name]}, from 0 to 1"
        aggregates[f"privacy_{name}"] = formula, private
        if len(parts) == len(FORMULAS):
            overall = _harmonic_mean([parts["memorization"], private, parts["utility"]])
            aggregates[f"overall_{name}"] = f"harmonic mean of memorization, privacy_{name} and utility", overall
    over = "samples and models" if len(models) > 1 else "samples, one model"
    # Mean over models, float64 [1 + draws]: the value itself, then its bootstrap draws.
    means = {name: (formula, drawn.mean(axis=0)) for name, (formula, drawn) in sorted(aggregates.items())}
    return [
        {"name": name, "value": float(drawn[0]), "ci_low": float(np.nanquantile(drawn[1:], 0.025)),
         "ci_high": float(np.nanquantile(drawn[1:], 0.975)), "n": len(models),
         "formula": f"{formula}; interval over {over}"}
        for name, (formula, drawn) in means.items() if np.isfinite(drawn[0])
    ]  # fmt: skip


def _privacy(of_population: Sequence[Values], group: Group, values: dict[Model, Values]) -> dict[str, np.ndarray]:
    """Return key of `PRIVACY` → the privacy score of each model of a population, float64 [models, 1 + draws]: first of
    the population itself, then of its bootstrap draws, each of as many models.

    The score is the harmonic mean over attacks of 1 − |d| / scale, limited to 0 to 1: d is the difference between the
    attack's AUC on the model and the mean of that AUC over all retrained models, the control included. The key says
    which scale is used; a scale of 0 gives NaN. Return {} if the population or the retrained models lack an attack. If
    models before unlearning lack an attack, the score "by_full", whose scale needs them, is left out.
    """
    retrained, full = ([values.get(run, {}) for run in runs] for runs in ((*group.retrain, *group.control), group.none))
    # Each is [attacks, models, 1 + draws]; None if an attack is missing.
    attacks, reference, before = (_draws_of_models(runs, ATTACKS) for runs in (of_population, retrained, full))
    if attacks is None or reference is None:
        return {}
    reference = reference.mean(axis=1, keepdims=True)  # over models: [attacks, 1, 1 + draws]
    scales = {"by_retrained": reference, "by_difference": np.ones(())}
    if before is not None:
        scales["by_full"] = np.abs(before.mean(axis=1, keepdims=True) - reference)
    distance = np.abs(attacks - reference)
    closeness = {name: 1 - distance / np.where(scale > 0, scale, np.nan) for name, scale in scales.items()}
    return {name: _harmonic_mean(list(np.clip(close, 0, 1))) for name, close in closeness.items()}


def _draws_of_models(models: Sequence[Values], names: Sequence[str]) -> np.ndarray | None:
    """Return the values ``names`` of models drawn from a population, float64 [names, models, 1 + draws]: first of the
    population itself, then of its bootstrap draws, each of as many models. None if a model lacks one of the values, or
    if there is no model.

    ``models``: the values of each model. The seed is the number of models, so that populations of one size, such as two
    methods, have the same draws.
    """
    if not models or not all(name in values for values in models for name in names):
        return None
    stacked = np.stack([[values[name] for values in models] for name in names])  # [names, models, 1 + draws]
    chosen = np.random.default_rng(len(models)).integers(len(models), size=(len(models), DRAWS))
    chosen = np.concatenate([np.arange(len(models))[:, None], chosen], axis=1)
    # Each draw of models is combined with the draw of samples in the same place of the last axis.
    return np.take_along_axis(stacked, np.broadcast_to(chosen, stacked.shape), axis=1)


def _draws(rng: np.random.Generator, samples: int) -> np.ndarray:
    """Return how often each bootstrap draw contains each sample, float32 [draws + 1, samples]. The first draw contains
    every sample once, so it gives the value itself."""
    if not samples:
        return np.ones((DRAWS + 1, 0), np.float32)
    counts = rng.multinomial(samples, np.full(samples, 1 / samples), size=DRAWS)
    return np.concatenate([np.ones((1, samples)), counts]).astype(np.float32)


def _mean(value: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weighted mean of ``value`` [samples] for each row of ``weight`` [draws, samples]."""
    return np.asarray((weight @ value) / weight.sum(axis=1))


def _harmonic_mean(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the harmonic mean of several arrays, elementwise; 0 where one of them is 0 or negative."""
    stacked = np.stack(parts)
    with np.errstate(divide="ignore"):
        return np.asarray(len(parts) / (1 / np.maximum(stacked, 0)).sum(axis=0))


def _samples_with_all(models: Sequence[Model], names: Sequence[str]) -> list[str]:
    """Return the samples for which all models have all readings ``names``, sorted; [] if a model lacks a reading."""
    return _in_all(model.readings[name].ids if name in model.readings else () for model in models for name in names)


def _in_all(samples: Iterable[Iterable[str]]) -> list[str]:
    """Return the samples that are in every one of several lists, sorted."""
    return sorted(set.intersection(*map(set, samples)))


def _values_on(model: Model, name: str, samples: Sequence[str]) -> np.ndarray:
    """Return the values of a model's reading ``name`` on ``samples``, float64 [samples]. In place of the truth ratio of
    forgotten samples, wrong over right, it is the share of the right answer, right / (right + wrong)."""
    reading = model.readings[name]
    # This reading may hold min(r, 1/r) instead of the truth ratio r; ``raw`` has r itself, for the same samples.
    value = reading.value if name != "forget_truth_ratio" else 1 / (1 + np.asarray(model.raw[name]))
    by_sample = dict(zip(reading.ids, value.tolist(), strict=True))
    return np.array([by_sample[sample] for sample in samples])
