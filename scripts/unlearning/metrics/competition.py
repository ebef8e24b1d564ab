"""The score of the NeurIPS 2023 unlearning competition, beside what perfect unlearning would score (2023)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from unlearning import stats
from unlearning.adversary.case import Case
from unlearning.artifacts.contributions import Contribution, Standard, single
from unlearning.metrics import row
from unlearning.metrics._epsilon import check_phi, epsilons, points
from unlearning.metrics._epsilon_bound import epsilon_bounds
from unlearning.plugins.declarations import Column, Comparison, Quantity
from unlearning.plugins.settings import Settings
from unlearning.randomness.keyed import generator
from unlearning.stats import Estimate, jackknife, pseudo

HALVES_NEED = 8  # models; fewer leave no two models on a side once a group is left out


QUANTITIES = (
    Quantity(
        "forgetting_quality_over_null", "F / F₀", "higher", primary=True, ideal=1.0,
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
    *(Quantity(name) for name in ("retain_accuracy_ratio", "test_accuracy_ratio", "time_ratio", "epsilon_mean",
                                  "epsilon_at_cap_share", "epsilon_lower_bound_mean", "epsilon_lower_bound_max")),
)  # fmt: skip


class Options(Settings):
    """``rule``: ``exact`` thresholds or the published ``grid``; ``delta`` of equation (1); ``buffer``, ``per_unit`` and
    ``cap`` of the published box; ``groups`` of models for the intervals; ``splits`` of the retrained models into
    halves for the null; ``confidence`` of the lower bounds; ``time_limit``: the share of the retraining time
    above which the competition rejects a method.
    """

    rule: Literal["exact", "grid"] = "exact"
    delta: float = Field(default=1e-5, ge=0, lt=1)
    buffer: float = Field(default=2.0, gt=0)
    per_unit: int = Field(default=100, ge=1)
    cap: float = Field(default=50.0, gt=0)
    groups: int = Field(default=16, ge=2)
    splits: int = Field(default=2, ge=1)
    confidence: float = Field(default=0.95, gt=0, lt=1)
    time_limit: float = Field(default=0.2, gt=0)


@dataclass(frozen=True)
class Models:
    """What the score reads of one population.

    ``phi`` float [models, forget samples]; ``retain_accuracy`` and ``test_accuracy`` float [models]; ``seconds``
    float [models], what one model cost to unlearn or to retrain. All but phi may be None.
    """

    phi: np.ndarray
    retain_accuracy: np.ndarray | None = None
    test_accuracy: np.ndarray | None = None
    seconds: np.ndarray | None = None


def rows(case: Case, settings: dict) -> list[dict]:
    """`evaluate` on a case. Retraining itself is compared with the independent retrained population.

    Raises ValueError if retraining has no control to be compared with.
    """
    unlearned, retrained, independent = populations(case)
    return evaluate(
        unlearned=unlearned,
        retrained=retrained,
        independent=independent,
        options=Options(**settings["metrics"]["competition"]),
        rng=generator(settings["seed"], "competition"),
    )


#: Perfect unlearning scores its own null.
DECIDES = {
    "forgetting_quality_over_null": Standard(
        1.0, -1, "forgetting_quality", scale="ratio", far=False, units="groups of models"
    )
}


def contributions(case: Case, settings: dict) -> dict[str, Contribution]:
    """F/F₀ in what every group of models and every forget sample adds to it."""
    forget = np.flatnonzero(case.membership.forget[0])
    options = Options(**settings["metrics"]["competition"])
    rng = generator(settings["seed"], "competition")
    return over_null(*(m and m.phi for m in populations(case)), forget, options, rng)


def over_null(u, r, independent, index: np.ndarray, options: Options, rng) -> dict[str, Contribution]:
    """`contributions` from phi [models, forget samples] of each population; none where the models are too few to be
    left out in groups, or F₀ is 0."""
    u, r = np.asarray(u, np.float64), np.asarray(r, np.float64)
    if independent is None and min(len(u), len(r)) < HALVES_NEED:
        return {}
    h = points(_replicated(_epsilons(options), u, r, options), models=min(len(u), len(r)))
    h, null, _, _ = _with_null(u, r, independent, h, options, rng)
    if len(h) < 3 or h.shape[1] < 2 or not null.any(axis=1).all():
        return {}
    value, influence = pseudo.of_means(per_sample=np.stack([h, null], axis=1), combine=lambda f, f0: f / f0)
    (metric, standard), groups = next(iter(DECIDES.items())), np.arange(len(value))
    return {metric: single(value=value, influence=influence, unit=groups, index=index, standard=standard)}


def populations(case: Case) -> "tuple[Models, Models, Models | None]":
    """What is compared: the unlearned models, retrained ones, and independent retrained ones where there are any."""
    reference, independent = case.retrained, case.control
    if case.unlearned_files == case.retrained_files:
        if independent is None:
            raise ValueError("metric competition cannot compare retrain with itself; set controls: true")
        reference, independent = independent, None
    elif case.unlearned_files == case.control_files:
        independent = None
    return (
        population(case, case.unlearned),
        population(case, reference),
        None if independent is None else population(case, independent),
    )


def population(case: Case, logits: np.ndarray) -> Models:
    """What the score reads of ``logits`` float32 [models, samples, classes]."""
    member = case.membership
    forget = np.flatnonzero(member.forget[0])
    right = logits.argmax(-1) == case.labels
    clean, test = logits.argmax(-1) == case.data.y_clean, case.data.part == 1
    return Models(
        phi=stats.phi(logits=logits[:, forget], y=case.data.y[forget]),
        retain_accuracy=np.array([one[mask].mean() for one, mask in zip(right, member.retain, strict=True)]),
        test_accuracy=clean[:, test].mean(1) if test.any() else None,
    )


def evaluate(
    *,
    unlearned: Models,
    retrained: Models,
    independent: Models | None = None,
    options: Options,
    rng: np.random.Generator,
) -> list[dict]:
    """Tidy rows: ε, its lower bounds, F, the null F₀, F/F₀, accuracy ratios, time ratio and the final score.

    ``independent`` is a second population of retrained models that shares nothing with ``retrained``; F₀ then
    compares all of both. Without it F₀ compares random halves of ``retrained``, and F/F₀ divides an F of
    halves as large, because F depends on the number of models. The populations may differ in size; rates
    are taken over each, bins over the smaller. Raises ValueError as ``_epsilon.epsilons``.
    """
    check_phi(unlearned.phi, retrained.phi)
    u, r = (np.asarray(m.phi, np.float64) for m in (unlearned, retrained))
    samples = u.shape[1]
    models = min(len(u), len(r))
    setting = f"rule={options.rule};models={models}"
    counts = f"{len(u)} unlearned and {len(r)} retrained models"

    eps = _replicated(_epsilons(options), u, r, options)
    h = points(eps, models=models)
    rows = [
        row(metric="epsilon_mean", setting=setting, estimate=_mean(eps, counts, high=options.cap)),
        row(
            metric="epsilon_at_cap_share",
            setting=setting,
            estimate=stats.clopper_pearson(successes=int((eps[0] >= options.cap).sum()), n=samples),
        ),
        row(metric="forgetting_quality", setting=setting, estimate=_mean(h, counts, high=1.0)),
    ]
    rows += _null_rows(u, r, None if independent is None else independent.phi, h, options, rng)
    rows += _final_rows(unlearned, retrained, h, setting, options)
    return rows + _bound_rows(u, r, options, rng)


def _epsilons(options: Options):
    return lambda u, r: epsilons(
        unlearned=u,
        retrained=r,
        rule=options.rule,
        delta=options.delta,
        buffer=options.buffer,
        per_unit=options.per_unit,
        cap=options.cap,
    )


def _replicated(statistic, u: np.ndarray, r: np.ndarray, options: Options) -> np.ndarray:
    """``statistic(u, r)`` [samples] of all models, then without each group: float64 [1 + groups, samples]."""
    return np.stack([statistic(u[keep_u], r[keep_r]) for keep_u, keep_r in _kept(len(u), len(r), options)])


def _kept(unlearned: int, retrained: int, options: Options) -> list[tuple[np.ndarray, np.ndarray]]:
    """Which models stay, bool [unlearned] and [retrained]: all first, then without each group of both."""
    groups = min(options.groups, unlearned, retrained)
    sides = [jackknife.groups_of(n, groups=groups) for n in (unlearned, retrained)]
    if min(unlearned, retrained) < 3:
        groups = 0
    return [tuple(side != g for side in sides) for g in range(-1, groups)]


def _mean(per_sample: np.ndarray, note: str, *, high: float) -> Estimate:
    return jackknife.estimate(
        per_sample=per_sample[:, None], combine=lambda x: x, n=per_sample.shape[1], note=note, bounds=(0.0, high)
    )


def _null_rows(u, r, independent, h, options: Options, rng) -> list[dict]:
    """F₀ and F/F₀ with intervals, from two populations or from random halves."""
    if independent is None and min(len(u), len(r)) < HALVES_NEED:
        why = f"halves need {HALVES_NEED} models of each kind: train more, or a second retrained population"
        names = ("forgetting_quality_null", "forgetting_quality_over_null")
        return [row(metric=name, estimate=stats.empty(n=len(h[0]), note=why)) for name in names]
    h, null, models, how = _with_null(u, r, independent, h, options, rng)
    setting = f"rule={options.rule};models={models}"
    return [
        row(metric="forgetting_quality_null", setting=setting, estimate=_mean(null, how, high=1.0)),
        row(metric="forgetting_quality_over_null", setting=setting, estimate=_ratio(h, null, how)),
    ]


def _with_null(u, r, independent, h, options: Options, rng) -> tuple[np.ndarray, np.ndarray, int, str]:
    """H against retrained models and its null, [1 + groups, samples] each, from how many models, and how."""
    if independent is None:
        models = min(len(u), len(r)) // 2
        how = f"random halves, {models} models on each side, mean of {options.splits} splits"
        return *_halves(u, r, options, rng), models, how
    independent = np.asarray(independent, np.float64)
    check_phi(r, independent)
    models = min(len(r), len(independent))
    null = points(_replicated(_epsilons(options), r, independent, options), models=models)
    if len(null) != len(h):
        null, h = null[:1], h[:1]
    return h, null, models, f"{len(r)} retrained against {len(independent)} independently retrained models"


def _ratio(h: np.ndarray, null: np.ndarray, note: str) -> Estimate:
    if not null[0].any():
        return stats.empty(n=h.shape[1], note=f"F₀ is 0 ({note})")
    return jackknife.estimate(
        per_sample=np.stack([h, null], axis=1),
        combine=lambda f, f0: f / f0,
        n=h.shape[1],
        note=note,
        bounds=(0.0, np.inf),
    )


def _halves(u: np.ndarray, r: np.ndarray, options: Options, rng) -> tuple[np.ndarray, np.ndarray]:
    """H of unlearned against retrained halves, and of retrained against retrained: [1 + groups, samples] each."""
    epsilon = _epsilons(options)
    models = min(len(u), len(r)) // 2
    kept = _kept(len(u), len(r), options)
    totals = np.zeros((2, len(kept), u.shape[1]))
    for _ in range(options.splits):
        order_u, order_r = rng.permutation(len(u)), rng.permutation(len(r))
        for g, (keep_u, keep_r) in enumerate(kept):
            some_u = order_u[:models]
            left, right = order_r[:models], order_r[models : 2 * models]
            some_u, left, right = some_u[keep_u[some_u]], left[keep_r[left]], right[keep_r[right]]
            totals[0, g] += points(epsilon(u[some_u], r[left]), models=models)
            totals[1, g] += points(epsilon(r[left], r[right]), models=models)
    return tuple(totals / options.splits)


def _final_rows(unlearned: Models, retrained: Models, h, setting: str, options: Options) -> list[dict]:
    """RA and TA of unlearned over retrained models, the time ratio, and F · RA · TA."""
    kept = _kept(len(unlearned.phi), len(retrained.phi), options)
    n = min(len(unlearned.phi), len(retrained.phi))
    ratios, rows = {}, []
    for name in ("retain_accuracy", "test_accuracy"):
        of_u, of_r = getattr(unlearned, name), getattr(retrained, name)
        if of_u is None or of_r is None:
            estimate = stats.empty(n=n, note=f"no {name.replace('_', ' ')} was given")
        elif np.mean(of_r) == 0:
            estimate = stats.empty(n=n, note=f"the {name.replace('_', ' ')} of retrained models is 0")
        else:
            ratios[name] = np.array([of_u[keep_u].mean() / of_r[keep_r].mean() for keep_u, keep_r in kept])
            estimate = jackknife.estimate(
                per_sample=np.empty((len(kept), 0, 1)),
                per_model=ratios[name][:, None],
                combine=lambda ratio: ratio,
                n=n,
                bounds=(0.0, np.inf),
            )
        rows.append(row(metric=f"{name}_ratio", estimate=estimate))
    time, slow = _time(unlearned.seconds, retrained.seconds, options)
    if len(ratios) < 2:
        score = stats.empty(n=h.shape[1], note="the final score needs retain and test accuracy of both populations")
    else:
        score = jackknife.estimate(
            per_sample=h[:, None],
            per_model=np.stack(list(ratios.values()), axis=1),
            combine=lambda f, ra, ta: f * ra * ta,
            n=h.shape[1],
            note=slow,
            bounds=(0.0, np.inf),
        )
    return [*rows, row(metric="time_ratio", estimate=time), row(metric="score", setting=setting, estimate=score)]


def _time(unlearned, retrained, options: Options) -> tuple[Estimate, str]:
    """Seconds per unlearned over seconds per retrained model, and what the competition makes of it."""
    if unlearned is None or retrained is None:
        return stats.empty(n=0, note="no times were given"), "time limit not checked"
    kept = _kept(len(unlearned), len(retrained), options)
    ratio = np.array([[unlearned[keep_u].mean() / retrained[keep_r].mean()] for keep_u, keep_r in kept])
    limit = f"{options.time_limit:.0%} of the retraining time"
    slow = f"slower than {limit}: the competition rejects it" if ratio[0, 0] > options.time_limit else ""
    estimate = jackknife.estimate(
        per_sample=np.empty((len(kept), 0, 1)),
        per_model=ratio,
        combine=lambda x: x,
        n=min(len(unlearned), len(retrained)),
        note=slow,
        bounds=(0.0, np.inf),
    )
    return estimate, slow


def _bound_rows(u, r, options: Options, rng) -> list[dict]:
    """Equation (2): its mean over samples, and the largest with Bonferroni's correction over samples."""
    names = ("epsilon_lower_bound_mean", "epsilon_lower_bound_max")
    if min(len(u), len(r)) < 4:
        why = "a threshold chosen on half of the models needs four of each kind"
        return [row(metric=name, estimate=stats.empty(n=u.shape[1], note=why)) for name in names]
    first_u, first_r = (rng.permutation(len(x)) < len(x) // 2 for x in (u, r))
    samples = u.shape[1]

    def bounds(confidence: float) -> np.ndarray:
        return epsilon_bounds(
            unlearned=(u[first_u], u[~first_u]),
            retrained=(r[first_r], r[~first_r]),
            delta=options.delta,
            confidence=confidence,
        )

    how = f"threshold chosen on {first_u.sum()}, bounded on {(~first_u).sum()} models of each kind"
    mean = stats.mean_interval(values=bounds(options.confidence))
    mean = Estimate(mean.value, max(mean.low, 0.0), mean.high, mean.n, f"{how}; interval over samples")
    largest = float(bounds(1 - (1 - options.confidence) / samples).max())
    largest = Estimate(largest, largest, np.inf, samples, f"{how}; holds for all samples together; one-sided")
    setting = f"confidence={options.confidence:g}"
    return [row(metric=name, setting=setting, estimate=e) for name, e in zip(names, (mean, largest), strict=True)]
