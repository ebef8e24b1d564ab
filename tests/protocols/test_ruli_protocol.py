"""Which roles the target samples of RULI take, in which models, and what an audit may be trusted with."""

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.evaluation.selection import Selection
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


def draw(options: ruli.Options, population: str, blocks: range, choice: Selection | None = None, seed: int = 7):
    return Membership.concatenate(
        [ruli.draw(block, population, data(), options, seed, *([choice] if choice else [])) for block in blocks]
    )


def assert_sound(member: Membership, of: Data) -> None:
    assert not (member.forget & ~member.train).any()
    assert not (member.heldout & member.train).any()
    assert not (member.train | member.heldout)[:, of.part == 1].any()
    for name in ("train", "forget", "heldout", "retain"):
        assert len(set(getattr(member, name).sum(1))) == 1, f"{name} differs in size between models"
    assert len(np.unique(member.seed)) == len(member.seed)


@pytest.mark.parametrize("target_set", ["random", "class", "vulnerable", "protected", "vulnerable_and_protected"])
@pytest.mark.parametrize("population", ["targets", "shadows"])
def test_every_target_has_every_role_in_a_third_of_the_models(target_set, population):
    options = ruli.Options(target_set=target_set, target_size=60, target_class=2, attack_size=90)
    member = draw(options, population, range(5), selection())
    assert_sound(member, data())
    targets = member.weight > 0
    assert set(member.weight) == {0.0, 1.0}
    kinds = 2 if target_set == "vulnerable_and_protected" else 1
    assert targets.sum() == 60 * kinds
    for role in (member.retain, member.forget, member.heldout):
        assert (role[:, targets].sum(0) == 5).all()
        assert (role[:, targets].sum(1) == 20 * kinds).all()
        # balanced in every block of three by itself
        assert (role[:, targets].reshape(5, 3, -1).sum(1) == 1).all()
    assert not (member.forget | member.heldout)[:, ~targets].any()
    assert (member.train[:, ~targets].sum(1) == 90).all()
    assert (member.shadow == (population == "shadows")).all()


def test_roles_rotate_at_random_and_not_in_step():
    options = ruli.Options(target_size=60)
    member = draw(options, "shadows", range(40))
    first = member.forget[::3][:, member.weight > 0]
    # of two samples, a third of the blocks forgets both in the same model; of 40 blocks 13.3 ± 3
    together = (first.astype(int).T @ first)[np.triu_indices(60, 1)]
    assert abs(together.mean() - 40 / 3 * 19 / 59) < 1e-9  # exact: 20 of 60 in every block
    assert together.std() == pytest.approx(np.sqrt(40 * (1 / 3 * 19 / 59) * (1 - 1 / 3 * 19 / 59)), rel=0.15)
    # roles are no function of where a sample lies
    assert abs(np.corrcoef(np.arange(60), first.mean(0))[0, 1]) < 0.4


def test_kinds_are_balanced_one_by_one():
    options = ruli.Options(target_set="vulnerable_and_protected", target_size=60)
    member, choice = draw(options, "shadows", range(4), selection()), selection()
    for kind in (choice.vulnerable, choice.protected):
        for role in (member.retain, member.forget, member.heldout):
            assert (role[:, kind & (member.weight > 0)].sum(1) == 20).all()


def test_target_sets_hold_what_they_are_called():
    of, choice = data(), selection()
    masks = {
        "class": of.y == 2,
        "vulnerable": choice.vulnerable,
        "protected": choice.protected,
        "canary": choice.vulnerable,
    }
    for name, mask in masks.items():
        options = ruli.Options(target_set=name, target_size=60, target_class=2)
        (samples,) = ruli.targets(of, options, 7, choice)
        assert len(np.unique(samples)) == 60
        assert mask[samples].all()
        assert (of.part[samples] == 0).all()
    first, second = ruli.targets(of, ruli.Options(target_set="vulnerable_and_protected", target_size=60), 7, choice)
    assert choice.vulnerable[first].all()
    assert choice.protected[second].all()


def test_the_defender_and_the_adversary_ask_about_the_same_samples_in_models_of_their_own():
    options = ruli.Options(target_size=60)
    targets, shadows = draw(options, "targets", range(2)), draw(options, "shadows", range(2))
    np.testing.assert_array_equal(targets.weight, shadows.weight)
    assert not set(targets.seed) & set(shadows.seed)
    assert not any(np.array_equal(a, b) for a in targets.train for b in shadows.train)
    np.testing.assert_array_equal(Membership.concatenate([targets, shadows]).weight, targets.weight)


