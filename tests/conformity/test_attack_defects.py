"""Widespread formulas that are wrong, beside ours: equal where the mistake does not matter, different where it does."""

import numpy as np
import pytest
from sklearn.metrics import roc_curve
from unlearning_audit import stats
from unlearning_audit.attacks import kde, lira, modified_entropy, rmia
from unlearning_audit.evaluation import density
from unlearning_audit.evaluation.reference import Reference
from unlearning_audit.stats.readings import Question, tprs

pytestmark = pytest.mark.slow


@pytest.fixture
def rng():
    return np.random.default_rng(41)


def softmax(logits):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def column_m_entropy(p, y):
    """The copy in SalUn, l1-sparse and RULI: whole columns are exchanged, and log p stands for log(1 − p)."""
    weight, log = p.copy(), np.log(p)
    weight[:, y] = 1 - p[:, y]
    return -(weight * log).sum(-1)


def test_modified_entropy_depends_on_the_label_and_not_on_the_batch(rng):
    p = np.array([0.7, 0.2, 0.1])
    computed = [modified_entropy.modified_entropy(np.log(p)[None], np.array([c]))[0] for c in range(3)]
    batch = np.tile(p, (3, 1))
    published = column_m_entropy(batch, np.arange(3))
    assert published[0] == published[1] == published[2]  # every class occurs in the batch, so no label counts any more
    assert np.ptp(computed) > 2
    np.testing.assert_allclose(modified_entropy.modified_entropy(np.log(batch), np.arange(3)), computed, rtol=1e-12)

    logits, y = 3 * rng.normal(size=(2000, 10)), rng.integers(10, size=2000)
    alone = column_m_entropy(softmax(logits[:1]), y[:1])[0]
    together = column_m_entropy(softmax(logits), y)[0]
    assert together > 5 * alone
    value = modified_entropy.modified_entropy(logits, y)
    assert value[0] == modified_entropy.modified_entropy(logits[:1], y[:1])[0]
    assert value[0] not in (pytest.approx(alone), pytest.approx(together))
    assert np.corrcoef(value, column_m_entropy(softmax(logits), y))[0, 1] < 0.8


def published_fixed_variance(phi, pool, member):
    """The online score with one spread as two published scripts have it: out's is taken from the in-scores."""
    score = np.zeros(phi.shape)
    width = pool[member].std()
    for j in range(pool.shape[1]):
        inside, outside = np.median(pool[member[:, j], j]), np.median(pool[~member[:, j], j])
        score[:, j] = ((phi[:, j] - outside) ** 2 - (phi[:, j] - inside) ** 2) / (2 * width**2)
    return score


@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_lira_takes_the_out_spread_from_the_out_scores(rng, ratio):
    models, samples = 64, 200
    member = rng.permuted(np.tile(np.arange(models) % 2 == 0, (samples, 1)), axis=1).T
    noise = rng.normal(size=(models, samples))
    for side in (member, ~member):
        noise[side] /= noise[side].std()
    pool = noise * np.where(member, 1.0, ratio) + 2.0 * member
    inside = rng.random((20, samples)) < 0.5
    phi = rng.normal(size=inside.shape) * np.where(inside, 1.0, ratio) + 2.0 * inside
    computed = lira.online(phi, pool, member, ~member, lira.Options(spread="global"))
    published = published_fixed_variance(phi, pool, member)
    outside = np.array([np.median(pool[~member[:, j], j]) for j in range(samples)])
    # what is missing is the out Gaussian's own width: nothing at equal spreads
    correction = np.log(ratio) + (phi - outside) ** 2 / 2 * (1 / ratio**2 - 1)
    np.testing.assert_allclose(computed, published + correction, rtol=1e-9, atol=1e-9)
    if ratio == 1:
        np.testing.assert_allclose(computed, published, rtol=1e-9, atol=1e-9)
    else:
        aucs = [stats.auc(score=score.ravel(), positive=inside.ravel()) for score in (computed, published)]
        assert aucs[0].low > aucs[1].high


def test_lira_offline_does_not_accuse_the_unusually_low(rng):
    """The published offline score, −log N(phi; out), is two-sided: far below out counts as far above."""
    pool = rng.normal(size=(50, 30))
    nobody = np.zeros(pool.shape, dtype=bool)
    low, high = np.full((1, 30), -4.0), np.full((1, 30), 4.0)
    median, width = np.median(pool, 0), pool.std(0)
    published = [-density.gaussian(phi, median, width) for phi in (low, high, 0 * low)]
    assert (published[0] > published[2]).all()
    assert (published[1] > published[2]).all()
    computed = [lira.offline(phi, pool, ~nobody, lira.Options()) for phi in (low, high, 0 * low)]
    assert (computed[0] < computed[2]).all()
    assert (computed[2] < computed[1]).all()


