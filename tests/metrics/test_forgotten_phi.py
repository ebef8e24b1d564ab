"""Forgotten samples alone, unlearned against retrained models: closed forms, when it decides, and its error rates."""

import numpy as np
import pytest
from scipy import stats
from unlearning_audit import audit
from unlearning_audit.comparisons import distances, verdicts
from unlearning_audit.evaluation.contributions import Standard, single
from unlearning_audit.metrics import forgotten_phi
from unlearning_audit.stats import decide, levels, phi

from comparison_cases import MARGINS
from folder_cases import Y, population, same_forget
from slow_cases import slow

SAMPLES, HELDOUT, CLASSES = 50, 60, 3


def world(shift, *, models=5, same_labels=False, heldout=True):
    """Arrays of models that unlearned a class: none of them names it, which leaves φ near −5; by ``shift`` more."""
    rng = np.random.default_rng(1)
    y = np.r_[np.zeros(SAMPLES, int), rng.integers(0 if same_labels else 1, CLASSES, HELDOUT)]
    forget = np.arange(len(y)) < SAMPLES

    def logits(level, count):
        z = rng.normal(0, 0.3, size=(count, len(y), CLASSES))
        of_model = level + 0.15 * rng.normal(size=(count, 1))
        z[:, np.arange(len(y)), y] += np.where(forget, of_model, 3)
        return z

    sides = {"forget": forget, "heldout": ~forget} if heldout else {"forget": np.ones(len(y), bool)}
    return {
        "target": logits(-5 + shift, models),
        "retrain": logits(-5, 5),
        "original": logits(5, 2),
        "labels": y,
    } | sides


def line(arrays):
    found = audit(**arrays, attacks=["confidence"], bootstrap=100, progress=False)
    return found, found.verdicts.set_index("method").loc["mine"]


def test_it_is_the_mean_over_two_forgotten_samples_at_least():
    case = population(same_forget(3, (0, 1)))
    (row,) = forgotten_phi.rows(case, forgotten_phi.Options(), None)
    assert row.value == pytest.approx(phi(logits=case.unlearned, y=Y)[:, :2].mean())
    with pytest.raises(ValueError, match="fewer than two forgotten samples"):
        forgotten_phi.rows(population(same_forget(3, (0,))), forgotten_phi.Options(), None)


@pytest.mark.filterwarnings("ignore")
def test_a_class_that_leaves_traces_is_found_where_the_auc_lies_at_its_floor():
    found, mine = line(world(1.0))
    auc = found.metrics.query("metric == 'auc' and method in ('mine', 'retrain')")["value"]
    assert (auc < 0.05).all()
    assert (mine["verdict"], mine["found_by"]) == ("distinguishable", "forgotten_phi")
    arrays = world(1.0)
    forget = arrays["forget"]

    def phi(z):
        z = z[:, forget]
        return (z[..., 0] - np.log(np.exp(z[..., 1:]).sum(-1))).mean(1)

    value, reference = phi(arrays["target"]), phi(arrays["retrain"])
    assert mine["distance"] == pytest.approx(value.mean() - reference.mean(), abs=1e-5)
    row = found.metrics.query("metric == 'forgotten_phi' and method == 'mine'")["value"]
    assert row.item() == pytest.approx(value.mean(), abs=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_it_decides_where_nothing_is_held_out_and_elsewhere_it_is_shown():
    _, alone = line(world(1.0, heldout=False))
    assert (alone["verdict"], alone["found_by"]) == ("distinguishable", "forgotten_phi")
    found, beside = line(world(1.0, same_labels=True))
    assert "forgotten_phi" not in str(beside["found_by"])
    assert len(found.metrics.query("metric == 'forgotten_phi'")) == 3


def part(rng, models, distance=0.0):
    """Contributions of models whose φ has a spread of .1 over models and difficulties that all share."""
    hard = np.random.default_rng(0).normal(size=40)
    phi = hard + distance + 0.1 * rng.normal(size=(models, 1)) + 0.2 * rng.normal(size=(models, 40))
    read = levels.per_model(value=phi, weight=np.ones_like(phi))
    return single(
        **vars(read), unit=np.zeros(models, np.int64), standard=forgotten_phi.DECIDES["forgotten_phi"]
    )  # fmt: skip


def judged(rng, models, retrained, distance):
    parts = {"mine": part(rng, models, distance), "none": part(rng, models, 9.0), "retrain": part(rng, retrained)}
    cases = {name: {"forgotten_phi": value} for name, value in parts.items()}
    rows = verdicts.compare(cases, {}, margins=MARGINS, draws=50, seed=0).verdicts
    return parts, next(row for row in rows if row["method"] == "mine")


def test_the_p_value_is_that_of_student_with_the_spread_of_retrained_models():
    """Of one audited model: t = d / (s √(1 + 1/n)) with n − 1 degrees of freedom, once for each of two tests (Holm)."""
    rng = np.random.default_rng(4)
    parts, row = judged(rng, 1, 6, 0.25)
    values = parts["retrain"].value[0]
    t = row["distance"] / (values.std(ddof=1) * np.sqrt(1 + 1 / 6))
    assert row["distance"] == pytest.approx(parts["mine"].value[0, 0] - values.mean())
    p = 2 * stats.t.sf(abs(t), 5)
    assert p < row["p_holm"] + 1e-9
    assert row["p_holm"] == pytest.approx(p, rel=0.15) or row["p_holm"] == pytest.approx(2 * p, rel=0.15)


AUDITS = slow((5, 5, 1000), (1, 5, 1000), (20, 5, 1000))


def bound(audits):
    """What a share of at most α lies below in all but 1 of 1,000 simulations."""
    return 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / audits)


