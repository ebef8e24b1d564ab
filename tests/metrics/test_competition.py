"""Forgetting quality, its intervals and the final score against closed forms and simulations with known truth."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import _klom, _null, competition
from unlearning_audit.metrics._epsilon import epsilons, points
from unlearning_audit.stats import jackknife, paired

from held_answers import Held


def null_quality(models: int, sd: float, samples: int, rule: str = "exact", shift: float = 0.0) -> float:
    rng = np.random.default_rng(5)
    u, r = rng.normal(size=(2, models, samples)) * sd
    return points(epsilons(unlearned=u + shift * sd, retrained=r, rule=rule), models=models).mean()


@pytest.mark.slow
def test_perfect_unlearning_scores_a_fifth():
    # .18 to .21 for any N when phi varies, in a simulation of its own; 2,000 samples err by .006
    for models, sd in ((32, 1.5), (64, 1.5), (64, 4.0)):
        assert 0.17 < null_quality(models, sd, 2000) < 0.215
    # and less when it hardly varies: .058 exact, .085 on the grid at N = 256 (errors .006 here, .01 there)
    assert 0.035 < null_quality(256, 0.3, 400) < 0.08
    assert 0.06 < null_quality(256, 0.3, 150, rule="grid") < 0.125
    # a shift of one sd: .018 to .020 at N = 256
    assert 0.012 < null_quality(256, 1.5, 400, shift=1.0) < 0.03


def crossed_effects(rng, models: int, samples: int, sd: tuple[float, float, float]) -> np.ndarray:
    """a_m + b_s + e_ms, float64 [models, samples]."""
    of_models, of_samples, of_both = (
        s * rng.normal(size=shape) for s, shape in zip(sd, ((models, 1), (1, samples), (models, samples)), strict=True)
    )
    return of_models + of_samples + of_both


def share_allowed(share: float, repeats: int) -> float:
    """What a share of successes with this probability exceeds in nearly all simulations of so many repeats."""
    return share - 3.1 * math.sqrt(share * (1 - share) / repeats)


@pytest.mark.parametrize("sd", [(1.0, 0.5, 1.0), (0.0, 0.0, 1.0), (0.0, 1.0, 1.0)])
def test_jackknife_finds_the_variance_of_crossed_effects(sd):
    rng, models, samples, groups, repeats = np.random.default_rng(8), 32, 25, 16, 400
    truth = sd[0] ** 2 / models + sd[1] ** 2 / samples + sd[2] ** 2 / (models * samples)
    group = jackknife.groups_of(models, groups=groups)
    widths, hits = [], 0
    for _ in range(repeats):
        x = crossed_effects(rng, models, samples, sd)
        means = np.stack([x[group != g].mean(axis=0) for g in range(-1, groups)])
        estimate = jackknife.estimate(per_sample=means[:, None], combine=lambda m: m, n=samples)
        widths.append((estimate.high - estimate.low) ** 2)
        hits += estimate.low <= 0 <= estimate.high
    # the interval is ±t·√V with t between 1.96 and 2.2 here
    assert 0.85 < np.mean(widths) / (4 * 2.06**2 * truth) < 1.35
    assert hits / repeats > share_allowed(0.95, repeats)


#: Models that differ in how well they know all samples.
SKILL = (0.5, 0, math.sqrt(0.75))


def test_interval_of_forgetting_quality_covers():
    # what F estimates is its own mean for this number of models, taken here from many draws
    rng, models, repeats, hits = np.random.default_rng(10), 16, 80, 0
    truth, options = null_quality(models, 1.5, 6000), competition.Options(groups=8)
    for _ in range(repeats):
        u, r = (1.5 * crossed_effects(rng, models, 16, SKILL) for _ in range(2))
        epsilon = _null.replicated(_null.epsilons_of(options), u, r, options)
        estimate = _klom.mean(points(epsilon, models=models), "", high=1.0)
        hits += estimate.low <= truth <= estimate.high
    assert hits / repeats > share_allowed(0.95, repeats)


@pytest.mark.slow
def test_a_verdict_on_forgetting_quality_covers_and_is_no_wider_than_its_interval():
    """F/F₀ of retrained models is 1. Points jump as models are left out, which must not count twice: what a verdict
    rests on is as wide as the interval of the metric itself, not the two to three times of bias-corrected values."""
    rng, models, repeats, inside, widths = np.random.default_rng(13), 16, 60, 0, []
    options = competition.Options(groups=8)
    for _ in range(repeats):
        u, r, c = (1.5 * crossed_effects(rng, models, 16, SKILL) for _ in range(3))
        part = competition.over_null(u, r, c, np.arange(16), options, rng)["forgetting_quality_over_null"]
        read = paired.distances(value=part.value, influence=part.influence, unit=part.unit)
        sides = {"unlearned": u, "retrained": r, "independent": c}
        rows = competition.evaluate(
            **{name: competition.Models(phi) for name, phi in sides.items()}, options=options, rng=rng
        )
        (row,) = [row for row in rows if row.metric == "forgetting_quality_over_null"]
        inside += abs(read.value[0] - 1) <= read.half_widths()[0]
        widths.append((read.half_widths()[0], (row.ci_high - row.ci_low) / 2))
    assert inside / repeats >= share_allowed(0.94, repeats)
    verdict, metric = np.mean(widths, axis=0)
    assert verdict <= 1.2 * metric


def test_halves_are_of_one_size_and_share_no_model(monkeypatch):
    compared, options = [], competition.Options(groups=3, splits=2)

    def epsilon(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        compared.append((first[:, 0], second[:, 0]))
        return np.ones(1)

    monkeypatch.setattr(_null, "epsilons_of", lambda _: epsilon)
    u, r = -1 - np.arange(6.0)[:, None], np.arange(20.0)[:, None]
    _null._halves(u, r, options, np.random.default_rng(14))
    assert len(compared) == 2 * 2 * 4  # splits, both comparisons, all models and without each group
    assert all(max(len(first), len(second)) <= 3 and not set(first) & set(second) for first, second in compared)
    assert [(len(first), len(second)) for first, second in (*compared[:2], *compared[8:10])] == [(3, 3)] * 4
    assert all((first < 0).all() and (second >= 0).all() for first, second in compared[::2])
    assert all((first >= 0).all() and (second >= 0).all() for first, second in compared[1::2])


@pytest.mark.parametrize(("unlearned", "retrained", "groups"), [(8, 8, 2), (8, 100, 16), (40, 8, 3)])
def test_halves_keep_two_models_whatever_group_is_left_out(unlearned, retrained, groups):
    rng, options = np.random.default_rng(9), competition.Options(groups=groups)
    u, r = rng.normal(size=(unlearned, 3)), rng.normal(size=(retrained, 3))
    for seed in range(30):
        h, null = _null._halves(u, r, options, np.random.default_rng(seed))
        assert h.shape == null.shape == (1 + min(groups, unlearned, retrained), 3)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(4, 16, 16), (16, 16, 4), (12, 16, 16)])
def test_perfect_unlearning_scores_its_null_whatever_population_is_smaller(sizes):
    """F depends on the number of models, so that of fewer unlearned models is no measure for F₀ of more retrained."""
    rng, options, ratios = np.random.default_rng(sum(sizes)), competition.Options(groups=4), []
    for _ in range(12):
        of_samples = rng.normal(0, 2, 100)
        phi = [of_samples + rng.normal(size=(models, 100)) for models in sizes]
        sides = dict(zip(("unlearned", "retrained", "independent"), map(competition.Models, phi), strict=True))
        table = {row.metric: row for row in competition.evaluate(**sides, options=options, rng=rng)}
        ratios.append(table["forgetting_quality_over_null"])
        assert table["forgetting_quality_null"].models == min(sizes)
        assert ratios[-1].ci_low <= ratios[-1].value <= ratios[-1].ci_high
        assert competition.over_null(*phi, np.arange(100), options, rng)
    values = np.array([ratio.value for ratio in ratios])
    assert abs(values.mean() - 1) < 4 * values.std() / np.sqrt(len(values))


@pytest.mark.parametrize("models", [4, 5])
def test_the_share_at_the_cap_covers_where_models_move_all_samples_together(models):
    """Each model knows all samples better or worse than the others do; the truth is the mean of many draws."""
    rng, audits, shares = np.random.default_rng(17), 120, []
    masks = _null.subsets(models, models, competition.Options())
    for _ in range(audits):
        base = 2 * rng.normal(size=100)
        u, r = (base + shift + crossed_effects(rng, models, 100, (1, 0, 1)) for shift in (1.5, 0))
        at_cap = [epsilons(unlearned=u[a], retrained=r[b]) >= 50 for a, b in masks]
        shares.append(competition._share(np.array(at_cap)))
    truth = np.mean([share.value for share in shares])
    assert truth > 0.01
    assert np.mean([share.low <= truth <= share.high for share in shares]) >= share_allowed(0.95, audits)


def test_ratios_of_accuracies_and_the_score_cover_other_samples():
    """A method that is wrong on some samples in all of its models: which test samples were drawn decides as much as
    which models were. F is 1/2 on average; 200 audits of 16 models, 360 test and 500 retained samples."""
    rng, audits, models = np.random.default_rng(18), 200, 16
    inside = {"retain_accuracy_ratio": 0, "test_accuracy_ratio": 0, "score": 0}

    def right(samples: int) -> np.ndarray:
        """Right on 9 of 10 of the samples that are known, and the method on half of those that it loses."""
        known, lost = rng.random(samples) < 0.8, rng.random(samples) < 0.25
        kept = np.stack([1 - 0.5 * lost, np.ones(samples)])[:, None]
        return rng.random((2, models, samples)) < 0.9 * known * kept

    for _ in range(audits):
        u, r = (
            competition.Models(np.zeros((models, 30)), *sides) for sides in zip(right(500), right(360), strict=True)
        )
        h = np.broadcast_to(rng.choice([0.25, 0.75], 30), (models + 1, 30))
        for row in competition._final_rows(u, r, h, {}, competition.Options()):
            truth = 0.875 if row.metric != "score" else 0.5 * 0.875**2
            inside[row.metric] += row.ci_low <= truth <= row.ci_high
    assert min(inside.values()) / audits >= share_allowed(0.95, audits)


def test_retraining_is_compared_with_its_control_and_the_control_with_retraining():
    rng, y = np.random.default_rng(13), np.array([0, 1, 2, 0, 1, 2])
    logits = {name: rng.normal(size=(2, 6, 3)) for name in ("mine", "retrain", "control")}
    forget = np.tile(np.arange(6) < 2, (2, 1))
    shared = {
        "labels": y, "answers": lambda files: Held(logits[files[0]]),
        "membership": Membership(*(forget | True, forget, forget & False), *np.zeros((3, 2), int), np.zeros(2, bool)),
        "data": SimpleNamespace(y=y, y_clean=y, part=np.arange(6) // 5),
    }  # fmt: skip

    def compared(name: str, control: str | None = "control") -> list[str | None]:
        case = Evaluation("", [], [], [name], control_files=control and [control], retrained_files=["retrain"])
        case.__dict__.update(shared)
        phi = {key: stats.phi(logits=z[:, :2], y=y[:2]).tolist() for key, z in logits.items()}
        groups = competition.populations(case)
        return [group and next(k for k, value in phi.items() if value == group.phi.tolist()) for group in groups]

    assert compared("mine") == ["mine", "retrain", "control"]
    assert compared("mine", None) == ["mine", "retrain", None]
    assert compared("retrain") == ["retrain", "control", None]
    assert compared("control") == ["control", "retrain", None]
    with pytest.raises(ValueError, match="retrain cannot be compared with itself"):
        compared("retrain", None)
