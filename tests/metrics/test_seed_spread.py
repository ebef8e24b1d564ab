"""Training seeds and unlearning seeds: a textbook analysis of variance, coverage, and what a design cannot tell."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.comparisons import planning
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _null, seed_spread
from unlearning_audit.metrics import competition as score
from unlearning_audit.protocols import competition
from unlearning_audit.stats import nested

from ruli_cases import data


@pytest.mark.parametrize(("training", "unlearning"), [(1.0, 0.3), (0.3, 1.0), (0.0, 1.0)])
@pytest.mark.parametrize("shape", [(4, 2), (8, 4)])
def test_intervals_cover(training, unlearning, shape):
    rng, hits, audits = np.random.default_rng(0), np.zeros(2), 600
    original = np.repeat(np.arange(shape[0]), shape[1])
    for _ in range(audits):
        value = training * rng.standard_normal(shape[0])[original] + unlearning * rng.standard_normal(len(original))
        estimates = nested.deviations(value=value, original=original)
        hits += [
            estimate.low <= truth <= estimate.high
            for estimate, truth in zip(estimates, (training, unlearning), strict=True)
        ]
    assert (hits / audits >= 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / audits)).all(), hits / audits


def test_what_a_design_does_not_show_is_said():
    training, unlearning = nested.deviations(value=np.arange(4.0), original=np.arange(4))
    assert training.note == unlearning.note == nested.SINGLE
    training, unlearning = nested.deviations(value=np.arange(4.0), original=np.zeros(4))
    assert training.note == nested.ALONE
    assert unlearning.value == pytest.approx(np.std(np.arange(4), ddof=1))
    with pytest.raises(ValueError, match="finite"):
        nested.deviations(value=np.array([np.nan, 1.0]), original=np.zeros(2))


def test_copies_share_their_original_and_differ_in_how_they_are_unlearned():
    options = competition.Options(share=0.05, originals="many", copies=2, blocks=2, models_per_block=4)
    member = Membership.concatenate([competition.draw(block, "all", data(), options, 3) for block in range(2)])
    first, copies = member.originals()
    assert len(first) == 4
    assert sorted(np.bincount(copies).tolist()) == [2, 2, 2, 2]
    assert len(set(member.unlearning_seeds())) == 8
    alone = competition.draw(0, "all", data(), competition.Options(share=0.05, originals="many"), 3)
    assert alone.replicate is None


def test_copies_that_leave_an_original_incomplete_are_refused():
    with pytest.raises(ValueError, match="copies must divide the number of models, 20"):
        competition.Options(originals="many", copies=3, blocks=2, models_per_block=10)
    with pytest.raises(ValueError, match=r"copies \(2\) need originals: many"):
        competition.Options(copies=2, blocks=2, models_per_block=10)


@pytest.mark.parametrize(
    ("originals", "copies", "groups"), [(8, 4, 16), (16, 2, 16), (17, 2, 16), (18, 3, 16), (24, 2, 5)]
)
def test_copies_of_an_original_are_left_out_together(originals, copies, groups):
    """What they share would else look like the spread of models that are independent of each other."""
    numbers = np.repeat(np.arange(originals), copies)
    case = SimpleNamespace(membership=SimpleNamespace(originals=lambda: (np.arange(originals), numbers)))
    options = score._with_whole_originals(case, score.Options(groups=groups))
    subsets = _null.subsets(len(numbers), len(numbers), options)[1:]
    assert len(subsets) >= 3
    for stay, _ in subsets:
        by_original = stay.reshape(originals, copies)
        assert (by_original.all(axis=1) | ~by_original.any(axis=1)).all()
    assert score._with_whole_originals(
        SimpleNamespace(membership=SimpleNamespace(originals=lambda: (np.arange(8), np.arange(8)))), options
    ) is options  # fmt: skip


def test_more_seeds_bring_what_their_variances_foretell():
    """The spread of differences in mean confidence, over 2,000 studies of today's size and of larger ones."""
    training, unlearning, retrained = 1.0, 0.6, 0.8
    rows = {
        "finetune": [
            Row("sd_of_training", training, n=8), Row("sd_of_unlearning", unlearning, n=32), Row("accuracy", 0.5)
        ],
        "retrain": [Row("sd_of_training", 0.0, n=8), Row("sd_of_unlearning", retrained, n=32)],
        "salun": [Row("sd_of_training", note="alone", n=1), Row("sd_of_unlearning", unlearning, n=32)],
    }  # fmt: skip
    plans = planning.seeds(rows)
    assert {row["method"] for row in plans} == {"finetune"}
    rng = np.random.default_rng(0)
    for row in plans:
        if (row["what"], row["times"]) not in (("today", 1.0), ("pairs", 4.0), ("models", 4.0)):
            continue
        p, m = row["units"], round(row["models"])
        assert (p, m) == {"today": (8, 4), "pairs": (32, 4), "models": (8, 16)}[row["what"]]
        assert (row["pair"], row["model"]) == (training**2, pytest.approx(unlearning**2 + retrained**2))
        shape = (2_000, p, m)
        phi = training * rng.standard_normal((2_000, p, 1)) + unlearning * rng.standard_normal(shape)
        apart = (phi - retrained * rng.standard_normal(shape)).mean(axis=(1, 2))
        t = stats.t_quantile(p=0.975, dof=p - 1)
        assert row["half_width"] == pytest.approx(t * apart.std(), rel=0.08)


def test_the_spread_of_retrained_training_seeds_is_not_taken_for_that_of_unlearning():
    both = [Row("sd_of_training", 1.0, n=8), Row("sd_of_unlearning", 0.5, n=32)]
    assert planning.seeds({"finetune": both, "retrain": both[:1]}) == []
    turned = planning.seeds({"finetune": both[::-1], "retrain": both[::-1]})
    assert turned == planning.seeds({"finetune": both, "retrain": both})
    assert turned


def test_the_rows_are_those_of_the_mean_confidence():
    member = competition.draw(
        0, "all", data(), competition.Options(share=0.05, originals="many", copies=2, models_per_block=6), 3
    )
    forget = np.flatnonzero(member.forget.any(axis=0))
    phi = np.tile(np.array([0.0, 2.0, 2.0, 4.0, 6.0, 10.0])[:, None], (1, len(forget)))
    phi[:, 0] += 1.0
    phi[:, 1] -= 1.0
    case = SimpleNamespace(
        membership=member, data=data(), unlearned_files=[], answers=lambda _: SimpleNamespace(phi=lambda y, rows: phi)
    )
    rows = {row.metric: row.value for row in seed_spread.rows(case, seed_spread.Options(), None)}
    assert rows == {"sd_of_training": pytest.approx(np.sqrt(11)), "sd_of_unlearning": pytest.approx(2.0)}
