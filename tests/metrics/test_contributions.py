"""What models and samples add to numbers adds up to these numbers, and its file is checked when it is read."""

from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit.comparisons.distances import Side
from unlearning_audit.evaluation import contributions as added
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import _direction, _game, accuracy, competition, ruli, swap
from unlearning_audit.protocols import ruli as thirds
from unlearning_audit.stats import paired, tail

import metric_calls as call
from row_places import about
from ruli_cases import Folder, memberships, retrained, trained
from swap_games import World, layout, signed_advantage

SETTINGS = {"metrics": {"ruli": ruli.Options(fpr=()).model_dump()}, "seed": 0}


def mean(part: added.Contribution) -> np.ndarray:
    """The numbers that contributions add up to, float64 [K]."""
    parts = {name: getattr(part, name) for name in ("value", "influence", "imagined", "unit", "split")}
    return paired.distances(**parts).value


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """RULI's thirds: models that know what they were trained on, and such as know what they kept."""
    options = thirds.Options(target_size=120, attack_size=100, target_blocks=2, shadow_blocks=6)
    files = Folder(tmp_path_factory.mktemp("thirds"), memberships(options))
    files.original = files.add("original", trained)
    files.retrained, files.control = files.add("retrained", retrained), files.add("control", retrained)
    return files


def value(rows, metric, setting="", attack=""):
    (row,) = [r for r in rows if (r.metric, r.attack) == (metric, attack) and about(r).startswith(setting)]
    return row.value


# ---------------------------------------------------------------- numbers


def game(seed=0):
    """(membership, scores of two attacks, phi): samples that were forgotten look familiar."""
    rng = np.random.default_rng(seed)
    masks = layout(rng, samples=200, pairs=3, k=40, models=2)
    world = World(leak=(0.8, 0.4), cut=(0.5, 0.2))
    scores = world.scores(rng, masks["forget"])
    decided = world.decisions(scores)
    count = len(masks["split"])
    member = Membership(train=masks["forget"], seed=np.arange(count), shadow=np.zeros(count, bool), **masks)
    return member, {("a", "trained"): (scores[0], decided[0]), ("b", "trained"): (scores[1], decided[1])}, scores[0]


def test_advantages_add_up_to_the_signed_advantage():
    member, scores, phi = game()
    part = swap.advantages(scores, phi, member)["advantage"]
    rules = _game.game(forget=member.forget, heldout=member.heldout, split=member.split, block=member.block)
    expected = [signed_advantage(rules, decision) for _, decision in scores.values()]
    np.testing.assert_allclose(mean(part), expected, atol=1e-12)
    assert part.names == ("a/trained", "b/trained")
    assert np.array_equal(part.index, rules.columns)


def test_a_share_that_a_method_must_keep_differs_from_retrained_models_by_1_at_most():
    kept = added.single(value=np.array([0.9, 0.8]), unit=np.arange(2), standard=accuracy.UTILITY)
    assert Side(audited=kept, yardstick=kept, source="retrain").range == (-1.0, 1.0)


def test_an_attack_that_learned_to_say_yes_to_the_unfamiliar_is_turned():
    """An unlearned model that finds forgotten samples less familiar: the attack finds them, on the far side."""
    member, scores, phi = game()
    score, decision = scores["a", "trained"]
    attacks = {("a", "unlearned"): (-score, ~decision), ("c", "trained"): (-score, ~decision)}
    turned, unturned = mean(swap.advantages(attacks, phi, member)["advantage"])
    straight = mean(swap.advantages({("a", "trained"): (score, decision)}, phi, member)["advantage"])[0]
    assert straight > 0.1
    assert turned == pytest.approx(straight, abs=1e-12)
    assert unturned == pytest.approx(-straight, abs=1e-12)
    tails = swap.advantages(attacks, phi, member)["tail_advantage"]
    rules = _game.of_models(member)
    whole = tail.advantage(score=score[:, rules.columns], forget=rules.forget, heldout=rules.heldout)
    np.testing.assert_array_equal(tails.value[0], whole.value)


