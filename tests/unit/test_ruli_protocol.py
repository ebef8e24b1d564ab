"""Which roles the target samples of RULI take, in which models, and what an audit may be trusted with."""

import numpy as np
import pytest
from unlearning_audit.artifacts.arrays import Data, Membership
from unlearning_audit.artifacts.selection import Selection
from unlearning_audit.protocols import lira_selection, ruli

SAMPLES, TEST = 400, 40


def data(seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, SAMPLES)
    part = (np.arange(SAMPLES) >= SAMPLES - TEST).astype(np.uint8)
    return Data(rng.normal(size=(SAMPLES, 3)).astype(np.float32), y, part, y, np.arange(SAMPLES), 4)


def selection() -> Selection:
    """A third of all samples is vulnerable, another protected; some of both are of the test part."""
    third = np.arange(SAMPLES) % 3
    return Selection(third == 0, third == 1, np.zeros(SAMPLES))


def drawn(options: ruli.Options, population: str, blocks: range, chosen: Selection | None = None, seed: int = 7):
    return Membership.concatenate(
        [ruli.draw(block, population, data(), options, seed, *([chosen] if chosen else [])) for block in blocks]
    )


def assert_sound(found: Membership, of: Data) -> None:
    assert not (found.forget & ~found.train).any()
    assert not (found.heldout & found.train).any()
    assert not (found.train | found.heldout)[:, of.part == 1].any()
    for name in ("train", "forget", "heldout", "retain"):
        assert len(set(getattr(found, name).sum(1))) == 1, f"{name} differs in size between models"
    assert len(np.unique(found.seed)) == len(found.seed)


@pytest.mark.parametrize("target_set", ["random", "class", "vulnerable", "protected", "vulnerable_and_protected"])
@pytest.mark.parametrize("population", ["targets", "shadows"])
def test_every_target_has_every_role_in_a_third_of_the_models(target_set, population):
    options = ruli.Options(target_set=target_set, target_size=60, target_class=2, attack_size=90)
    found = drawn(options, population, range(5), selection())
    assert_sound(found, data())
    asked = found.weight > 0
    assert set(found.weight) == {0.0, 1.0}
    kinds = 2 if target_set == "vulnerable_and_protected" else 1
    assert asked.sum() == 60 * kinds
    for role in (found.retain, found.forget, found.heldout):
        assert (role[:, asked].sum(0) == 5).all()
        assert (role[:, asked].sum(1) == 20 * kinds).all()
        # balanced in every block of three by itself
        assert (role[:, asked].reshape(5, 3, -1).sum(1) == 1).all()
    assert not (found.forget | found.heldout)[:, ~asked].any()
    assert (found.train[:, ~asked].sum(1) == 90).all()
    assert (found.shadow == (population == "shadows")).all()


def test_roles_rotate_at_random_and_not_in_step():
    options = ruli.Options(target_size=60)
    found = drawn(options, "shadows", range(40))
    first = found.forget[::3][:, found.weight > 0]
    # of two samples, a third of the blocks forgets both in the same model; of 40 blocks 13.3 ± 3
    together = (first.astype(int).T @ first)[np.triu_indices(60, 1)]
    assert abs(together.mean() - 40 / 3 * 19 / 59) < 1e-9  # exact: 20 of 60 in every block
    assert together.std() == pytest.approx(np.sqrt(40 * (1 / 3 * 19 / 59) * (1 - 1 / 3 * 19 / 59)), rel=0.15)
    # roles are no function of where a sample lies
    assert abs(np.corrcoef(np.arange(60), first.mean(0))[0, 1]) < 0.4


def test_kinds_are_balanced_one_by_one():
    options = ruli.Options(target_set="vulnerable_and_protected", target_size=60)
    found, chosen = drawn(options, "shadows", range(4), selection()), selection()
    for kind in (chosen.vulnerable, chosen.protected):
        for role in (found.retain, found.forget, found.heldout):
            assert (role[:, kind & (found.weight > 0)].sum(1) == 20).all()


