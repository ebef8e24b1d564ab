"""RULI's tests against Gaussians whose AUC is known, its ratios by hand, and what its metrics read of a case."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from unlearning_audit.evaluation.arrays import Membership, Selection
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _reference, blind, ruli, vulnerability
from unlearning_audit.protocols import lira_selection
from unlearning_audit.protocols import ruli as protocol
from unlearning_audit.stats.readings import MembershipTest, readings

import metric_calls as call
from row_places import about
from ruli_cases import SAMPLES, SEEN, Folder, covers, data, memberships, retrained, trained

ROLES = 3  # kept, forgotten, held out


def roles(rng, models, samples):
    """Kept, forgotten and held out: in each group of three models every sample has every role once."""
    first = np.stack([rng.permutation(np.arange(samples) % ROLES) for _ in range(models // ROLES)])
    role = ((first[:, None] + np.arange(ROLES)[:, None]) % ROLES).reshape(models, samples)
    return (role == r for r in range(ROLES))


def draw(rng, *, models, samples, q_u, q_h, q_R=0.0, q_i=3.0, q_r=3.0, offset=0.0):
    """Models whose phi is Gaussian with a mean for each role, plus an ``offset`` of each sample."""
    retained, forgot, out = roles(rng, models, samples)

    def phi(kept, forgotten, unseen):
        mean = np.where(retained, kept, np.where(forgot, forgotten, unseen))
        return mean + rng.normal(size=mean.shape) + offset

    return ruli.Population(
        phi(q_i, q_i, q_R), phi(q_r, q_u, q_h), retained | forgot, forgot, out, retrained=phi(q_i, q_R, q_R)
    )


def rows_of(targets, shadows, **options) -> dict[tuple[str, str], dict]:
    rows = ruli.evaluate(targets, shadows, ruli.Options(**options))
    table = {(r.attack, r.metric): r for r in rows}
    assert len(table) == len(rows)
    return table


def test_population_attack_meets_its_closed_form():
    # one threshold for all samples: the spread t of their offsets adds to the noise, AUC = Φ(d/√(2(1 + t²)))
    rng = np.random.default_rng(9)
    d, t, samples = 1.5, 2.0, 900
    means = {"q_u": d, "q_h": 0.0, "q_i": -4.0, "offset": rng.normal(size=samples) * t}
    shadows, targets = (draw(rng, models=12, samples=samples, **means) for _ in range(2))
    table = rows_of(targets, shadows)
    assert covers(table["population", "privacy_auc"], ndtr(d / math.sqrt(2 * (1 + t**2))), 0.1)
    phi, forgot = shadows.unlearned, shadows.forget
    rows = forgot | shadows.heldout
    sklearn = LogisticRegression(C=1e9).fit(phi[rows][:, None], forgot[rows])
    prediction = sklearn.predict(targets.unlearned.reshape(-1, 1)).reshape(targets.forget.shape)
    truth = (prediction[targets.forget].mean() + 1 - prediction[targets.heldout].mean()) / 2
    assert table["population", "privacy_accuracy"].value == pytest.approx(truth, abs=0.002)
    # learning before unlearning, as the published code does, learns the wrong sign here
    assert rows_of(targets, shadows, population="trained")["population", "privacy_auc"].value < 0.4


@pytest.mark.slow
def test_one_threshold_for_all_targets_varies_with_the_targets():
    # half of the targets leak far more than the others: which ones were drawn is most of the error
    rng = np.random.default_rng(20)
    models, samples, hits, repeats = 12, 300, 0, 100
    positive = np.stack([rng.permutation(samples) < 150 for _ in range(models)])
    truth = (ndtr(1 - norm.isf(0.001)) + ndtr(5 - norm.isf(0.001))) / 2
    for _ in range(repeats):
        score = rng.normal(size=(models, samples)) + rng.choice([1, 5], (models, 1)) * positive
        estimate = readings(MembershipTest(score, positive, ~positive), fpr=(0.001,))["tpr_at_0.1pct_fpr"]
        hits += estimate.low <= truth <= estimate.high
    assert hits / repeats > 0.95 - 3 * math.sqrt(0.95 * 0.05 / repeats)


def unequal(rng, models, difficulty, leak):
    """Models of unequal skill that know what they saw, and what they unlearned, unequally well: ``difficulty`` and
    ``leak`` float64 [samples]."""
    retained, forgot, out = roles(rng, models, len(leak))
    known = 1 + 0.3 * rng.normal(size=(models, 1))

    def phi(trace):
        return difficulty + 0.3 * rng.normal(size=(models, 1)) + trace + rng.normal(size=trace.shape)

    return ruli.Population(
        original=phi(np.where(out, 0.0, 3 * known)),
        unlearned=phi(np.where(retained, 3 * known, np.where(forgot, leak * known, 0.0))),
        train=retained | forgot, forget=forgot, heldout=out, retrained=phi(np.where(retained, 3 * known, 0.0)),
    )  # fmt: skip


@pytest.mark.slow
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


# ---------------------------------------------------------------- ratios by hand


FEW = 9
INDEX = np.arange(FEW) + 100


def population(models: int, seed: int) -> ruli.Population:
    """Kept, forgotten and held out in turn, so that every third model has each role of a sample."""
    rng = np.random.default_rng(seed)
    role = (np.arange(models)[:, None] + np.arange(FEW)) % 3
    original, unlearned, retrained = (rng.normal(shift, 2, role.shape) for shift in (1, 2, 3))
    return ruli.Population(original, unlearned, role < 2, role == 1, role == 2, retrained)


TARGETS, SHADOWS = population(3, 0), population(12, 1)
KEPT = SHADOWS.train & ~SHADOWS.forget


def asked(targets=TARGETS, shadows=SHADOWS, **options):
    return ruli.score_tests(targets, shadows, ruli.Options(**options))


def aucs(targets=TARGETS, shadows=SHADOWS):
    return ruli.aucs(targets, shadows, ruli.Options(density="gaussian"), INDEX)


def log_density(phi: np.ndarray, mask: np.ndarray, at: np.ndarray) -> np.ndarray:
    columns = [norm(phi[column, s].mean(), phi[column, s].std()).logpdf(at[:, s]) for s, column in enumerate(mask.T)]
    return np.stack(columns, axis=1)


def test_each_question_has_its_own_densities_models_and_sides():
    questions = asked(density="gaussian")
    t, s = TARGETS, SHADOWS
    q_u, q_h, q_r = (s.unlearned, s.forget), (s.unlearned, s.heldout), (s.unlearned, KEPT)
    q_i, q_out = (s.original, s.train), (s.original, s.heldout)
    retained = t.train & ~t.forget
    for key, at, over, under, positive in (
        (("ruli", "privacy"), t.unlearned, q_u, q_h, t.forget),
        (("ruli", "efficacy"), np.where(t.forget, t.unlearned, t.retrained), q_u, q_out, t.forget),
        (("ruli", "trained"), t.original, q_i, q_out, t.train),
        (("ruli", "remained"), t.unlearned, q_r, q_h, retained),
        (("u_lira", "privacy"), t.unlearned, q_u, q_out, t.forget),
    ):
        question = questions[key]
        np.testing.assert_allclose(question.score, log_density(*over, at) - log_density(*under, at), atol=1e-9)
        np.testing.assert_array_equal(question.positive, positive)
        np.testing.assert_array_equal(question.negative, t.heldout)
        assert not question.missing
    assert list(questions)[-1] == ("population", "privacy")
    alone = replace(t, retrained=None)
    assert asked(alone)["ruli", "efficacy"].missing == "no retrained target models were given"
    question = asked(alone, density="gaussian", test_model="original")["ruli", "efficacy"]
    at = np.where(t.forget, t.unlearned, t.original)
    np.testing.assert_allclose(question.score, log_density(*q_u, at) - log_density(*q_out, at), atol=1e-9)
    for density in ("kde", "pooled"):
        variant = asked(density=density)["u_lira", "privacy"]
        same = np.allclose(variant.score, questions["u_lira", "privacy"].score)
        assert same == (density == "kde"), "U-LiRA is Gaussian, of one spread if RULI's are"


def test_what_was_kept_is_read_where_enough_shadow_models_kept_it():
    train = SHADOWS.train.copy()
    train[np.flatnonzero(KEPT[:, 0])[:1], 0] = train[np.flatnonzero(KEPT[:, 1])[:2], 1] = False
    fewer = replace(SHADOWS, train=train)
    question = asked(shadows=fewer)["ruli", "remained"]
    used = np.arange(FEW) != 1  # 3 models kept sample 0, 2 kept sample 1
    assert np.isnan(question.score).all(axis=0).tolist() == (~used).tolist()
    np.testing.assert_array_equal(question.positive, TARGETS.train & ~TARGETS.forget & used)
    np.testing.assert_array_equal(question.negative, TARGETS.heldout & used)
    assert not np.isnan(asked(shadows=fewer, minimum=2)["ruli", "remained"].score).any()
    nothing = replace(TARGETS, train=TARGETS.forget)
    assert asked(nothing)["ruli", "remained"].missing == "no audited sample was kept"


def test_samples_that_are_audited_or_asked_about_are_all_there_is():
    some = np.arange(FEW) % 2 == 0
    whole, subset = (asked(*of)["ruli", "privacy"].score for of in ((), (TARGETS.columns(some), SHADOWS.columns(some))))
    np.testing.assert_allclose(subset, whole[:, some])
    never = np.arange(FEW) == 4  # neither forgotten nor held out by any target
    targets = replace(TARGETS, forget=TARGETS.forget & ~never, heldout=TARGETS.heldout & ~never)
    np.testing.assert_allclose(asked(targets)["ruli", "privacy"].score, whole[:, ~never])
    with pytest.raises(ValueError, match="no audited sample is forgotten or held out by any target"):
        asked(targets.columns(never), SHADOWS.columns(never))


def test_clipping_reaches_every_phi():
    np.testing.assert_allclose(_reference.clip(np.array([40.0, -40.0, 0.3]), 0.1), [np.log(9), np.log(0.1), 0.3])
    names = ("original", "unlearned", "retrained")
    clipped = [replace(p, **{n: _reference.clip(getattr(p, n), 0.1) for n in names}) for p in (TARGETS, SHADOWS)]
    expected = asked(*clipped, density="gaussian")
    for key, question in asked(density="gaussian", clip=0.1).items():
        np.testing.assert_allclose(question.score, expected[key].score, atol=1e-6)


def test_effects_have_the_sign_of_what_shadow_models_show():
    turned = []
    for turn in (1, -1):
        targets, shadows = (replace(p, unlearned=turn * (p.unlearned + 3 * p.forget)) for p in (TARGETS, SHADOWS))
        effect = aucs(targets, shadows)["privacy_auc"]
        mean = readings(asked(targets, shadows, density="gaussian")["ruli", "privacy"], fpr=())["auc"].value
        assert effect.value.mean() == pytest.approx(mean if turn > 0 else 1 - mean)
        assert (effect.unit.tolist(), effect.index.tolist()) == ([0, 1, 2], INDEX.tolist())
        turned.append(effect)
    # what is less familiar by as much is told as well, with every sign turned
    np.testing.assert_allclose(turned[0].value, 1 - turned[1].value)
    np.testing.assert_allclose(turned[0].influence, -turned[1].influence, atol=1e-12)
    np.testing.assert_allclose(turned[0].imagined, -turned[1].imagined, atol=1e-12)
    assert list(aucs(replace(TARGETS, retrained=None))) == ["privacy_auc"]
    # forgotten samples may be more familiar than unseen ones after unlearning, and less than to retrained models
    how, rng = {"samples": FEW, "q_u": -0.5, "q_h": -2.5, "q_R": 2}, np.random.default_rng(7)
    privacy, efficacy = aucs(*(draw(rng, models=models, **how) for models in (6, 60))).values()
    assert efficacy.value.mean() < 0.5 < privacy.value.mean()


def test_targets_without_a_side_add_nothing():
    targets = replace(TARGETS, forget=TARGETS.forget.copy(), heldout=TARGETS.heldout.copy())
    targets.forget[0], targets.heldout[1] = False, False
    assert aucs(targets)["privacy_auc"].unit.tolist() == [2]
    targets.heldout[2] = False
    assert aucs(targets) == {}


def test_what_cannot_be_tested_is_refused():
    def changed(values, at, to):
        copy = values.copy()
        copy[at] = to
        return copy

    wrong = [
        ({name: changed(getattr(TARGETS, name), 2, getattr(SHADOWS, name)[7])}, {}, rf"target 2 is also .* \({name}\)")
        for name in ("original", "unlearned")
    ]
    for targets, shadows, reason in (
        *wrong,
        ({"original": changed(TARGETS.original, (0, 0), np.nan)}, {}, "targets.original holds NaN"),
        ({}, {"forget": changed(SHADOWS.forget, slice(6, None), False)}, "shadow models as forgotten"),
    ):
        with pytest.raises(ValueError, match=reason):
            asked(replace(TARGETS, **targets), replace(SHADOWS, **shadows))
    same = np.zeros((12, FEW))  # a constant is no model of its own
    assert not asked(replace(TARGETS, original=same[:3]), replace(SHADOWS, original=same))[
        "ruli", "trained"
    ].score.any()


def test_how_much_more_one_attack_for_each_sample_finds_is_counted_as_the_paper_counts_it():
    """Section 6.2.2: accuracies .65 against .5 are 30 % more, TPRs .12 against .01 twelve times; 0 has no ratio."""
    tpr = "privacy_tpr_at_1pct_fpr"
    rows = [
        Row("privacy_accuracy", 0.65, attack="ruli", n=9), Row("privacy_accuracy", 0.5, attack="population", n=9),
        Row(tpr, 0.12, attack="ruli", n=9), Row(tpr, 0.01, attack="population", n=9),
    ]  # fmt: skip
    more = ruli.over_population(rows)
    assert [row.value for row in more] == pytest.approx([0.3, 12])
    assert {(row.attack, row.n) for row in more} == {("ruli", 9)}
    (nothing,) = ruli.over_population([rows[2], Row(tpr, 0.0, attack="population")])
    assert (math.isnan(nothing.value), "finds nothing" in nothing.note) == (True, True)
    few = Row(tpr, math.nan, attack="population", note="40 negatives are too few")
    for pair in ([rows[2], few], [replace(few, attack="ruli"), rows[3]]):
        assert ruli.over_population(pair)[0].note == few.note
    assert ruli.over_population(rows[:1]) == []


OPTIONS = protocol.Options(target_size=180, target_blocks=4, shadow_blocks=60)
LEAK = 1.5


def rows(evaluation, **options) -> dict[tuple[str, str, str], dict]:
    return {(r.attack, r.metric, about(r)): r for r in ruli.rows(evaluation, ruli.Options(**options))}


def leaky(member: Membership) -> np.ndarray:
    """Unlearning that leaves half of what was learned."""
    return np.where(member.forget, LEAK, retrained(member))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A folder with random targets, and its populations of models."""
    folder = Folder(tmp_path_factory.mktemp("plain"), memberships(OPTIONS))
    means = {"original": trained, "leaky": leaky, "retrain": retrained, "control": retrained}
    return folder, {name: folder.add(name, mean) for name, mean in means.items()}


