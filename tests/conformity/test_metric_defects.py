"""The published ratio of RULI, by a small port of its lines, and ours with the options of the study of the paper."""

import numpy as np
import pytest
import yaml
from scipy.special import expit
from sklearn.neighbors import KernelDensity
from unlearning_audit.metrics import _reference, ruli

from workplace import ROOT

pytestmark = pytest.mark.slow


def test_the_study_of_the_paper_computes_the_published_ratio():
    """S = p/(p + q) of sklearn's KernelDensity at its bandwidth of 1, phi clipped: same values, same decisions."""
    options = yaml.safe_load((ROOT / "studies" / "ruli.yaml").read_text())["scenarios"]["compat"]["metrics"]["ruli"]
    compat = ruli.Options(**options)
    rng = np.random.default_rng(5)
    phi, at = rng.normal(size=(30, 20)) * 4 + 3, rng.normal(size=(2, 20)) * 6
    out = np.arange(30) % 2 == 0
    masks = [np.broadcast_to(m[:, None], phi.shape) for m in (~out, out)]
    clipped, query = _reference.clip(phi, compat.clip), _reference.clip(at, compat.clip)
    p, q = (_reference.log_density(clipped, m, query, side="x", bandwidth=compat.bandwidth) for m in masks)
    published = np.empty(at.shape)
    for s in range(20):
        a, b = (
            np.exp(KernelDensity().fit(clipped[side, s, None]).score_samples(query[:, s, None])) for side in (~out, out)
        )
        published[:, s] = a / (a + b)
    np.testing.assert_allclose(expit(p - q), published, rtol=1e-9)
    np.testing.assert_array_equal(p - q > 0, published > 0.5)
    assert compat.test_model == "original"
    assert compat.population == "trained"
