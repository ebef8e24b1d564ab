"""Which roles the target samples of RULI take, in which models; and the random halves that find them."""

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Membership, Selection
from unlearning_audit.protocols import ruli

from protocol_cases import block_of, samples

DATA = samples(n=360, classes=4)
#: A third of all samples is vulnerable, another protected; some of both are of the test part.
THIRD = np.arange(len(DATA.y)) % 3
CHOICE = Selection(THIRD == 0, THIRD == 1, np.zeros(len(THIRD)))
OF_KIND = {"any": THIRD >= 0, "class": DATA.y == 2, "vulnerable": THIRD == 0, "protected": THIRD == 1}
ROLES = ("retain", "forget", "heldout")


def draw(population: str, blocks: int, **options) -> Membership:
    of = {"target_size": 60, "target_class": 2, **options}
    return Membership.concatenate([block_of("ruli", n, DATA, 7, population, CHOICE, **of) for n in range(blocks)])


@pytest.mark.parametrize("target_set", ["random", "class", "vulnerable", "protected", "vulnerable_and_protected"])
@pytest.mark.parametrize("population", ["targets", "shadows"])
def test_every_target_has_every_role_in_a_third_of_the_models(target_set, population):
    member = draw(population, 5, target_set=target_set, attack_size=90)
    targets, kinds = member.weight == 1, ruli.KINDS[target_set]
    assert member.weight.sum() == targets.sum() == 60 * len(kinds)
    for kind in kinds:
        rows = targets & OF_KIND[kind] & (DATA.part == 0)
        assert rows.sum() == 60
        for role in ROLES:
            of_role = getattr(member, role)[:, rows]
            assert (of_role.reshape(5, 3, 60).sum(1) == 1).all(), "in every block by itself"
            assert (of_role.sum(1) == 20).all()
    assert not (member.train & member.heldout).any()
    assert not (member.forget | member.heldout)[:, ~targets].any()
    assert (member.train[:, ~targets & (DATA.part == 0)].sum(1) == 90).all()
    assert (member.shadow == (population == "shadows")).all()


def test_the_defender_and_the_adversary_ask_about_the_same_samples_in_models_of_their_own():
    targets, shadows = draw("targets", 2), draw("shadows", 2)
    np.testing.assert_array_equal(targets.weight, shadows.weight)
    assert not set(targets.seed) & set(shadows.seed)
    assert not any(np.array_equal(a, b) for a in targets.train for b in shadows.train)


def test_canaries_stay_are_forgotten_and_held_out_as_in_the_paper():
    # of 600: 100 stay, 250 are unlearned, 250 held out; here of 60: 10, 25, 25
    member = draw("shadows", 8, target_set="canary", canary_rate=0.5)
    canaries = member.weight > 0
    assert (canaries.sum(), (canaries & ~CHOICE.vulnerable).any()) == (60, False)
    assert not (member.train & member.heldout).any()
    for role, in_model, in_four_blocks in zip(ROLES, (10, 25, 25), (2, 5, 5), strict=True):
        of_role = getattr(member, role)[:, canaries]
        assert (of_role.sum(1) == in_model).all()
        assert (of_role.reshape(2, 12, 60).sum(1) == in_four_blocks).all()
    # half of the forget set are others: of no canary's kind, and not the same ones in every model
    others = member.forget & ~canaries
    assert (others.sum(1) == 25).all()
    assert not others[:, CHOICE.vulnerable].any()
    assert not member.heldout[:, ~canaries].any()
    assert (others.sum(0) < 24).all()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target_set": "vulnerable", "target_size": 150}, "training samples of kind 'vulnerable'; lower it"),
        ({"target_set": "canary", "canary_rate": 0.1}, "means that 225 other samples are forgotten with 25 canaries"),
    ],
)
def test_what_a_selection_does_not_hold_is_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        draw("targets", 1, **options)


def test_a_selection_is_read_as_it_was_written(tmp_path):
    file, n = tmp_path / "selection.npz", len(DATA.y)
    CHOICE.write(file)
    for name, values in vars(Selection.read(file, samples=n)).items():
        np.testing.assert_array_equal(values, getattr(CHOICE, name))
    with pytest.raises(
        ValueError, match=rf"selection.npz: field 'vulnerable' has shape \({n},\), expected \({n - 1}\)"
    ):
        Selection.read(file, samples=n - 1)