def test_every_question_is_asked_of_its_own_models(plain):
    folder, files = plain
    evaluation = folder.evaluation(files["original"], files["leaky"], files["retrain"], files["control"])
    table = rows(evaluation, density="gaussian")
    for metric, part in ruli.effects(evaluation, ruli.Options(density="gaussian")).items():
        assert part.value.mean() == pytest.approx(table["ruli", metric, ""].value, abs=1e-12)
        assert set(part.index) == set(np.flatnonzero(folder.parts[0].weight))
    distances = {"privacy": LEAK, "efficacy": LEAK, "trained": SEEN, "remained": SEEN}
    places = {("ruli", name): distance for name, distance in distances.items()}
    for (attack, name), distance in {**places, ("u_lira", "privacy"): LEAK, ("population", "privacy"): LEAK}.items():
        row = table[attack, f"{name}_auc", ""]
        assert covers(row, ndtr(distance / math.sqrt(2)), 0.1), (attack, name, row)
        assert row.n == 180
    assert {setting for _, metric, setting in table if not metric.endswith("_roc")} == {""}
    curve = [(metric, setting) for _, metric, setting in table if metric.endswith("_roc")]
    assert sorted(curve) == sorted((f"{name}_roc", f"rate={rate:g}") for name in ruli.CURVES for rate in ruli.CURVE)
    assert table["ruli", "privacy_roc", "rate=0.05"].value == table["ruli", "privacy_tpr_at_5pct_fpr", ""].value