def test_the_direction_of_an_attack_is_that_of_its_ranks():
    rng = np.random.default_rng(1)
    phi, everything = rng.standard_normal((3, 50)), np.ones((3, 50), bool)
    assert _direction.familiar(score=np.exp(5 * phi), phi=phi, rows=everything) == 1
    assert _direction.familiar(score=(phi < 0) * 1.0, phi=phi, rows=everything) == -1
    assert _direction.familiar(score=np.full(phi.shape, np.nan), phi=phi, rows=everything) == 1
    assert _direction.familiar(score=np.zeros(phi.shape), phi=phi, rows=everything) == 1
    few = np.array([[0.0, 0.0, 0.0, 1.0]])  # equal scores share their mean rank, however many they are
    assert _direction.familiar(score=few, phi=np.arange(4.0)[None], rows=few >= 0) == 1
    two = np.array([[0.0, 1.0]])
    assert [_direction.familiar(score=score, phi=two, rows=two >= 0) for score in (two, -two)] == [1, -1]


def test_ruli_s_contributions_add_up_to_its_aucs(folder):
    case = folder.case(folder.original, folder.original, folder.retrained, folder.control)
    parts, rows = call.parts(ruli, case, SETTINGS), call.rows(ruli, case, SETTINGS)
    assert list(parts) == ["privacy_auc", "efficacy_auc"]
    for metric, part in parts.items():
        assert mean(part)[0] == pytest.approx(value(rows, metric, attack="ruli"), abs=1e-12)
        assert len(np.unique(part.unit)) == 6
        assert set(part.index) == set(np.flatnonzero(case.membership.weight))


def test_ruli_says_on_which_side_of_retraining_a_method_lies(folder):
    def beyond(member):
        return np.where(member.forget, -4.0, retrained(member))

    over = folder.add("over", beyond)
    case = folder.case(folder.original, over, folder.retrained, folder.control)
    assert value(call.rows(ruli, case, SETTINGS), "privacy_auc", attack="ruli") > 0.9
    assert mean(call.parts(ruli, case, SETTINGS)["privacy_auc"])[0] < 0.1


def test_accuracies_add_up_and_models_that_keep_the_same_are_one_unit(folder):
    case = folder.case(folder.original, folder.original)
    parts, rows = call.parts(accuracy, case, {}), call.rows(accuracy, case, {})
    for role in ("retain", "test"):
        part = parts[f"accuracy_{role}"]
        assert mean(part)[0] == pytest.approx(value(rows, "accuracy", f"role={role}"), abs=1e-12)
        assert not part.standard.deciding
        assert len(np.unique(part.unit)) == 6, "thirds keep different samples"


def test_f_over_its_null_adds_up():
    rng = np.random.default_rng(2)
    sample = rng.standard_normal(30)
    u, r, again = (sample + rng.standard_normal((24, 30)) + shift for shift in (0.5, 0.0, 0.0))
    options, index = competition.Options(groups=8), np.arange(30)
    part = competition.over_null(u, r, again, index, options, np.random.default_rng(0))["forgetting_quality_over_null"]
    rows = competition.evaluate(
        unlearned=competition.Models(u), retrained=competition.Models(r), independent=competition.Models(again),
        options=options, rng=np.random.default_rng(0),
    )  # fmt: skip
    assert mean(part)[0] == pytest.approx(value(rows, "forgetting_quality_over_null"), abs=1e-12)
    assert part.value.shape == (1, 8)
    assert competition.over_null(u[:4], r[:4], None, index, options, np.random.default_rng(0)) == {}


# ---------------------------------------------------------------- the file


@pytest.fixture
def contribution_file(tmp_path):
    member, scores, phi = game()
    parts = swap.advantages(scores, phi, member)
    path = tmp_path / "contributions.npz"
    added.write(path, parts)
    return path, parts


def test_what_was_written_is_read(contribution_file):
    path, parts = contribution_file
    assert list(added.read(path)) == ["advantage", "tail_advantage"]
    name = "advantage"
    actual, expected = added.read(path)[name], parts[name]
    for field in ("names", "unit", "split", "index", "value", "imagined"):
        assert np.array_equal(getattr(actual, field), getattr(expected, field)), field
    np.testing.assert_allclose(actual.influence, expected.influence, rtol=1e-6, atol=1e-12)
    assert actual.standard == expected.standard
    assert actual.alike(expected)
    assert not actual.alike(replace(expected, unit=expected.unit + 1))
