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
MEMORY = ("extraction_strength", "exact_memorization", "forget_Q_A_PARA_Prob", "forget_truth_ratio")
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
DRAWS = 1000

#: Name of a number of one model → its value and that in each bootstrap draw of samples, float64 [1 + draws].
Values = dict[str, np.ndarray]


def of(group: Group) -> dict[Model, Values]:
    """Compute OpenUnlearning's memorisation, its utility and the AUC of each attack for every model of a group.

    Return model → name → float64 [1 + draws], the value and its bootstrap draws over samples. A name is
    missing if the model's log does not contain what it is computed from. Return {} unless all logs have the probability
    of paraphrased answers. Models are compared on the samples that all of them have.
    """
    models = group.models
    if not models or not all(f"{FORGET}_Q_A_PARA_Prob" in model.readings for model in models):
        return {}
    rng = np.random.default_rng(0)
    # The samples that attacks score on all models; none if a model has no scores.
    forget, heldout = (
        _in_all(np.array(model.ids)[getattr(model, side)] if model.scores else [] for model in models)
        for side in (FORGET, HELDOUT)
    )
    questions = _with_all(models, MEMORY)  # forgotten samples, which need not be those that attacks score
    # All numbers on forgotten samples are computed from the same draws: how often each sample is drawn, float32
    # [1 + draws, samples].
    column = {sample: number for number, sample in enumerate(sorted({*forget, *questions}))}
    draws = _draws(rng, len(column))
    # Key of `UTILITY` → the samples on which its values are measured, and → the draws of those samples.
    others = {part: _with_all(models, names) for part, names in UTILITY.items()}
    draws_of = {part: _draws(rng, len(ids)) for part, ids in others.items()}
    draws_heldout = _draws(rng, len(heldout))
    # Of ``draws``, the columns of the samples with questions, and of those that attacks score.
    of_questions, of_forget = (draws[:, [column[sample] for sample in ids]] for ids in (questions, forget))
    values: dict[Model, Values] = {model: {} for model in models}
    for model, of_model in values.items():
        if questions:
            parts = [1 - _mean(_read(model, name, questions), of_questions) for name in MEMORY]
            of_model["memorization"] = _harmonic(parts)
        if all(others.values()):
            of_model["utility"] = _harmonic([
                _mean(_read(model, name, others[part]), draws_of[part]) for part in UTILITY for name in UTILITY[part]
            ])  # fmt: skip
            # A classifier of gibberish measures fluency, so its name has this word.
            fluency = next((name for name in model.readings if "gibberish" in name.lower()), "")
            if fluency and set(questions) <= set(model.readings[fluency].ids):
                fluent = _mean(_read(model, fluency, questions), of_questions)
                of_model["utility"] = _harmonic([of_model["utility"], fluent])
        if forget and heldout and all(name in model.scores for name in ATTACKS):
            row_of = {sample: row for row, sample in enumerate(model.ids)}
            sides = [[row_of[sample] for sample in side] for side in (forget, heldout)]
            for name in ATTACKS:
                member, outside = (model.scores[name][rows] for rows in sides)
                # The AUC of each draw is a mean over pairs of a forgotten sample (row) and a held-out one (column),
                # which count as often as both are drawn. A pair has 1 if the forgotten one scores higher, .5 in a tie.
                above = (member[:, None] > outside) + 0.5 * (member[:, None] == outside)
                total = of_forget.sum(1) * draws_heldout.sum(1)
                of_model[name] = ((of_forget @ above.astype(np.float32)) * draws_heldout).sum(1) / total
    return values