@pytest.mark.parametrize(("models", "retrained", "audits"), [(5, 5, 60), *AUDITS])
def test_a_method_that_is_retraining_is_seldom_said_to_leave_traces(models, retrained, audits):
    rng = np.random.default_rng(models)
    wrong = sum(judged(rng, models, retrained, 0.0)[1]["p_holm"] <= decide.ALPHA for _ in range(audits))
    assert wrong / audits < bound(audits)


@pytest.mark.parametrize(("models", "retrained", "audits"), [(5, 5, 60), *AUDITS])
def test_a_method_at_the_margin_is_seldom_said_to_be_like_retraining(models, retrained, audits):
    rng = np.random.default_rng(10 + models)
    wrong = sum(judged(rng, models, retrained, 0.2)[1]["verdict"] == decide.EQUIVALENT for _ in range(audits))
    assert wrong / audits < bound(audits)


# ---------------------------------------------------------------- numbers at an end


def at(level, models=6, spread=0.002):
    value = np.clip(level + spread * np.random.default_rng(int(1000 * level)).normal(size=models), 0, 1)
    standard = Standard(1, "auc", lowest=0.0, highest=1.0)
    return single(value=value, unit=np.zeros(models, np.int64), standard=standard, influence=np.full((models, 9), 1e-4))


@pytest.mark.parametrize(("level", "verdict"), [(0.0, "inconclusive"), (0.5, "equivalent")])
def test_no_equivalence_rests_on_a_number_at_its_end(level, verdict):
    cases = {name: {"auc": at(value)} for name, value in (("mine", level), ("retrain", level), ("none", 0.9))}
    rows = verdicts.compare(cases, {}, margins=MARGINS, draws=50, seed=0).verdicts
    row = next(row for row in rows if row["method"] == "mine")
    assert row["verdict"] == verdict
    assert ("lie at the floor" in row["note"]) == (verdict == "inconclusive")


def test_a_number_within_two_standard_errors_of_its_end_lies_there():
    values = np.array([0.02, 0.0, 0.04, 0.02])
    error = values.std(ddof=1) / 2
    part = single(value=values, unit=np.zeros(4, np.int64), standard=Standard(1, "auc", lowest=0.0, highest=1.0))
    assert values.mean() > 2 * error
    assert distances._end(part, 0) == ""
    nearer = single(value=values - 0.02 + 1.9 * error, unit=part.unit, standard=part.standard)
    assert distances._end(nearer, 0) == "floor"
    assert distances._end(at(1.0), 0) == "ceiling"