def test_only_target_samples_are_asked_about(plain, tmp_path):
    # canaries are forgotten among others whose phi would give them away
    selection = Selection(np.arange(SAMPLES) % 2 == 0, np.zeros(SAMPLES, bool), np.zeros(SAMPLES))
    options = protocol.Options(
        target_set="canary", target_size=120, target_blocks=4, shadow_blocks=36, canary_rate=0.5, attack_size=300
    )
    folder = Folder(tmp_path, memberships(options, selection), selection)
    queried = folder.parts[0].weight > 0
    original = folder.add("original", trained)
    unlearned = folder.add("unlearned", lambda of: np.where(of.forget & ~queried, 50.0, retrained(of)))
    table = rows(folder.evaluation(original, unlearned, folder.add("retrain", retrained)))
    assert table["ruli", "privacy_auc", ""].n == 120
    for name in ("privacy", "efficacy"):
        assert covers(table["ruli", f"{name}_auc", ""], 0.5, 0.15), name
    assert ("ruli", "privacy_auc", "target=vulnerable") not in table  # all of them are
    assert blind_rows(folder.evaluation(original, unlearned))["blind_auc"].n == 100


def test_two_kinds_of_targets_are_read_apart(tmp_path):
    third = np.arange(SAMPLES) % 3
    selection = Selection(third == 0, third == 1, np.zeros(SAMPLES))
    options = protocol.Options(
        target_set="vulnerable_and_protected", target_size=120, target_blocks=4, shadow_blocks=40
    )
    folder = Folder(tmp_path, memberships(options, selection), selection)

    def forgets_the_protected_only(member):
        values = np.where(member.retain & selection.vulnerable, -1.0, retrained(member))
        return np.where(member.forget & selection.vulnerable, 2.0, values)

    original, unlearned = folder.add("original", trained), folder.add("unlearned", forgets_the_protected_only)
    table = rows(folder.evaluation(original, unlearned, folder.add("retrain", retrained)), density="gaussian")
    assert covers(table["ruli", "privacy_auc", "target=vulnerable"], ndtr(math.sqrt(2)), 0.12)
    assert covers(table["ruli", "privacy_auc", "target=protected"], 0.5, 0.15)
    both = table["ruli", "privacy_auc", ""]
    assert 0.6 < both.value < 0.85
    assert table["ruli", "privacy_roc", "target=vulnerable;rate=0.2"].n == 120
    sizes = [table["ruli", "privacy_auc", f"target={kind}"].n for kind in ("vulnerable", "protected")]
    assert (both.n, sizes) == (240, [120, 120])
    # table 3: of kept vulnerable samples Φ(−1) are still right; of all that the targets keep far more
    row = table["", "accuracy", "role=retain;target=vulnerable"]
    assert covers(row, ndtr(-1.0), 0.1)
    assert row.n == 120