def test_canaries_stay_are_forgotten_and_held_out_as_in_the_paper():
    # of 600: 100 stay, 250 are unlearned, 250 held out; here of 60: 10, 25, 25
    options, choice = ruli.Options(target_set="canary", target_size=60, canary_rate=0.5), selection()
    member = draw(options, "shadows", range(8), choice)
    assert_sound(member, data())
    targets = member.weight > 0
    assert (member.retain[:, targets].sum(1) == 10).all()
    assert (member.forget[:, targets].sum(1) == 25).all()
    assert (member.heldout[:, targets].sum(1) == 25).all()
    for four in (slice(0, 12), slice(12, 24)):  # balanced over four blocks
        assert (member.retain[four, targets].sum(0) == 2).all()
        assert (member.forget[four, targets].sum(0) == 5).all()
        assert (member.heldout[four, targets].sum(0) == 5).all()
    # half of the forget set are others: of no canary's kind, and trained on
    attack_data = member.forget & ~targets
    assert (attack_data.sum(1) == 25).all()
    assert not attack_data[:, choice.vulnerable].any()
    assert not member.heldout[:, ~targets].any()
    assert (attack_data.sum(0) < 24).all()  # not the same ones in every model


@pytest.mark.parametrize(
    ("options", "choice", "reason"),
    [
        ({"target_set": "class", "target_size": 150}, None, "target_size=150 is more than the .* of class 0; lower"),
        ({"target_set": "vulnerable", "target_size": 150}, selection(), "of kind 'vulnerable'; lower it, or let"),
        ({"target_set": "protected", "target_size": 60}, None, "target_set 'protected' needs a selection"),
        ({"target_size": 60, "attack_size": 301}, None, "attack_size=301 is more than the 300 training samples"),
        ({"target_set": "canary", "target_size": 60, "canary_rate": 0.1}, selection(), "means that 225 other"),
    ],
)
def test_what_does_not_fit_is_refused(options, choice, reason):
    with pytest.raises(ValueError, match=reason):
        draw(ruli.Options(**options), "targets", range(1), choice)


def test_sizes_that_cannot_be_balanced_are_refused():
    with pytest.raises(ValueError, match="multiple of 3"):
        ruli.Options(target_size=100)
    with pytest.raises(ValueError, match="multiple of 12"):
        ruli.Options(target_set="canary", target_size=63)


@pytest.mark.parametrize("odd", [0, 1])
def test_pairs_are_random_exact_halves(odd):
    of = data()
    of = Data(of.x[odd:], of.y[odd:], of.part[odd:], of.y[odd:], of.index[odd:], 4)
    train = np.flatnonzero(of.part == 0)
    member = Membership.concatenate(
        [lira_selection.draw(block, "pairs", of, lira_selection.Options(), 3) for block in range(30)]
    )
    assert_sound(member, of)
    assert not member.forget.any()
    half = len(train) // 2
    assert (member.train.sum(1) == half).all()
    assert not (member.train[::2] & member.train[1::2]).any()
    assert (member.train.reshape(30, 2, -1).any(1)[:, train].sum(1) == 2 * half).all()
    np.testing.assert_array_equal(member.heldout, (of.part == 0) & ~member.train)
    shared = (member.train[::2].astype(int) @ member.train[::2].T)[np.triu_indices(30, 1)]
    assert shared.mean() == pytest.approx(half / 2, rel=0.02)
    again = lira_selection.draw(4, "pairs", of, lira_selection.Options(pairs=99), 3)
    np.testing.assert_array_equal(again.train, member.train[8:10])
    assert lira_selection.blocks(lira_selection.Options(pairs=5)) == {"pairs": 5}


def test_a_selection_is_read_as_it_was_written(tmp_path):
    choice = selection()
    choice.write(tmp_path / "selection.npz")
    back = Selection.read(tmp_path / "selection.npz", SAMPLES)
    for name in ("vulnerable", "protected", "ratio"):
        np.testing.assert_array_equal(getattr(back, name), getattr(choice, name))
    with pytest.raises(ValueError, match=r"selection.npz: field 'vulnerable' has shape \(400,\), expected \(399\)"):
        Selection.read(tmp_path / "selection.npz", SAMPLES - 1)
    Selection(choice.vulnerable, choice.vulnerable, choice.ratio).write(tmp_path / "selection.npz")
    with pytest.raises(ValueError, match="field 'protected' holds samples that are vulnerable as well"):
        Selection.read(tmp_path / "selection.npz", SAMPLES)
