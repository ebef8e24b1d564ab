"""Who saw what: sizes, swaps, halves, independence of blocks, and that every draw is uniform."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.plugins import declarations, registry

from protocol_cases import PROTOCOLS, assert_equal, block_of, options_of, populations, samples

EVERY = pytest.mark.parametrize(("name", "population"), [(n, p) for n in PROTOCOLS for p in populations(n)])


# ---------------------------------------------------------------- what holds for all


@EVERY
def test_a_block_keeps_every_promise_of_a_membership(tmp_path, name, population):
    data = samples()
    for block in (0, 3):
        m = block_of(name, block, data, population=population)
        m.write(tmp_path / "membership.npz")  # checks shapes, types, forget within train, heldout outside
        assert_equal(m, Membership.read(tmp_path / "membership.npz", samples=len(data.y)))
        assert not (m.train | m.heldout)[:, data.part == 1].any(), "no test sample is part of the game"
        assert m.forget.any(1).all() == registry.protocol(name).forgets
        assert m.retain.any(1).all()
        assert set(m.block) == {block}


@EVERY
def test_all_models_of_all_blocks_have_equally_many_samples(name, population):
    blocks = [block_of(name, block, population=population) for block in range(4)]
    for field in ("train", "forget", "retain", "heldout"):
        assert len({count for m in blocks for count in getattr(m, field).sum(1)}) == 1, field


@EVERY
def test_a_block_depends_on_its_number_and_the_seed_alone(name, population):
    module = registry.load("protocols", name)
    small, large = (
        block_of(name, 2, population=population, **dict.fromkeys(module.PROTOCOL.counts, number)) for number in (3, 30)
    )  # fmt: skip
    assert_equal(small, large)
    assert_equal(small, block_of(name, 2, population=population, **dict.fromkeys(module.PROTOCOL.counts, 3)))
    assert not set(block_of(name, 2, seed=1, population=population).seed) & set(small.seed)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_has_what_the_workflow_asks_of_it(name):
    module, record = registry.load("protocols", name), registry.protocol(name)
    assert set(record.offers) <= set(declarations.OFFERS)
    assert registry.defaults(record.offers)
    assert set(record.references) <= {"retrain", "retrain_control"}
    counts = {field: 7 + i for i, field in enumerate(module.PROTOCOL.counts)}
    assert list(module.blocks(options_of(name, **counts)).values()) == list(counts.values())
    several = {"models_per_split": 2, "models_per_block": 5, "shadow_models_per_split": 2}
    fields = {field: value for field, value in several.items() if field in module.Options.model_fields}
    assert module.models(options_of(name, **fields)) == len(block_of(name, **fields).seed)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_model_has_a_seed_of_its_own(name):
    blocks = [block_of(name, block, population=p) for p in populations(name) for block in range(20)]
    seeds = np.concatenate([m.seed for m in blocks])
    if name == "competition":  # there all models start from one original
        assert len(set(seeds)) == 1
        seeds = np.concatenate([m.unlearning_seeds() for m in blocks])
    assert len(set(seeds.tolist())) == len(seeds)


# ---------------------------------------------------------------- interclass confusion


def test_confused_samples_wear_the_label_of_the_other_class():
    data = samples(203)
    data.part[np.flatnonzero((data.y == 5) & (data.part == 0))[15:]] = 1  # fewer of one class: as many of the other
    for share, k in ((1.0, 15), (0.5, 7), (0.3, 4), (0.07, 1)):
        m = block_of("interclass_confusion", data=data, classes=(2, 5), share=share)
        confused = m.forget[0]
        assert [(confused & (data.y == c)).sum() for c in (2, 5)] == [k, k]
        expected = np.where(confused, 7 - data.y, data.y)  # 2 is 5, and 5 is 2
        for name, values in (("forget", confused), ("labels", expected), ("train", data.part == 0)):
            np.testing.assert_array_equal(getattr(m, name), np.tile(values, (3, 1)))
        assert not m.heldout.any()
    assert not np.array_equal(block_of("interclass_confusion", 1, data, classes=(2, 5), share=share).forget, m.forget)


def test_a_confusion_may_be_of_the_half_that_is_the_game_s_in_the_swap_test():
    """Tu, Hu & Ma 2024, §4.4: "the same setup as in Table 1", where models see samples of the game's half alone."""
    data = samples(203)
    m = block_of("interclass_confusion", data=data, pool="half")
    game = block_of("swap", data=data)
    half = (game.train | game.heldout)[~game.shadow].any(axis=0)
    np.testing.assert_array_equal(m.train, np.tile(half, (len(m.train), 1)))
    assert (m.forget <= m.train).all()
    assert m.forget.any()


def test_the_competition_may_forget_samples_of_some_classes_alone():
    """Triantafillou et al. 2024, §6: the forget set has examples of the first two classes only."""
    data = samples()
    m = block_of("competition", share=0.1, classes=(0, 1), data=data)
    assert set(data.y[m.forget[0]].tolist()) == {0, 1}
    assert set(m.forget.sum(1)) == {20}
    with pytest.raises(ValueError, match=r"is 100, more than the 40 of the classes \[0, 1\]"):
        block_of("competition", share=0.5, classes=(0, 1), data=data)