def test_an_audit_needs_shadow_models(plain):
    folder, files = plain
    evaluation = folder.evaluation(files["original"][:1], files["leaky"][:1], files["retrain"][:1])
    evaluation.membership_files = evaluation.membership_files[:1]
    with pytest.raises(ValueError, match="there are no shadow models; draw them by protocol ruli"):
        rows(evaluation)
    assert ruli.effects(evaluation, ruli.Options()) == {}


def blind_rows(evaluation, **options) -> dict[str, dict]:
    settings = {"metrics": {"blind": blind.Options(**options).model_dump(mode="json")}, "seed": 0}
    return {r.metric: r for r in call.rows(blind, evaluation, settings)}


def halves(tmp_path) -> Folder:
    """Models of random halves."""
    options, of = lira_selection.Options(pairs=24), data()
    parts = [
        Membership.concatenate([lira_selection.draw(b, "pairs", of, options, 1) for b in range(start, start + 8)])
        for start in range(0, 24, 8)
    ]
    return Folder(tmp_path, parts)


def test_a_selection_finds_what_was_planted_in_the_models_before_unlearning(tmp_path):
    planted = np.arange(SAMPLES) % 20 == 0  # 35, of which 5 belong to the test part
    folder = halves(tmp_path)
    original = folder.add("original", lambda member: np.where(member.train & planted, 10.0, 0.0))
    evaluation = folder.evaluation(original, folder.add("unlearned", lambda member: np.zeros(member.train.shape)))
    options = vulnerability.Options(bandwidth=1.0, fpr=0.01, band=0.1)
    selection = vulnerability.select(evaluation, options)
    pool = data().part == 0
    np.testing.assert_array_equal(selection.vulnerable & planted, planted & pool)
    assert (selection.vulnerable & ~planted).sum() <= 5
    assert selection.protected[pool & ~planted].mean() > 0.3
    assert not selection.protected[planted].any()
    for verdict in (selection.vulnerable, selection.protected, selection.ratio != 0):
        assert not verdict[~pool].any()
    assert selection.ratio[planted & pool].min() > selection.ratio[~planted].max() + 5
    # rows count the same verdicts
    numbers = {r.metric: r for r in vulnerability.rows(evaluation, options)}
    assert numbers["highly_memorized"].value == selection.vulnerable.sum()
    # 30 of 600 members are planted; the rate of the others is that of false alarms
    assert covers(numbers["lira_tpr_at_1pct_fpr"], 0.05 + 0.95 * 0.01, 0.1)
    assert "one threshold for 48 targets" in numbers["lira_tpr_at_0.01pct_fpr"].note
