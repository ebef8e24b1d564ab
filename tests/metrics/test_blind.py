"""The check without models: sides that can be told apart by their data alone are seen, random sides are not."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit.metrics import blind

from ruli_cases import covers


def blind_rows(y, forget, heldout, features=None, seed=0):
    rows = blind.evaluate(
        y=y,
        forget=forget,
        heldout=heldout,
        features=features,
        options=blind.Options(),
        rng=np.random.default_rng(seed),
    )
    return {r.metric: r for r in rows}


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
            inside[name] += rows[name].ci_low <= 0.5 <= rows[name].ci_high
        inside["label_overlap"] += rows["label_overlap"].note == ""
        assert rows["blind_auc"].n == 500
    # 95 % each; 97.5 % for the one-sided flag of the labels
    for name, count in inside.items():
        assert count >= (0.95 - 3 * math.sqrt(0.95 * 0.05 / repeats)) * repeats, name


def test_leaky_sides_are_seen():
    rng = np.random.default_rng(19)
    # Few features, so that the learned rule is nearly as good as the best one, of which the truth is known.
    y, x = rng.integers(0, 10, 600), rng.normal(size=(600, 2))
    forget = rng.random(600) < 0.5
    x[forget, 0] += 1.5  # two unit Gaussians at distance 1.5
    rows = blind_rows(y, forget, ~forget, x)
    assert covers(rows["blind_auc"], ndtr(1.5 / math.sqrt(2)), 0.15)
    assert covers(rows["blind_accuracy"], ndtr(0.75), 0.15)
    by_label = blind_rows(y, y < 4, y >= 6)
    assert by_label["label_overlap"].value == 0
    assert "labels tell the sides apart" in by_label["label_overlap"].note
    assert math.isnan(by_label["blind_auc"].value)
    assert "no features" in by_label["blind_auc"].note
    with pytest.raises(ValueError, match="at least 5 samples on each side"):
        blind_rows(y, np.arange(600) < 4, np.arange(600) >= 6)


def test_texts_are_bags_of_tokens():
    x = np.int32([[5, ~np.int32(7), 5, -1], [7, 9, 5, 0], [9, ~np.int32(0), 3, -1]])
    assert blind.bags(x).tolist() == [[0, 2, 1, 0], [1, 1, 1, 1], [1, 0, 0, 1]], "of 0, 5, 7 and 9; padding is no token"
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 40, (400, 12)), np.zeros(400, int)
    forget = rng.random(400) < 0.5
    plain = blind_rows(y, forget, ~forget, blind.principal(blind.bags(x), 64))["blind_auc"]
    assert plain.ci_low <= 0.5 <= plain.ci_high
    x[forget, 3] = 7
    leaky = blind_rows(y, forget, ~forget, blind.principal(blind.bags(x), 64))["blind_auc"]
    assert leaky.ci_low > 0.7, "the count of that token alone has an AUC of .89"


def test_label_overlap_is_that_of_histograms():
    y = np.array([0, 0, 1, 1, 2, 2, 2, 2])
    a, b = np.arange(8) < 4, np.arange(8) >= 4
    assert blind.label_overlap(y, a, b) == 0
    assert blind.label_overlap(y, a, a) == 1
    assert blind.label_overlap(np.array([0, 0, 0, 1, 0, 1, 1, 2]), a, b) == 0.5  # ¼ + ¼ + 0