def test_target_sets_hold_what_they_are_called():
    of, chosen = data(), selection()
    held = {
        "class": of.y == 2,
        "vulnerable": chosen.vulnerable,
        "protected": chosen.protected,
        "canary": chosen.vulnerable,
    }
    for name, mask in held.items():
        options = ruli.Options(target_set=name, target_size=60, target_class=2)
        (found,) = ruli.targets(of, options, 7, chosen)
        assert len(np.unique(found)) == 60
        assert mask[found].all()
        assert (of.part[found] == 0).all()
    first, second = ruli.targets(of, ruli.Options(target_set="vulnerable_and_protected", target_size=60), 7, chosen)
    assert chosen.vulnerable[first].all()
    assert chosen.protected[second].all()


def test_the_defender_and_the_adversary_ask_about_the_same_samples_in_models_of_their_own():
    options = ruli.Options(target_size=60)
    ours, theirs = drawn(options, "targets", range(2)), drawn(options, "shadows", range(2))
    np.testing.assert_array_equal(ours.weight, theirs.weight)
    assert not set(ours.seed) & set(theirs.seed)
    assert not any(np.array_equal(a, b) for a in ours.train for b in theirs.train)
    np.testing.assert_array_equal(Membership.concatenate([ours, theirs]).weight, ours.weight)


@pytest.mark.parametrize("target_set", ["random", "canary"])
def test_a_block_depends_on_seed_and_number_only(target_set):
    options = ruli.Options(target_set=target_set, target_size=60)
    more = options.model_copy(update={"shadow_blocks": 99, "target_blocks": 9})
    few, many = drawn(options, "shadows", range(3), selection()), drawn(more, "shadows", range(6), selection())
    for name in ("train", "forget", "heldout", "seed", "split", "block"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name)[:9])
    assert not np.array_equal(drawn(options, "shadows", range(3), selection(), seed=8).train, few.train)
    assert ruli.blocks(more) == {"targets": 9, "shadows": 99}


def test_attack_data_are_drawn_anew_for_every_model():
    options = ruli.Options(target_size=60)
    found = drawn(options, "shadows", range(10))
    others = found.train[:, (found.weight == 0) & (data().part == 0)]
    assert others.shape[1] == 300
    assert (others.sum(1) == 150).all()  # half of what is left
    shared = (others.astype(int) @ others.T)[np.triu_indices(30, 1)]
    assert shared.mean() == pytest.approx(75, abs=1.0)  # independent halves share a quarter of 300
    assert shared.std() == pytest.approx(np.sqrt(300 / 16 * 300 / 299), rel=0.15)  # hypergeometric
    everyone = drawn(ruli.Options(target_size=60, attack_size=300), "shadows", range(2))
    assert (everyone.train[:, (found.weight == 0) & (data().part == 0)]).all()


def test_canaries_stay_are_forgotten_and_held_out_as_in_the_paper():
    # of 600: 100 stay, 250 are unlearned, 250 held out; here of 60: 10, 25, 25
    options, chosen = ruli.Options(target_set="canary", target_size=60, canary_rate=0.5), selection()
    found = drawn(options, "shadows", range(8), chosen)
    assert_sound(found, data())
    asked = found.weight > 0
    assert (found.retain[:, asked].sum(1) == 10).all()
    assert (found.forget[:, asked].sum(1) == 25).all()
    assert (found.heldout[:, asked].sum(1) == 25).all()
    for four in (slice(0, 12), slice(12, 24)):  # balanced over four blocks
        assert (found.retain[four, asked].sum(0) == 2).all()
        assert (found.forget[four, asked].sum(0) == 5).all()
        assert (found.heldout[four, asked].sum(0) == 5).all()
    # half of the forget set are others: of no canary's kind, and trained on
    others = found.forget & ~asked
    assert (others.sum(1) == 25).all()
    assert not others[:, chosen.vulnerable].any()
    assert not found.heldout[:, ~asked].any()
    assert (others.sum(0) < 24).all()  # not the same ones in every model


@pytest.mark.parametrize(("rate", "others"), [(0.2, 100), (0.55, 20), (1.0, 0)])
def test_the_canary_rate_is_the_share_of_canaries_in_the_forget_set(rate, others):
    options = ruli.Options(target_set="canary", target_size=60, canary_rate=rate, attack_size=200)
    found = drawn(options, "targets", range(1), selection())
    assert (found.forget.sum(1) == 25 + others).all()
    without = drawn(options.model_copy(update={"canary_rate": 1.0}), "targets", range(1), selection())
    np.testing.assert_array_equal(found.train, without.train)  # the rate changes what is forgotten, nothing else


