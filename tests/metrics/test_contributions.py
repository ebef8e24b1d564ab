"""What models and samples add to numbers adds up to these numbers."""

import numpy as np
import pytest
from unlearning_audit.comparisons.distances import Side
from unlearning_audit.evaluation import effects as added
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import _direction, _game, accuracy, competition, ruli, swap
from unlearning_audit.protocols import ruli as thirds
from unlearning_audit.stats import paired, tail

import metric_calls as call
from row_places import about
from ruli_cases import Folder, memberships, retrained, trained
from swap_games import World, layout, signed_advantage

SETTINGS = {"metrics": {"ruli": ruli.Options(fpr=()).model_dump()}, "seed": 0}


def mean(part: added.Effect) -> np.ndarray:
    """The numbers that effects add up to, float64 [K]."""
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
    kept = added.single(value=np.array([0.9, 0.8]), unit=np.arange(2), rule=accuracy.UTILITY)
    assert Side(audited=kept, reference=kept, source="retrain").range == (-1.0, 1.0)


def test_an_attack_that_learned_to_say_yes_to_the_unfamiliar_is_turned():
    """An unlearned model that finds forgotten samples less familiar: the attack finds them, on the far side."""
    member, scores, phi = game()
    score, decision = scores["a", "trained"]
    straight = mean(swap.advantages({("a", "trained"): (score, decision)}, phi, member)["advantage"])[0]
    assert straight > 0.1
    attacks = {("a", "unlearned"): (-score, ~decision), ("c", "trained"): (-score, ~decision)}
    parts = swap.advantages(attacks, phi, member)
    np.testing.assert_allclose(mean(parts["advantage"]), [straight, -straight], atol=1e-12)
    rules = _game.of_models(member)
    whole = tail.advantage(score=score[:, rules.columns], forget=rules.forget, heldout=rules.heldout)
    np.testing.assert_array_equal(parts["tail_advantage"].value[0], whole.value)


def test_the_direction_of_an_attack_is_that_of_its_ranks():
    phi = np.random.default_rng(1).standard_normal((3, 50))
    nothing, few = np.full(phi.shape, np.nan), np.arange(4.0)[None]
    for score, confidence, direction in (
        (np.exp(5 * phi), phi, 1), ((phi < 0) * 1.0, phi, -1), (nothing, phi, 1), (0 * phi, phi, 1),
        (few[:, :2], few[:, :2], 1), (-few[:, :2], few[:, :2], -1),
        (np.array([[0.0, 0.0, 0.0, 1.0]]), few, 1),  # equal scores share their mean rank, however many they are
    ):  # fmt: skip
        assert _direction.familiar(score=score, phi=confidence, rows=np.ones(confidence.shape, bool)) == direction


def test_ruli_s_effects_add_up_to_its_aucs(folder):
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
        assert not part.rule.deciding
        assert len(np.unique(part.unit)) == 6, "thirds keep different samples"


def test_f_over_its_null_adds_up():
    rng, options = np.random.default_rng(2), competition.Options(groups=8)
    sides = rng.standard_normal(30) + rng.standard_normal((3, 24, 30)) + np.array([0.5, 0, 0])[:, None, None]
    parts = competition.over_null(*sides, np.arange(30), options, rng)["forgetting_quality_over_null"]
    names = dict(zip(("unlearned", "retrained", "independent"), map(competition.Models, sides), strict=True))
    rows = competition.evaluate(**names, options=options, rng=rng)
    assert mean(parts)[0] == pytest.approx(value(rows, "forgetting_quality_over_null"), abs=1e-12)
    assert parts.value.shape == (1, 8)