def test_rmia_and_its_loss_baseline_have_the_right_sign(rng):
    """The published loss baseline returns −p_y and says that larger means member."""
    member = rng.permuted(np.tile(np.arange(6) % 2 == 0, (300, 1)), axis=1).T
    p, pool = (1 / (1 + np.exp(-rng.normal(size=member.shape) - 1.5 * member)) for _ in range(2))
    y = np.zeros(300, dtype=int)
    logits, reference_logits = (np.stack([np.log(x), np.log1p(-x)], axis=-1) for x in (p, pool))
    computed, _ = rmia.score(logits, y, Reference(reference_logits, y, member, ~member), rmia.Options(), rng)
    assert stats.auc(score=computed.ravel(), positive=member.ravel()).low > 0.7
    published = stats.auc(score=-p.ravel(), positive=member.ravel())
    assert published.high < 0.3


def zero_padded_mean(p, nonmember, models):
    """The published mean over out models: zeros for in models, sorted, the first ``models`` kept."""
    return -np.sort(-np.where(nonmember, p, 0.0), axis=0)[:models].mean(axis=0)


def test_rmia_averages_only_models_that_exist():
    p = np.array([[0.8, 0.8], [0.6, 0.6], [0.4, 0.4], [0.9, 0.2]])
    nonmember = np.array([[True, True], [True, False], [False, False], [False, True]])
    computed = rmia.Prior.of(np.log(p), ~nonmember, nonmember, rmia.Options(mode="offline", a=1.0)).of_all
    np.testing.assert_allclose(computed, [0.7, 0.5])
    np.testing.assert_allclose(zero_padded_mean(p, nonmember, 2), computed)  # equal with as many as it asks for
    np.testing.assert_allclose(zero_padded_mean(p, nonmember, 3), [1.4 / 3, 1.0 / 3])  # zeros for the third


def nearest_tpr(score, positive, fpr):
    """RULI's rule: the TPR at the point of the ROC curve whose FPR is nearest."""
    rates = roc_curve(positive, score, drop_intermediate=False)
    return rates[1][np.argmin(np.abs(rates[0] - fpr))]


def test_tpr_is_the_largest_within_the_rate_and_empty_where_it_cannot_be_read(rng):
    positive = np.arange(800) < 400
    for _ in range(5):
        score = rng.normal(size=800) + 2 * positive
        first = np.argmax(~positive[np.argsort(-score)])
        assert nearest_tpr(score, positive, 0.001) == 0.0  # 1/400 is further from .001 than 0 is
        question = Question(score[None], positive[None], ~positive[None])
        readings = tprs(question, fpr=(0.001, 0.01))
        empty, at_one = readings.values()
        assert np.isnan(empty.value)
        assert "400 negatives" in empty.note
        largest = (score[positive] > np.sort(score[~positive])[-5]).mean()
        assert at_one.value == pytest.approx(largest, abs=1e-12)
        assert largest >= first / 400
        assert nearest_tpr(score, positive, 0.01) < largest


def published_phi(logits, y):
    """RULI's score: softmax in float32, both parts cut at 1e-6."""
    p = softmax(logits.astype(np.float32))
    p_label = np.take_along_axis(p, y[..., None], -1)[..., 0]
    rest = p.sum(-1) - p_label
    return np.log(np.clip(p_label, 1e-6, 1 - 1e-6)) - np.log(np.clip(rest, 1e-6, None))


def test_kde_of_ruli_and_the_ratio_that_underflows(rng):
    """With bandwidth 1 and clip 1e-6 we reproduce the published score; without the clip only log space survives."""
    samples = 200
    y = rng.integers(3, size=samples)
    member = rng.random((4, samples)) < 0.5
    logits = 4 * rng.normal(size=(4, samples, 3)).astype(np.float32)
    np.put_along_axis(logits, np.broadcast_to(y, (4, samples))[..., None], 6.0, axis=-1)
    phi = published_phi(logits, np.broadcast_to(y, (4, samples)))
    reference = Reference(logits, y, member, ~member)

    def ratio(at, points):
        return np.exp(-0.5 * (at[:, None] - points) ** 2).mean(-1) / np.sqrt(2 * np.pi)

    p, q = (ratio(phi[0].astype(np.float64), phi[side].astype(np.float64)) for side in (member, ~member))
    computed, decision = kde.score(logits[:1], y, reference, kde.Options(bandwidth=1.0, clip=1e-6), rng)
    np.testing.assert_allclose(1 / (1 + np.exp(-computed[0])), p / (p + q), atol=2e-3)
    far = np.full((1, samples, 3), 0, dtype=np.float32)
    np.put_along_axis(far, y[None, :, None], 80.0, axis=-1)
    with np.errstate(invalid="ignore"):
        p, q = (ratio(np.full(1, 80.0), phi[side].astype(np.float64)) for side in (member, ~member))
        assert np.isnan(p / (p + q)).all()
    assert np.isfinite(kde.score(far, y, reference, kde.Options(bandwidth=1.0), rng)[0]).all()
    assert decision.shape == (1, samples)