@pytest.mark.parametrize(
    ("options", "chosen", "reason"),
    [
        ({"target_set": "class", "target_size": 150}, None, "target_size=150 is more than the .* of class 0; lower"),
        ({"target_set": "vulnerable", "target_size": 150}, selection(), "of kind 'vulnerable'; lower it, or select"),
        ({"target_set": "protected", "target_size": 60}, None, "target_set 'protected' needs a selection"),
        ({"target_size": 60, "attack_size": 301}, None, "attack_size=301 is more than the 300 training samples"),
        ({"target_set": "canary", "target_size": 60, "canary_rate": 0.1}, selection(), "asks to forget 225 other"),
    ],
)
def test_what_does_not_fit_is_refused(options, chosen, reason):
    with pytest.raises(ValueError, match=reason):
        drawn(ruli.Options(**options), "targets", range(1), chosen)


def test_sizes_that_cannot_be_balanced_are_refused():
    with pytest.raises(ValueError, match="multiple of 3"):
        ruli.Options(target_size=100)
    with pytest.raises(ValueError, match="multiple of 12"):
        ruli.Options(target_set="canary", target_size=63)


def test_only_sets_that_are_selected_ask_for_a_selection():
    asked = {name: ruli.selects_from(ruli.Options(target_set=name, target_size=60)) for name in ruli.KINDS}
    assert {name for name, source in asked.items() if source == ""} == {
        "vulnerable", "protected", "vulnerable_and_protected", "canary",
    }  # fmt: skip
    assert asked["random"] is asked["class"] is None
    assert ruli.selects_from(ruli.Options(target_set="canary", target_size=60, select_from="halves")) == "halves"
    assert ruli.selects_from(ruli.Options(select_from="halves")) is None


@pytest.mark.parametrize("odd", [0, 1])
def test_pairs_are_random_exact_halves(odd):
    of = data()
    of = Data(of.x[odd:], of.y[odd:], of.part[odd:], of.y[odd:], of.index[odd:], 4)
    train = np.flatnonzero(of.part == 0)
    found = Membership.concatenate(
        [lira_selection.draw(block, "pairs", of, lira_selection.Options(), 3) for block in range(30)]
    )
    assert_sound(found, of)
    assert not found.forget.any()
    half = len(train) // 2
    assert (found.train.sum(1) == half).all()
    assert not (found.train[::2] & found.train[1::2]).any()
    assert (found.train.reshape(30, 2, -1).any(1)[:, train].sum(1) == 2 * half).all()
    np.testing.assert_array_equal(found.heldout, (of.part == 0) & ~found.train)
    shared = (found.train[::2].astype(int) @ found.train[::2].T)[np.triu_indices(30, 1)]
    assert shared.mean() == pytest.approx(half / 2, rel=0.02)
    again = lira_selection.draw(4, "pairs", of, lira_selection.Options(pairs=99), 3)
    np.testing.assert_array_equal(again.train, found.train[8:10])
    assert lira_selection.blocks(lira_selection.Options(pairs=5)) == {"pairs": 5}


def test_a_selection_is_read_as_it_was_written(tmp_path):
    chosen = selection()
    chosen.write(tmp_path / "selection.npz")
    back = Selection.read(tmp_path / "selection.npz", SAMPLES)
    for name in ("vulnerable", "protected", "ratio"):
        np.testing.assert_array_equal(getattr(back, name), getattr(chosen, name))
    with pytest.raises(ValueError, match=r"selection.npz: field 'vulnerable' has shape \(400,\), expected \(399\)"):
        Selection.read(tmp_path / "selection.npz", SAMPLES - 1)
    Selection(chosen.vulnerable, chosen.vulnerable, chosen.ratio).write(tmp_path / "selection.npz")
    with pytest.raises(ValueError, match="field 'protected' holds samples that are vulnerable as well"):
        Selection.read(tmp_path / "selection.npz", SAMPLES)