def rows(models: Sequence[Model], group: Group, values: dict[Model, Values]) -> list[dict[str, Any]]:
    """Return a row for each aggregate of OpenUnlearning, for one population of models, with the columns name, value,
    ci_low, ci_high, n and formula.

    The value is a mean over the n models, and the interval lies between the .025 and .975 quantiles of its draws.
    Privacy compares the AUC of each attack with its mean over retrained and control models, on the three scales of
    `PRIVACY`. ``models``: the population, such as all models of one method; ``group``: the models that it is compared
    with; ``values``: model → its values, from `of`. Aggregates that lack a value are left out.
    """
    of_models, retrained, full = (
        [values.get(run, {}) for run in runs] for runs in (models, (*group.retrain, *group.control), group.none)
    )
    # Name → float64 [models, draws + 1]; [0] selects the only name.
    parts = {name: drawn[0] for name in FORMULAS if (drawn := _population(of_models, (name,))) is not None}
    # Name → (formula, its values as in ``parts``).
    aggregates = {name: (FORMULAS[name], part) for name, part in parts.items()}
    attacks, reference, before = (_population(runs, ATTACKS) for runs in (of_models, retrained, full))
    if attacks is not None and reference is not None:
        reference = reference.mean(axis=1, keepdims=True)  # over models: [attacks, 1, draws + 1]
        scales = {"by_retrained": reference, "by_difference": np.ones(())}
        if before is not None:
            scales["by_full"] = np.abs(before.mean(axis=1, keepdims=True) - reference)
        for name, scale in scales.items():
            closeness = 1 - np.abs(attacks - reference) / np.where(scale > 0, scale, np.nan)
            private = _harmonic(list(np.clip(closeness, 0, 1)))
            formula = f"harmonic mean over {', '.join(ATTACKS)} of {PRIVACY[name]}, from 0 to 1"
            aggregates[f"privacy_{name}"] = formula, private
            if len(parts) == len(FORMULAS):
                overall = _harmonic([parts["memorization"], private, parts["utility"]])
                aggregates[f"overall_{name}"] = f"harmonic mean of memorization, privacy_{name} and utility", overall
    over = "samples and models" if len(models) > 1 else "samples, one model"
    # Mean over models, float64 [draws + 1]: the value itself, then its bootstrap draws.
    means = {name: (formula, drawn.mean(axis=0)) for name, (formula, drawn) in sorted(aggregates.items())}
    return [
        {"name": name, "value": float(drawn[0]), "ci_low": float(np.nanquantile(drawn[1:], 0.025)),
         "ci_high": float(np.nanquantile(drawn[1:], 0.975)), "n": len(models),
         "formula": f"{formula}; interval over {over}"}
        for name, (formula, drawn) in means.items() if np.isfinite(drawn[0])
    ]  # fmt: skip


def _population(models: Sequence[Values], names: Sequence[str]) -> np.ndarray | None:
    """Return the values ``names`` of a population under each bootstrap draw of its models, float64 [names, models,
    draws + 1]: the models in the first draw are the population itself. None if a model lacks one.

    ``models``: the values of each model. The seed is the number of models, so that populations of one size, such as two
    methods, have the same draws.
    """
    if not models or not all(name in values for values in models for name in names):
        return None
    stacked = np.stack([[values[name] for values in models] for name in names])
    chosen = np.random.default_rng(len(models)).integers(len(models), size=(len(models), DRAWS))
    chosen = np.concatenate([np.arange(len(models))[:, None], chosen], axis=1)
    # In each draw, the values of the chosen models under the same draw of samples (the last axis of ``stacked``).
    return np.take_along_axis(stacked, np.broadcast_to(chosen, stacked.shape), axis=1)


def _draws(rng: np.random.Generator, samples: int) -> np.ndarray:
    """Return how often each bootstrap draw contains each sample, float32 [draws + 1, samples]; once each in the first
    draw."""
    if not samples:
        return np.ones((DRAWS + 1, 0), np.float32)
    counts = rng.multinomial(samples, np.full(samples, 1 / samples), size=DRAWS)
    return np.concatenate([np.ones((1, samples)), counts]).astype(np.float32)


def _mean(value: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the mean of ``value`` [samples] under each row of ``weight`` [draws, samples]."""
    return np.asarray((weight @ value) / weight.sum(axis=1))


def _harmonic(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the harmonic mean along the parts; 0 where a part is at most 0."""
    stacked = np.stack(parts)
    with np.errstate(divide="ignore"):
        return np.asarray(len(parts) / (1 / np.maximum(stacked, 0)).sum(axis=0))


def _with_all(models: Sequence[Model], names: Sequence[str]) -> list[str]:
    """Return the samples for which all models have all values ``names``, sorted; [] if a model lacks one."""
    return _in_all(model.readings[name].ids if name in model.readings else () for model in models for name in names)


def _in_all(samples: Iterable[Iterable[str]]) -> list[str]:
    """Return the samples that are in every one of several lists, sorted."""
    return sorted(set.intersection(*map(set, samples)))


def _read(model: Model, name: str, samples: Sequence[str]) -> np.ndarray:
    """Return a model's value for each of ``samples``. The truth ratio, which logs give as wrong over right, becomes the
    share of the right answer."""
    reading = model.readings[name]
    # Its reading may hold min(r, 1/r) instead of the ratio r; ``raw`` has r itself, for the same samples.
    value = reading.value if name != "forget_truth_ratio" else 1 / (1 + np.asarray(model.raw[name]))
    by_sample = dict(zip(reading.ids, value.tolist(), strict=True))
    return np.array([by_sample[sample] for sample in samples])
