"""RULI's tests against Gaussians whose AUC is known, densities against scipy and scikit-learn, and the checks."""

import math

import numpy as np
import pytest
from scipy.special import log_softmax, ndtr
from scipy.stats import gaussian_kde, norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KernelDensity

from unlearning import stats
from unlearning.metrics import _reference, blind, ruli, vulnerability
from unlearning.metrics._readings import Question, readings, tpr_name

ROLES = 3  # kept, forgotten, held out


def draw(rng, *, models, samples, q_u, q_h, q_R=(0.0, 1.0), q_i=(3.0, 1.0), q_r=(3.0, 1.0), offset=0.0):
    """Models whose phi is Gaussian (mean, sd) for each role, plus an ``offset`` of each sample.

    In each group of three models every sample has every role once.
    """
    first = np.stack([rng.permutation(np.arange(samples) % ROLES) for _ in range(-(-models // ROLES))])
    role = ((first[:, None] + np.arange(ROLES)[:, None]) % ROLES).reshape(-1, samples)[:models]
    kept, forgot, out = (role == r for r in range(ROLES))

    def phi(*parts):
        noise, value = rng.normal(size=role.shape), np.zeros(role.shape)
        for mask, (mean, sd) in parts:
            value = np.where(mask, mean + sd * noise, value)
        return value + offset

    return ruli.Population(
        original=phi((kept | forgot, q_i), (out, q_R)),
        unlearned=phi((kept, q_r), (forgot, q_u), (out, q_h)),
        train=kept | forgot,
        forget=forgot,
        heldout=out,
        retrained=phi((kept, q_i), (forgot | out, q_R)),
    )


def rows_of(targets, shadows, options=None, **more) -> dict[tuple[str, str], dict]:
    rows = ruli.evaluate(targets=targets, shadows=shadows, options=options or ruli.Options(), **more)
    found = {(r["attack"], r["metric"]): r for r in rows}
    assert len(found) == len(rows)
    return found


def near(row: dict, truth: float, width: float) -> bool:
    """Whether the truth lies within two half-widths (about four standard errors), where many rows are asked."""
    half = max(row["ci_high"] - row["value"], row["value"] - row["ci_low"])
    return abs(row["value"] - truth) < 2 * half and row["ci_high"] - row["ci_low"] < width


def covers(row: dict, truth: float, width: float) -> bool:
    """Whether the interval holds the truth and says something."""
    return row["ci_low"] <= truth <= row["ci_high"] and row["ci_high"] - row["ci_low"] < width


def ragged(rng, models: int = 12, samples: int = 40):
    phi = rng.normal(size=(models, samples)) * rng.uniform(0.1, 5, samples) + rng.normal(size=samples)
    mask = rng.random((models, samples)) < 0.6
    mask[:4] = True
    return phi, mask


def test_kernel_density_is_that_of_scipy_and_scikit_learn():
    rng = np.random.default_rng(0)
    phi, mask = ragged(rng)
    at = rng.normal(size=(3, 40)) * 3
    silverman = _reference.log_density(phi, mask, at, side="in")
    fixed = _reference.log_density(phi, mask, at, side="in", bandwidth=1.0)
    for s in range(40):
        points = phi[mask[:, s], s]
        np.testing.assert_allclose(
            silverman[:, s], gaussian_kde(points, bw_method="silverman").logpdf(at[:, s]), rtol=0, atol=1e-10
        )
        sklearn = KernelDensity(bandwidth=1.0).fit(points[:, None]).score_samples(at[:, s, None])
        np.testing.assert_allclose(fixed[:, s], sklearn, rtol=0, atol=1e-10)


def test_gaussian_density_is_that_of_scipy():
    rng = np.random.default_rng(1)
    phi, mask = ragged(rng)
    at = rng.normal(size=(3, 40)) * 3
    found = _reference.log_density(phi, mask, at, side="in", kind="gaussian")
    for s in range(40):
        points = phi[mask[:, s], s]
        np.testing.assert_allclose(found[:, s], norm(points.mean(), points.std()).logpdf(at[:, s]), atol=1e-10)


@pytest.mark.parametrize("kind", ["kde", "gaussian"])
@pytest.mark.parametrize("bandwidth", ["silverman", 0.7])
def test_a_model_is_judged_by_the_others(kind, bandwidth, monkeypatch):
    rng = np.random.default_rng(2)
    phi, mask = ragged(rng)
    monkeypatch.setattr(_reference, "CHUNK", 12 * 7)  # several chunks of samples
    audited = np.array([7, 0, 11])
    how = {"side": "in", "kind": kind, "bandwidth": bandwidth}
    found = _reference.log_density_of_its_own(phi, mask, audited, **how)
    for row, m in zip(found, audited, strict=True):
        others = np.arange(12) != m
        expected = _reference.log_density(phi[others], mask[others], phi[m][None], **how)
        np.testing.assert_allclose(row, expected[0], rtol=1e-9)


def test_densities_stay_finite_where_probabilities_vanish():
    phi, mask = np.zeros((4, 2)), np.ones((4, 2), bool)
    phi[:, 1] = [1, 2, 3, 4]
    far = np.array([[1e4, -1e4]])
    for kind in ("kde", "gaussian"):
        found = _reference.log_density(phi, mask, far, side="in", kind=kind)
        assert np.isfinite(found).all()
        assert (found < -1e5).all()
    mask[:2, 0] = False
    with pytest.raises(ValueError, match="sample 0 has 2 reference models as held out, 1 samples"):
        _reference.log_density(phi, mask, far, side="held out")


def test_clipping_is_that_of_probabilities():
    logits = np.random.default_rng(3).normal(size=(500, 3)) * 15
    p = np.exp(log_softmax(logits, axis=1))
    expected = np.log(np.clip(p[:, 0], 1e-6, 1 - 1e-6)) - np.log(np.clip(p[:, 1] + p[:, 2], 1e-6, None))
    phi = stats.phi(logits=logits, y=np.zeros(500, np.int64))
    np.testing.assert_allclose(_reference.clip(phi, 1e-6), expected, atol=1e-9)
    assert _reference.clip(np.array([1e4, -1e4]), 1e-6) == pytest.approx([math.log(1e6 - 1), math.log(1e-6)])
    assert _reference.clip(phi, None) is phi


@pytest.mark.parametrize("density", ["kde", "gaussian"])
def test_every_test_finds_the_auc_of_its_own_pair(density):
    # five different pairs of unit Gaussians: a test that reads the wrong distribution or model is off
    rng = np.random.default_rng(4)
    means = {"q_u": -2.0, "q_h": -0.5, "q_R": 1.2, "q_i": 2.6, "q_r": 1.5}
    pairs = {k: (v, 1.0) for k, v in means.items()}
    shadows = draw(rng, models=900, samples=150, **pairs)
    found = rows_of(draw(rng, models=12, samples=150, **pairs), shadows, ruli.Options(density=density))
    distance = {
        ("ruli", "privacy"): means["q_h"] - means["q_u"],
        ("ruli", "efficacy"): means["q_R"] - means["q_u"],
        ("ruli", "trained"): means["q_i"] - means["q_R"],
        ("ruli", "remained"): means["q_r"] - means["q_h"],
        ("u_lira", "privacy"): means["q_h"] - means["q_u"],
    }
    for (attack, name), d in distance.items():
        assert covers(found[attack, f"{name}_auc"], ndtr(d / math.sqrt(2)), 0.1), (attack, name)
        if attack == "ruli":
            assert near(found[attack, f"{name}_accuracy"], ndtr(d / 2), 0.1), name
            tpr = ndtr(d - norm.isf(0.05))
            assert near(found[attack, f"{name}_tpr_at_5pct_fpr"], tpr, 0.35), name
    # U-LiRA's threshold lies between Q_u and Q_R, not between the two that it meets
    cut = (means["q_u"] + means["q_R"]) / 2
    accuracy = (ndtr(cut - means["q_u"]) + ndtr(means["q_h"] - cut)) / 2
    assert covers(found["u_lira", "privacy_accuracy"], accuracy, 0.08)
    assert ndtr(0.75) - accuracy > 0.05


def test_different_spreads_are_told_apart_too():
    # N(0, 1) against N(0, s²): the ratio falls with phi², so AUC = P(|X| < s|Y|) = (2/π)·arctan s
    rng = np.random.default_rng(5)
    pairs = {"q_u": (0.0, 1.0), "q_h": (0.0, 4.0)}
    shadows, targets = draw(rng, models=300, samples=150, **pairs), draw(rng, models=8, samples=150, **pairs)
    for density in ("kde", "gaussian"):
        found = rows_of(targets, shadows, ruli.Options(density=density))
        assert covers(found["ruli", "privacy_auc"], 2 / math.pi * math.atan(4), 0.1)
    assert found["population", "privacy_auc"]["value"] < 0.6  # no threshold on phi sees it


@pytest.mark.parametrize("options", [ruli.Options(), ruli.Options(density="gaussian"), ruli.COMPAT])
def test_retraining_leaks_nothing(options):
    rng = np.random.default_rng(6)
    offset = rng.normal(size=150) * 2
    without = {"q_u": (0.0, 1.0), "q_h": (0.0, 1.0), "q_R": (0.0, 1.0), "offset": offset}
    shadows, targets = draw(rng, models=60, samples=150, **without), draw(rng, models=10, samples=150, **without)
    found = rows_of(targets, shadows, options)
    for attack, name in (("ruli", "privacy"), ("ruli", "efficacy"), ("u_lira", "privacy"), ("population", "privacy")):
        assert covers(found[attack, f"{name}_auc"], 0.5, 0.12), (attack, name)
        assert covers(found[attack, f"{name}_accuracy"], 0.5, 0.12), (attack, name)
        tpr = found[attack, f"{name}_tpr_at_5pct_fpr"]
        assert tpr["ci_low"] <= 0.05 <= tpr["ci_high"], (attack, name)
    assert found["ruli", "trained_auc"]["value"] > 0.9


def test_privacy_and_efficacy_are_different_questions():
    # an unlearned model that treats forgotten and held-out alike, but neither as a retrained one would
    rng = np.random.default_rng(7)
    pairs = {"q_u": (2.0, 1.0), "q_h": (2.0, 1.0), "q_R": (0.0, 1.0)}
    shadows, targets = draw(rng, models=300, samples=120, **pairs), draw(rng, models=6, samples=120, **pairs)
    found = rows_of(targets, shadows)
    assert covers(found["ruli", "privacy_auc"], 0.5, 0.12)
    assert covers(found["ruli", "efficacy_auc"], ndtr(math.sqrt(2)), 0.1)


def test_efficacy_asks_a_retrained_model_or_the_original():
    rng = np.random.default_rng(8)
    pairs = {"q_u": (2.0, 1.0), "q_h": (1.0, 1.0)}
    shadows, targets = draw(rng, models=300, samples=120, **pairs), draw(rng, models=6, samples=120, **pairs)
    worse = ruli.Population(**{**vars(targets), "retrained": targets.retrained + 1.0})
    assert covers(rows_of(worse, shadows)["ruli", "efficacy_auc"], ndtr(1 / math.sqrt(2)), 0.12)
    original = ruli.Options(test_model="original")
    assert covers(rows_of(worse, shadows, original)["ruli", "efficacy_auc"], ndtr(2 / math.sqrt(2)), 0.12)
    missing = rows_of(ruli.Population(**{**vars(targets), "retrained": None}), shadows)["ruli", "efficacy_auc"]
    assert math.isnan(missing["value"])
    assert "no retrained target models" in missing["note"]


def test_population_attack_meets_its_closed_form():
    # one threshold for all samples: the spread t of their offsets adds to the noise, AUC = Φ(d/√(2(1 + t²)))
    rng = np.random.default_rng(9)
    d, t, samples = 1.5, 2.0, 900
    pairs = {"q_u": (d, 1.0), "q_h": (0.0, 1.0), "q_i": (-4.0, 1.0), "offset": rng.normal(size=samples) * t}
    shadows, targets = draw(rng, models=12, samples=samples, **pairs), draw(rng, models=10, samples=samples, **pairs)
    found = rows_of(targets, shadows)
    assert covers(found["population", "privacy_auc"], ndtr(d / math.sqrt(2 * (1 + t**2))), 0.1)
    phi, forgot = shadows.unlearned, shadows.forget
    rows = forgot | shadows.heldout
    sklearn = LogisticRegression(C=1e9).fit(phi[rows][:, None], forgot[rows])
    said = sklearn.predict(targets.unlearned.reshape(-1, 1)).reshape(targets.forget.shape)
    truth = (said[targets.forget].mean() + 1 - said[targets.heldout].mean()) / 2
    assert found["population", "privacy_accuracy"]["value"] == pytest.approx(truth, abs=0.002)
    # learning before unlearning, as the published code does, learns the wrong sign here
    assert rows_of(targets, shadows, ruli.Options(population="trained"))["population", "privacy_auc"]["value"] < 0.4


def test_audit_of_some_samples_only():
    rng = np.random.default_rng(10)
    samples = 120
    leaky = np.arange(samples) < 60
    shift = np.where(leaky, 2.0, 0.0)

    def half(models):
        p = draw(rng, models=models, samples=samples, q_u=(0.0, 1.0), q_h=(0.0, 1.0))
        return ruli.Population(**{**vars(p), "unlearned": p.unlearned + np.where(p.forget, shift, 0.0)})

    shadows, targets = half(300), half(8)
    assert covers(rows_of(targets, shadows, audited=leaky)["ruli", "privacy_auc"], ndtr(math.sqrt(2)), 0.12)
    assert covers(rows_of(targets, shadows, audited=~leaky)["ruli", "privacy_auc"], 0.5, 0.2)
    with pytest.raises(ValueError, match="no audited sample"):
        rows_of(targets, shadows, audited=leaky & ~leaky)


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


def test_readings_of_one_target_are_those_of_its_roc_curve():
    rng = np.random.default_rng(12)
    positive = rng.random(700) < 0.4
    score = np.round(rng.normal(size=700) + positive, 1)
    found = readings(Question(score[None], positive[None], ~positive[None]), fpr=(0.01, 0.05, 0.001))
    assert found["auc"].value == pytest.approx(roc_auc_score(positive, score), abs=1e-12)
    said = score > 0
    assert found["accuracy"].value == pytest.approx((said[positive].mean() + (~said)[~positive].mean()) / 2)
    fpr, tpr, _ = stats.roc(score=score, positive=positive)
    for level in (0.01, 0.05):
        assert found[tpr_name(level)].value == tpr[fpr <= level].max()
    assert math.isnan(found["tpr_at_0.1pct_fpr"].value)
    assert "cannot resolve" in found["tpr_at_0.1pct_fpr"].note


def test_targets_together_resolve_what_one_cannot():
    rng = np.random.default_rng(13)
    models, samples, hits, repeats = 12, 300, 0, 150
    for _ in range(repeats):
        positive = np.stack([rng.permutation(samples) < 150 for _ in range(models)])
        score = rng.normal(size=(models, samples)) + 2 * positive
        found = readings(Question(score, positive, ~positive), fpr=(0.001, 0.01))
        pooled = found["tpr_at_0.1pct_fpr"]
        hits += pooled.low <= ndtr(2 - norm.isf(0.001)) <= pooled.high
    assert hits / repeats > 0.95 - 3 * math.sqrt(0.95 * 0.05 / repeats)
    fpr, tpr, _ = stats.roc(score=score.ravel(), positive=positive.ravel())
    assert pooled.value == tpr[fpr <= 0.001].max()
    assert "one threshold for 12 targets" in pooled.note
    each = [stats.tpr_at_fpr(score=s, positive=p, fpr=0.01).value for s, p in zip(score, positive, strict=True)]
    assert found["tpr_at_1pct_fpr"].value == pytest.approx(np.mean(each))


def test_one_threshold_for_all_targets_varies_with_the_targets():
    # half of the targets leak far more than the others: which ones were drawn is most of the error
    rng = np.random.default_rng(20)
    models, samples, hits, repeats = 12, 300, 0, 100
    positive = np.stack([rng.permutation(samples) < 150 for _ in range(models)])
    truth = (ndtr(1 - norm.isf(0.001)) + ndtr(5 - norm.isf(0.001))) / 2
    for _ in range(repeats):
        score = rng.normal(size=(models, samples)) + rng.choice([1, 5], (models, 1)) * positive
        found = readings(Question(score, positive, ~positive), fpr=(0.001,))["tpr_at_0.1pct_fpr"]
        hits += found.low <= truth <= found.high
    assert hits / repeats > 0.95 - 3 * math.sqrt(0.95 * 0.05 / repeats)


def test_targets_without_a_side_are_left_out():
    rng = np.random.default_rng(14)
    positive = np.stack([np.arange(100) < 50, np.zeros(100, bool)])
    negative = ~positive & (np.arange(100) >= 50)
    score = rng.normal(size=(2, 100))
    found = readings(Question(score, positive, negative), fpr=(0.05,))
    assert found["auc"].value == pytest.approx(roc_auc_score(positive[0], score[0]))
    nothing = readings(Question(score, positive & False, negative), fpr=(0.05,))
    assert all(math.isnan(e.value) and "no target has samples on both sides" in e.note for e in nothing.values())


def halves(rng, *, models: int, shift: np.ndarray):
    """Pairs of models trained on complementary halves; phi rises by ``shift`` [samples] for members."""
    first = np.stack([rng.permutation(len(shift)) < len(shift) // 2 for _ in range(models // 2)])
    member = np.stack([first, ~first], axis=1).reshape(models, -1)
    return rng.normal(size=member.shape) + np.where(member, shift, 0.0), member


@pytest.mark.parametrize("density", ["kde", "gaussian"])
def test_planted_vulnerable_and_protected_samples_are_found(density):
    rng = np.random.default_rng(15)
    shift = np.concatenate([np.full(50, 12.0), np.zeros(950)])
    phi, member = halves(rng, models=64, shift=shift)
    options = vulnerability.Options(density=density, fpr=0.004, band=0.1)
    found = vulnerability.find(phi=phi, member=member, nonmember=~member, options=options, audited=np.arange(16))
    assert found.ratio.shape == (16, 1000)
    assert found.vulnerable[:50].all()
    assert found.vulnerable[50:].sum() <= 3  # an FPR of .004 is not 0
    assert not found.protected[:50].any()
    assert found.protected[50:].mean() > 0.3
    assert not (found.vulnerable & found.protected).any()
    near_half = (np.abs(found.tau - 0.5) <= 0.1) & member[:16]
    np.testing.assert_array_equal(found.protected, near_half.sum(axis=0) >= 0.5 * member[:16].sum(axis=0))
    np.testing.assert_allclose(found.tau, 0.5 * (1 + np.tanh(found.ratio / 2)), atol=1e-12)
    rows = {r["metric"]: r for r in vulnerability.evaluate(found, fpr=(1e-4, 0.01))}
    assert rows["highly_memorized"]["value"] == found.vulnerable.sum()
    assert 0.05 <= rows["lira_tpr_at_1pct_fpr"]["value"] < 0.15
    assert rows["lira_tpr_at_0.01pct_fpr"]["note"]  # 16 models of 500 non-members: only together, 1e-4 needs 10,000


def test_selection_never_compares_a_model_with_itself():
    # no signal at all: an AUC above ½ is self-knowledge
    rng = np.random.default_rng(16)
    phi, member = halves(rng, models=60, shift=np.zeros(600))
    options = vulnerability.Options(fpr=0.01, bandwidth=0.3)
    found = vulnerability.find(phi=phi, member=member, nonmember=~member, options=options)
    auc = roc_auc_score(member.ravel(), found.ratio.ravel())
    assert abs(auc - 0.5) < 4 * math.sqrt(2 / 12 / member.sum())
    own = _reference.log_density(phi, member, phi, side="in", bandwidth=0.3)
    own -= _reference.log_density(phi, ~member, phi, side="out", bandwidth=0.3)
    assert roc_auc_score(member.ravel(), own.ravel()) > 0.65


def test_selection_says_which_rate_it_can_resolve():
    rng = np.random.default_rng(17)
    phi, member = halves(rng, models=8, shift=np.zeros(200))
    with pytest.raises(ValueError, match="needs 10000 non-members in a model, there are 100: raise fpr to at least"):
        vulnerability.find(phi=phi, member=member, nonmember=~member, options=vulnerability.Options())
    never = member.copy()
    never[:, 3] = False
    found = vulnerability.find(
        phi=phi, member=member, nonmember=~member, options=vulnerability.Options(fpr=0.05), audited=np.array([2])
    )
    assert not (found.vulnerable & ~member[2]).any()
    with pytest.raises(ValueError, match="sample 3 has 0 reference models as in"):
        vulnerability.find(phi=phi, member=never, nonmember=~member, options=vulnerability.Options(fpr=0.05))


def blind_rows(y, forget, heldout, features=None, seed=0):
    rows = blind.evaluate(
        y=y,
        forget=forget,
        heldout=heldout,
        features=features,
        options=blind.Options(),
        rng=np.random.default_rng(seed),
    )
    return {r["metric"]: r for r in rows}


def test_random_sides_pass_the_blind_check():
    rng = np.random.default_rng(18)
    inside = {"blind_auc": 0, "blind_accuracy": 0, "label_overlap": 0}
    repeats = 40
    for _ in range(repeats):
        y, x = rng.integers(0, 10, 600), rng.normal(size=(600, 8, 4))
        order = rng.permutation(600)
        forget, heldout = order < 250, order >= 350
        rows = blind_rows(y, forget, heldout, x, seed=1)
        for name in ("blind_auc", "blind_accuracy"):
            inside[name] += rows[name]["ci_low"] <= 0.5 <= rows[name]["ci_high"]
        inside["label_overlap"] += rows["label_overlap"]["note"] == ""
        assert rows["blind_auc"]["n"] == 500
    # 95 % each; 97.5 % for the one-sided flag of the labels
    for name, count in inside.items():
        assert count >= (0.95 - 3 * math.sqrt(0.95 * 0.05 / repeats)) * repeats, name


def test_leaky_sides_are_seen():
    rng = np.random.default_rng(19)
    y, x = rng.integers(0, 10, 600), rng.normal(size=(600, 16))
    forget = rng.random(600) < 0.5
    x[forget, 0] += 1.5  # two unit Gaussians at distance 1.5
    rows = blind_rows(y, forget, ~forget, x)
    assert covers(rows["blind_auc"], ndtr(1.5 / math.sqrt(2)), 0.15)
    assert covers(rows["blind_accuracy"], ndtr(0.75), 0.15)
    by_label = blind_rows(y, y < 4, y >= 6)
    assert by_label["label_overlap"]["value"] == 0
    assert "labels tell the sides apart" in by_label["label_overlap"]["note"]
    assert math.isnan(by_label["blind_auc"]["value"])
    assert "no features" in by_label["blind_auc"]["note"]
    with pytest.raises(ValueError, match="at least 5 samples on each side"):
        blind_rows(y, np.arange(600) < 4, np.arange(600) >= 6)


def test_label_overlap_is_that_of_histograms():
    y = np.array([0, 0, 1, 1, 2, 2, 2, 2])
    a, b = np.arange(8) < 4, np.arange(8) >= 4
    assert blind.label_overlap(y, a, b) == 0
    assert blind.label_overlap(y, a, a) == 1
    assert blind.label_overlap(np.array([0, 0, 0, 1, 0, 1, 1, 2]), a, b) == 0.5  # ¼ + ¼ + 0