def test_the_competition_forgets_people_whole():
    """Triantafillou et al. 2024, §6: each subject is placed entirely in the forget or in the retain set."""
    data = samples()
    train, rng = np.flatnonzero(data.part == 0), np.random.default_rng(3)
    subject = np.full(len(data.y), -1)
    subject[train] = rng.integers(60, size=len(train))
    people = replace(data, subject=subject)
    m = block_of("competition", share=0.1, by_subject=True, data=people)
    forgotten_people = set(subject[m.forget[0]].tolist())
    assert 10 < m.forget[0].sum() <= 20
    assert not forgotten_people & set(subject[m.retain[0]].tolist())
    assert (m.forget == m.forget[0]).all()
    classes = block_of("competition", share=0.1, by_subject=True, classes=(0, 1), data=replace(data, subject=data.y))
    assert len(set(data.y[classes.forget[0]].tolist())) == 1, "two classes of 20 are two people, and one fits"
    with pytest.raises(ValueError, match="name the person of each sample"):
        block_of("competition", by_subject=True, data=data)
    with pytest.raises(ValueError, match="no person has at most 4 samples"):
        block_of("competition", by_subject=True, data=replace(people, subject=np.zeros(len(data.y), int)))


def test_the_competition_forgets_the_same_few_samples_in_every_model():
    first, second = block_of("competition", 0, share=0.02), block_of("competition", 1, share=0.02)
    assert {(int(row.sum()), row.tobytes()) for m in (first, second) for row in m.forget} == {
        (4, first.forget[0].tobytes())
    }
    np.testing.assert_array_equal(np.r_[first.replicate, second.replicate], np.arange(32))
    separate = block_of("competition", originals="many", share=0.005)
    assert (separate.replicate, len(set(separate.seed)), set(separate.forget.sum(1))) == (None, 16, {1})
    often = sum(block_of("competition", share=0.1, models_per_block=1, seed=seed).forget[0] for seed in range(300))
    expected = np.where(samples().part == 0, 0.1 * 300, 0)  # 5 standard deviations of a binomial number
    assert (np.abs(often - expected) <= 5 * np.sqrt(expected)).all()


def test_efficacy_forgets_the_first_samples_of_one_class():
    data = samples()
    of_class = np.flatnonzero((data.y == 3) & (data.part == 0))
    for fraction, k in ((1.0, 20), (0.25, 5), (0.1, 2), (0.05, 1)):
        m = block_of("efficacy", data=data, target_class=3, fraction=fraction)
        assert {tuple(np.flatnonzero(row)) for row in m.forget} == {tuple(of_class[:k])}


def test_one_canary_of_each_pair_is_seen_and_the_other_is_not():
    data = samples()
    m = block_of("one_run", data=data)
    assert np.bincount(m.pair[m.pair >= 0]).tolist() == [2] * 40
    for number in range(40):
        assert sorted(m.forget[0, m.pair == number]) == sorted(m.heldout[0, m.pair == number]) == [False, True]
    np.testing.assert_array_equal(m.forget[0] | m.heldout[0], m.pair >= 0)
    np.testing.assert_array_equal(m.train[0] | m.heldout[0], data.part == 0)


def test_models_have_the_same_canaries_and_fair_coins_of_their_own():
    whole = Membership.concatenate([block_of("one_run", block, models=400) for block in range(400)])
    first, _ = np.argsort(whole.pair, kind="stable")[-80:].reshape(-1, 2).T
    heads = whole.forget[:, first]
    flat = np.corrcoef(heads, rowvar=False)[np.triu_indices(40, 1)]
    assert stats.binomtest(int(heads.sum()), heads.size).pvalue > 1e-3
    assert stats.kstest(heads.sum(axis=0), stats.binom(400, 0.5).cdf).pvalue > 1e-3
    assert abs(flat).max() < 5 / np.sqrt(400)
    assert len(np.unique(whole.train, axis=0)) == 400


@pytest.mark.parametrize(
    ("name", "fields", "sentence"),
    [
        ("interclass_confusion", {"classes": (3, 3)}, "two different classes"),
        ("interclass_confusion", {"classes": (-1, 2)}, "two different classes"),
        ("interclass_confusion", {"classes": (3, 11)}, "leave nothing to confuse"),
        ("competition", {"share": 0.004}, r"share=0\.004 of 200 samples is less than one"),
        ("competition", {"copies": 2}, "copies .2. need originals: many"),
        ("competition", {"copies": 3, "originals": "many"}, "copies must divide the number of models, 64"),
        ("efficacy", {"target_class": 12}, "training samples of class 12 is less than one"),
        ("one_run", {"canaries": 100}, "canaries=100 pairs take 200 of 200 training samples and leave none to keep"),
        ("one_run", {"canaries": 9, "requests": 2}, "canaries .9. must be a multiple of requests .2."),
        ("one_run", {"canaries": 40, "classes": [3]}, "pairs take 80 of 20 training samples of the classes .3."),
        ("swap", {"classes": [12]}, "leaves nothing to forget among 0 samples of the classes .12."),
        ("swap", {"alpha": 0.005}, "alpha=0.005 leaves nothing to forget among 100 samples; use more data"),
        ("random_splits", {"requests": 20}, "leaves less than a sample for each of 20 among 100"),
        ("swap", {"memorised": "most"}, "memorised: most needs a selection; name its scenario in select_from"),
        ("ruli", {"target_size": 100}, "multiple of 3"),
        ("ruli", {"target_set": "canary", "target_size": 63}, "multiple of 12"),
        ("ruli", {"target_size": 201}, r"more than the 200 training samples of kind 'any'; lower it$"),
        ("ruli", {"target_set": "class"}, "is more than the 20 training samples of kind 'class'; lower"),
        ("ruli", {"target_set": "protected"}, "target_set 'protected' needs a selection"),
        ("ruli", {"target_size": 60, "attack_size": 141}, "attack_size=141 is more than the 140 training samples"),
    ],
)
def test_what_does_not_fit_is_refused(name, fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        block_of(name, **fields)
