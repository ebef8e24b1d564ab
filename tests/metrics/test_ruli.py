"""RULI's tests against Gaussians whose AUC is known."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm
from unlearning_audit.metrics import ruli
from unlearning_audit.stats.readings import Question, readings

from ruli_cases import covers

ROLES = 3  # kept, forgotten, held out


def draw(rng, *, models, samples, q_u, q_h, q_R=(0.0, 1.0), q_i=(3.0, 1.0), q_r=(3.0, 1.0), offset=0.0):
    """Models whose phi is Gaussian (mean, sd) for each role, plus an ``offset`` of each sample.

    In each group of three models every sample has every role once.
    """
    first = np.stack([rng.permutation(np.arange(samples) % ROLES) for _ in range(-(-models // ROLES))])
    role = ((first[:, None] + np.arange(ROLES)[:, None]) % ROLES).reshape(-1, samples)[:models]
    retained, forgot, out = (role == r for r in range(ROLES))

    def phi(*parts):
        noise, value = rng.normal(size=role.shape), np.zeros(role.shape)
        for mask, (mean, sd) in parts:
            value = np.where(mask, mean + sd * noise, value)
        return value + offset

    return ruli.Population(
        original=phi((retained | forgot, q_i), (out, q_R)),
        unlearned=phi((retained, q_r), (forgot, q_u), (out, q_h)),
        train=retained | forgot,
        forget=forgot,
        heldout=out,
        retrained=phi((retained, q_i), (forgot | out, q_R)),
    )


def rows_of(targets, shadows, options=None, **more) -> dict[tuple[str, str], dict]:
    rows = ruli.evaluate(targets=targets, shadows=shadows, options=options or ruli.Options(), **more)
    table = {(r.attack, r.metric): r for r in rows}
    assert len(table) == len(rows)
    return table


def near(row: dict, truth: float, width: float) -> bool:
    """Whether the truth lies within two half-widths (about four standard errors), where many rows are asked."""
    half = max(row.ci_high - row.value, row.value - row.ci_low)
    return abs(row.value - truth) < 2 * half and row.ci_high - row.ci_low < width


@pytest.mark.parametrize("density", ["kde", "gaussian"])
def test_every_test_finds_the_auc_of_its_own_pair(density):
    # five different pairs of unit Gaussians: a test that reads the wrong distribution or model is off
    rng = np.random.default_rng(4)
    means = {"q_u": -2.0, "q_h": -0.5, "q_R": 1.2, "q_i": 2.6, "q_r": 1.5}
    pairs = {k: (v, 1.0) for k, v in means.items()}
    shadows = draw(rng, models=900, samples=150, **pairs)
    table = rows_of(draw(rng, models=12, samples=150, **pairs), shadows, ruli.Options(density=density))
    distance = {
        ("ruli", "privacy"): means["q_h"] - means["q_u"],
        ("ruli", "efficacy"): means["q_R"] - means["q_u"],
        ("ruli", "trained"): means["q_i"] - means["q_R"],
        ("ruli", "remained"): means["q_r"] - means["q_h"],
        ("u_lira", "privacy"): means["q_h"] - means["q_u"],
    }
    for (attack, name), d in distance.items():
        assert covers(table[attack, f"{name}_auc"], ndtr(d / math.sqrt(2)), 0.1), (attack, name)
        if attack == "ruli":
            assert near(table[attack, f"{name}_accuracy"], ndtr(d / 2), 0.1), name
            tpr = ndtr(d - norm.isf(0.05))
            assert near(table[attack, f"{name}_tpr_at_5pct_fpr"], tpr, 0.35), name
    # U-LiRA's threshold lies between Q_u and Q_R, not between the two that it meets
    cut = (means["q_u"] + means["q_R"]) / 2
    accuracy = (ndtr(cut - means["q_u"]) + ndtr(means["q_h"] - cut)) / 2
    assert covers(table["u_lira", "privacy_accuracy"], accuracy, 0.08)
    assert ndtr(0.75) - accuracy > 0.05


def test_different_spreads_are_told_apart_too():
    # N(0, 1) against N(0, s²): the ratio falls with phi², so AUC = P(|X| < s|Y|) = (2/π)·arctan s
    rng = np.random.default_rng(5)
    pairs = {"q_u": (0.0, 1.0), "q_h": (0.0, 4.0)}
    shadows, targets = draw(rng, models=300, samples=150, **pairs), draw(rng, models=8, samples=150, **pairs)
    for density in ("kde", "gaussian"):
        table = rows_of(targets, shadows, ruli.Options(density=density))
        assert covers(table["ruli", "privacy_auc"], 2 / math.pi * math.atan(4), 0.1)
    assert table["population", "privacy_auc"].value < 0.6  # no threshold on phi sees it


def test_privacy_and_efficacy_are_different_questions():
    # an unlearned model that treats forgotten and held-out alike, but neither as a retrained one would
    rng = np.random.default_rng(7)
    pairs = {"q_u": (2.0, 1.0), "q_h": (2.0, 1.0), "q_R": (0.0, 1.0)}
    shadows, targets = draw(rng, models=300, samples=120, **pairs), draw(rng, models=6, samples=120, **pairs)
    table = rows_of(targets, shadows)
    assert covers(table["ruli", "privacy_auc"], 0.5, 0.12)
    assert covers(table["ruli", "efficacy_auc"], ndtr(math.sqrt(2)), 0.1)


def test_efficacy_asks_a_retrained_model_or_the_original():
    rng = np.random.default_rng(8)
    pairs = {"q_u": (2.0, 1.0), "q_h": (1.0, 1.0)}
    shadows, targets = draw(rng, models=300, samples=120, **pairs), draw(rng, models=6, samples=120, **pairs)
    worse = ruli.Population(**{**vars(targets), "retrained": targets.retrained + 1.0})
    assert covers(rows_of(worse, shadows)["ruli", "efficacy_auc"], ndtr(1 / math.sqrt(2)), 0.12)
    original = ruli.Options(test_model="original")
    assert covers(rows_of(worse, shadows, original)["ruli", "efficacy_auc"], ndtr(2 / math.sqrt(2)), 0.12)
    missing = rows_of(ruli.Population(**{**vars(targets), "retrained": None}), shadows)["ruli", "efficacy_auc"]
    assert math.isnan(missing.value)
    assert "no retrained target models" in missing.note


def test_population_attack_meets_its_closed_form():
    # one threshold for all samples: the spread t of their offsets adds to the noise, AUC = Φ(d/√(2(1 + t²)))
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(9)
    d, t, samples = 1.5, 2.0, 900
    pairs = {"q_u": (d, 1.0), "q_h": (0.0, 1.0), "q_i": (-4.0, 1.0), "offset": rng.normal(size=samples) * t}
    shadows, targets = draw(rng, models=12, samples=samples, **pairs), draw(rng, models=10, samples=samples, **pairs)
    table = rows_of(targets, shadows)
    assert covers(table["population", "privacy_auc"], ndtr(d / math.sqrt(2 * (1 + t**2))), 0.1)
    phi, forgot = shadows.unlearned, shadows.forget
    rows = forgot | shadows.heldout
    sklearn = LogisticRegression(C=1e9).fit(phi[rows][:, None], forgot[rows])
    prediction = sklearn.predict(targets.unlearned.reshape(-1, 1)).reshape(targets.forget.shape)
    truth = (prediction[targets.forget].mean() + 1 - prediction[targets.heldout].mean()) / 2
    assert table["population", "privacy_accuracy"].value == pytest.approx(truth, abs=0.002)
    # learning before unlearning, as the published code does, learns the wrong sign here
    assert rows_of(targets, shadows, ruli.Options(population="trained"))["population", "privacy_auc"].value < 0.4


def test_what_cannot_be_tested_is_refused():
    rng = np.random.default_rng(11)
    pairs = {"q_u": (1.0, 1.0), "q_h": (0.0, 1.0)}
    shadows, targets = draw(rng, models=12, samples=30, **pairs), draw(rng, models=2, samples=30, **pairs)

    def changed(population, **changes):
        return ruli.Population(**{**vars(population), **changes})

    twin = targets.unlearned.copy()
    twin[1] = shadows.unlearned[5]
    diverged = targets.original.copy()
    diverged[0, 0] = np.nan
    for t, s, reason in (
        (changed(targets, unlearned=twin), shadows, "target 1 is also a shadow model"),
        (changed(targets, original=diverged), shadows, "targets.original holds NaN"),
        (targets.columns(np.arange(30) < 20), shadows, "targets hold 20 samples, shadows 30"),
        (changed(targets, forget=targets.forget[:1]), shadows, "targets.forget has shape"),
        (
            targets,
            changed(shadows, forget=shadows.forget & (np.arange(12)[:, None] < 2)),
            "reference models as forgotten",
        ),
    ):
        with pytest.raises(ValueError, match=reason):
            rows_of(t, s)


def test_targets_together_resolve_what_one_cannot():
    from sklearn.metrics import roc_curve

    rng = np.random.default_rng(13)
    models, samples, hits, repeats = 12, 300, 0, 150
    for _ in range(repeats):
        positive = np.stack([rng.permutation(samples) < 150 for _ in range(models)])
        score = rng.normal(size=(models, samples)) + 2 * positive
        numbers = readings(Question(score, positive, ~positive), fpr=(0.001, 0.01))
        pooled = numbers["tpr_at_0.1pct_fpr"]
        hits += pooled.low <= ndtr(2 - norm.isf(0.001)) <= pooled.high
    assert hits / repeats > 0.95 - 3 * math.sqrt(0.95 * 0.05 / repeats)
    fpr, tpr, _ = roc_curve(positive.ravel(), score.ravel(), drop_intermediate=False)
    assert pooled.value == tpr[fpr <= 0.001].max()
    assert "one threshold for 12 targets" in pooled.note
    curves = [roc_curve(p, s, drop_intermediate=False) for s, p in zip(score, positive, strict=True)]
    assert numbers["tpr_at_1pct_fpr"].value == pytest.approx(
        np.mean([tpr[fpr <= 0.01].max() for fpr, tpr, _ in curves])
    )


def test_one_threshold_for_all_targets_varies_with_the_targets():
    # half of the targets leak far more than the others: which ones were drawn is most of the error
    rng = np.random.default_rng(20)
    models, samples, hits, repeats = 12, 300, 0, 100
    positive = np.stack([rng.permutation(samples) < 150 for _ in range(models)])
    truth = (ndtr(1 - norm.isf(0.001)) + ndtr(5 - norm.isf(0.001))) / 2
    for _ in range(repeats):
        score = rng.normal(size=(models, samples)) + rng.choice([1, 5], (models, 1)) * positive
        estimate = readings(Question(score, positive, ~positive), fpr=(0.001,))["tpr_at_0.1pct_fpr"]
        hits += estimate.low <= truth <= estimate.high
    assert hits / repeats > 0.95 - 3 * math.sqrt(0.95 * 0.05 / repeats)


def unequal(rng, models, difficulty, leak):
    """Models of unequal skill that know what they saw, and what they unlearned, unequally well: ``difficulty`` and
    ``leak`` float64 [samples]."""
    role = np.stack([rng.permutation(np.arange(len(leak)) % ROLES) for _ in range(models // ROLES)])
    role = ((role[:, None] + np.arange(ROLES)[:, None]) % ROLES).reshape(models, -1)
    retained, forgot, out = (role == r for r in range(ROLES))
    known = 1 + 0.3 * rng.normal(size=(models, 1))

    def phi(trace):
        return difficulty + 0.3 * rng.normal(size=(models, 1)) + trace + rng.normal(size=role.shape)

    return ruli.Population(
        original=phi(np.where(out, 0.0, 3 * known)),
        unlearned=phi(np.where(retained, 3 * known, np.where(forgot, leak * known, 0.0))),
        train=retained | forgot, forget=forgot, heldout=out, retrained=phi(np.where(retained, 3 * known, 0.0)),
    )  # fmt: skip


@pytest.mark.parametrize("leak", [0.0, 1.5])
def test_intervals_cover_what_other_samples_targets_and_shadow_models_show(leak):
    """All are drawn anew in 80 audits of three targets and 18 shadow models; the truth is .5 where nothing leaks, else
    the mean of all audits."""
    rng, audits, numbers = np.random.default_rng(21), 80, {}
    for _ in range(audits):
        difficulty, leaks = 1.5 * rng.normal(size=60), leak * rng.exponential(1, 60)
        targets, shadows = (unequal(rng, models, difficulty, leaks) for models in (3, 18))
        for (attack, metric), row in rows_of(targets, shadows).items():
            if metric in ("privacy_auc", "privacy_accuracy", "efficacy_auc", "privacy_tpr_at_5pct_fpr"):
                numbers.setdefault((attack, metric), []).append((row.value, row.ci_low, row.ci_high))
    for name, values in numbers.items():
        value, low, high = np.transpose(values)
        truth = value.mean() if leak or "tpr" in name[1] else 0.5
        inside = np.mean((low <= truth) & (truth <= high))
        assert inside >= 0.95 - 3.1 * math.sqrt(0.95 * 0.05 / audits), name
