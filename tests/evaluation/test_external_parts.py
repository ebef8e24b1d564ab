"""Which populations of a folder make swapped pairs, the competition's score and RULI; else the reason."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.evaluation import scoring
from unlearning_audit.metrics import competition, ruli
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError

import metric_calls as call
from folder_cases import SETTINGS, Y, pair, population, same_forget


def changed(name: str, models: slice, samples: list[int]):
    """A swapped pair of which some models have another mask."""
    member = pair()
    mask = getattr(member, name).copy()
    mask[models] = np.isin(np.arange(15), samples)
    return replace(member, **{name: mask})


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (pair(), ""),
        (replace(pair(), block=np.array([0, 1, 0, 1])), ""),
        (replace(pair(), split=np.array([0, 0, 1, 2])), "block 0 has 3 splits, a swapped pair has two"),
        (replace(pair(), block=np.array([4, 4, 4, 7])), "block 7 has 1 splits, a swapped pair has two"),
        (changed("forget", slice(1, 2), [0, 1, 6]), "models of split 0 in block 0 differ in forget or heldout"),
        (changed("heldout", slice(3, 4), [0, 1]), "models of split 1 in block 0 differ in forget or heldout"),
        (changed("heldout", slice(0, 2), [3, 4]), "in block 0 the forget set of one split is not the heldout set"),
        (changed("heldout", slice(2, 4), [0, 1]), "in block 0 the forget set of one split is not the heldout set"),
    ],
)
def test_why_models_are_no_swapped_pairs(member, why):
    reason = population(member).why_unpaired
    assert reason.startswith(why)
    assert bool(reason) == bool(why)


OTHER_Y = (Y + 1) % 3
RETRAIN, CONTROL = (population(same_forget(4), seed) for seed in (1, 2))
OTHER_FORGET = population(same_forget(4, (0, 1)))


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ({"retrain": RETRAIN}, ""),
        ({"retrain": RETRAIN, "retrain_control": CONTROL}, ""),
        ({"retrain_control": CONTROL}, "there is no retrain/ (for retrain itself: retrain_control/)"),
        ({"retrain": population(same_forget(4), y=OTHER_Y)}, "retrain/ holds other samples than target/"),
        ({"retrain": OTHER_FORGET}, "the models of retrain/ have other forget sets than those of target/"),
        ({"retrain": RETRAIN, "retrain_control": OTHER_FORGET}, "the models of retrain_control/ have other forget"),
    ],
)
def test_why_the_score_of_the_competition_cannot_be_computed(others, why):
    rows = call.rows(competition, population(same_forget(), others=others), SETTINGS)
    assert [(row.metric, row.note[: len(why)]) for row in rows if row.metric == "score"] == [("score", why)]
    assert bool(why) == (len(rows) == 1)
    (row,) = call.rows(competition, population(pair(), others=others), SETTINGS) if not why else rows
    assert why or "different forget sets" in row.note


MEMBER = pair()
WHOLE = {
    "original": population(MEMBER, 3), "shadow": population(pair(4), 5), "shadow_original": population(pair(4), 6)
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"original": None}, "there is no original/"),
        ({"original": population(pair(4))}, "the models of original/ are not those of target/"),
        ({"shadow": None}, "there is no shadow/ with logits"),
        ({"shadow": population(pair(4), y=OTHER_Y)}, "shadow/ holds other samples than target/"),
        ({"shadow_original": None}, "there is no shadow_original/"),
        ({"shadow_original": WHOLE["original"]}, "the models of shadow_original/ are not those of shadow/"),
    ],
)
def test_why_ruli_s_question_cannot_be_asked(change, why):
    others = {name: group for name, group in {**WHOLE, **change}.items() if group is not None}
    first, *more = call.rows(ruli, population(MEMBER, others=others), SETTINGS)
    assert bool(why) == (not more)
    assert not why or (first.metric, first.attack, first.note[: len(why)]) == ("privacy_auc", "ruli", why)


def test_what_reads_both_sides_of_unlearning_learns_from_shadow_models_before_and_after():
    evaluation = population(MEMBER, others=WHOLE)
    ((_, shadow),) = evaluation.shadows(("before",))
    before = stats.phi(logits=WHOLE["shadow_original"].unlearned, y=Y)
    np.testing.assert_allclose(shadow.before, before[:, evaluation.queried])
    np.testing.assert_allclose(shadow.logits, WHOLE["shadow"].unlearned[:, evaluation.queried])
    others = {name: group for name, group in WHOLE.items() if name != "shadow_original"}
    ((_, shadow),) = population(MEMBER, others=others).shadows(("before",))
    assert not len(shadow.logits)


@pytest.mark.parametrize("name", ["lira", "rmia"])
@pytest.mark.parametrize("other", [True, False], ids=["other_samples", "same_samples"])
def test_attacks_with_a_model_per_sample_are_not_asked_where_shadow_models_know_other_samples(name, other):
    """One class is forgotten, so that labels do not tell samples apart."""
    y, order = np.zeros(15, np.int64), slice(None, None, -1 if other else None)
    sides = {mask: getattr(MEMBER, mask)[:, order].copy() for mask in ("train", "forget", "heldout")}
    evaluation = population(MEMBER, y=y, others={"shadow": population(replace(MEMBER, **sides), 5, y=y)})
    scores = list(scoring.score_by_shadows(evaluation, "it", registry.load("attacks", name), {"options": {}}, 0))
    assert [part["form"][0] for part in scores] == ["unlearned"] * (not other)
    why = evaluation.missing.get("it/unlearned", "")
    assert why.startswith("the shadow models cover other samples") if other else not why


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("raise ValueError('no members')", "it learns from shadow models, and there is no shadow_original/; mine.py"),
        ("return undefined", "NameError: name 'undefined' is not defined"),
        ("return None", "it returned None"),
    ],
)
def test_what_is_wrong_with_an_attack_of_a_user_is_told_without_shadow_models(workdir, line, words):
    """An attack that says what it lacks is not asked; one that fails, fails."""
    head = "from unlearning_audit.plugins.settings import Settings\nclass Options(Settings): pass\n"
    Path("mine.py").write_text(f"{head}def score(logits, y, shadow, options, rng):\n    {line}\n")
    evaluation, module = population(MEMBER), registry.load("attacks", "mine", "mine.py")
    if "learns" in words:
        assert list(scoring.score_by_shadows(evaluation, "mine", module, {"options": {}}, 0)) == []
        assert evaluation.missing["mine/trained"].startswith(words)
        assert evaluation.missing["mine/trained"].endswith("line 4, in score: ValueError: no members")
    else:
        with pytest.raises(PluginError, match=words):
            list(scoring.score_by_shadows(evaluation, "mine", module, {"options": {}}, 0))


def test_a_reference_holds_samples_that_its_models_know_from_one_side_only():
    """All of them forgot 0 to 2 and have never seen 3 to 5."""
    evaluation = population(MEMBER, others={"shadow": population(MEMBER[:2], 5)})
    np.testing.assert_array_equal(dict(evaluation.shadows(()))["unlearned"].index, np.arange(6))


def test_why_an_attack_cannot_read_more_than_logits_is_true_of_any_folder():
    """A folder may hold shadow models before unlearning, which would tell it."""
    evaluation = population(MEMBER, others={"shadow_original": population(MEMBER, 5)})
    for signals in (("reference_logp",), ("before", "reference_logp")):
        sentences = [why for _, why in evaluation.shadows(signals)]
        assert sentences == ["it needs reference logp, which is not read of models from elsewhere"] * 2
