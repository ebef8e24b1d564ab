"""Which populations of a folder make swapped pairs, the competition's score and RULI; else the reason."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.evaluation import scoring
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import competition, ruli
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError

import metric_calls as call
from folder_cases import SETTINGS, Y, pair, population, same_forget

MASKS = ("train", "forget", "heldout")

# ---------------------------------------------------------------- swapped pairs


def changed(name: str, model: int | slice, samples: list[int]) -> Membership:
    member = pair()
    value = getattr(member, name).copy()
    value[model] = np.isin(np.arange(15), samples)
    return replace(member, **{name: value})


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (pair(), ""),
        (pair(1), ""),
        (replace(pair(), split=np.array([0, 0, 1, 2])), "block 0 has 3 splits, a swapped pair has two"),
        (replace(pair(), block=np.array([0, 1, 0, 1])), ""),
        (replace(pair(), block=np.array([4, 4, 4, 7])), "block 7 has 1 splits, a swapped pair has two"),
        (changed("forget", 1, [0, 1, 6]), "models of split 0 in block 0 differ in forget or heldout"),
        (changed("heldout", 3, [0, 1]), "models of split 1 in block 0 differ in forget or heldout"),
        (changed("heldout", slice(0, 2), [3, 4]), "in block 0 the forget set of one split is not the heldout set"),
        (changed("heldout", slice(2, 4), [0, 1]), "in block 0 the forget set of one split is not the heldout set"),
    ],
)
def test_why_models_are_no_swapped_pairs(member, why):
    reason = population(member).unpaired
    assert reason.startswith(why)
    assert bool(reason) == bool(why)


# ---------------------------------------------------------------- the competition's score


def test_why_the_score_cannot_be_computed():
    member, other_y = same_forget(), (Y + 1) % 3
    retrain, control = (population(same_forget(4), seed) for seed in (1, 2))
    others_forget = population(same_forget(4, (0, 1)))
    for references, why in (
        ({"retrain": retrain}, ""),
        ({"retrain": retrain, "retrain_control": control}, ""),
        ({"retrain_control": control}, "there is no retrain/ (for retrain itself: retrain_control/)"),
        ({"retrain": population(same_forget(4), y=other_y)}, "retrain/ holds other samples than target/"),
        ({"retrain": others_forget}, "the models of retrain/ have other forget sets than those of target/"),
        ({"retrain": retrain, "retrain_control": population(same_forget(4), y=other_y)},
         "retrain_control/ holds other samples"),
        ({"retrain": retrain, "retrain_control": others_forget}, "the models of retrain_control/ have other forget"),
    ):  # fmt: skip
        rows = call.rows(competition, population(member, others=references), SETTINGS)
        if why:
            (row,) = rows
            assert row.metric == "score"
            assert row.note.startswith(why)
        else:
            assert not any(row.note.startswith(("there is", "the models of", "retrain")) for row in rows)
    (row,) = call.rows(competition, population(pair(), others={"retrain": retrain}), SETTINGS)
    assert "different forget sets" in row.note


# ---------------------------------------------------------------- RULI


def test_why_ruli_s_question_cannot_be_asked():
    member, shadow = pair(), population(pair(4), 5)
    whole = {"original": population(member, 3), "shadow": shadow, "shadow_original": population(pair(4), 6)}
    for change, why in (
        ({}, ""),
        ({"original": None}, "there is no original/"),
        ({"original": population(pair(4))}, "the models of original/ are not those of target/"),
        ({"shadow": None}, "there is no shadow/ with logits"),
        ({"shadow": population(pair(4), y=(Y + 1) % 3)}, "shadow/ holds other samples than target/"),
        ({"shadow_original": None}, "there is no shadow_original/"),
        ({"shadow_original": population(member)}, "the models of shadow_original/ are not those of shadow/"),
    ):
        references = {name: group for name, group in {**whole, **change}.items() if group is not None}
        case = population(member, others=references)
        rows = call.rows(ruli, case, SETTINGS)
        assert bool(why) == (len(rows) == 1)
        if why:
            (row,) = rows
            assert (row.metric, row.attack) == ("privacy_auc", "ruli")
            assert row.note.startswith(why)


def test_what_reads_both_sides_of_unlearning_learns_from_shadow_models_before_and_after():
    member, shadow, trained = pair(), population(pair(4), 5), population(pair(4), 6)
    both = {"original": population(member, 3), "shadow": shadow, "shadow_original": trained}
    case = population(member, others=both)
    ((_, reference),) = case.references(("before",))
    np.testing.assert_allclose(reference.before, stats.phi(logits=trained.unlearned, y=Y)[:, case.queried])
    np.testing.assert_allclose(reference.logits, shadow.unlearned[:, case.queried])
    del both["shadow_original"]
    ((_, reference),) = population(member, others=both).references(("before",))
    assert not len(reference.logits)


@pytest.mark.parametrize("name", ["lira", "rmia"])
@pytest.mark.parametrize("other", [True, False], ids=["other_samples", "same_samples"])
def test_attacks_with_a_model_per_sample_are_not_asked_where_shadow_models_know_other_samples(name, other):
    """One class is forgotten, so that labels do not tell samples apart."""
    member, y = pair(), np.zeros(15, np.int64)
    sides = {mask: getattr(member, mask)[:, ::-1].copy() if other else getattr(member, mask) for mask in MASKS}
    case = population(member, y=y, others={"shadow": population(replace(member, **sides), 5, y=y)})
    scores = list(scoring.scored(case, "it", registry.load("attacks", name), {"options": {}}, 0))
    assert [part["form"][0] for part in scores] == ["unlearned"] * (not other)
    assert ("it/unlearned" in case.missing) == other
    assert case.missing.get("it/unlearned", "the reference covers other samples").startswith(
        "the reference covers other samples"
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("raise ValueError('no members')", "it learns from shadow models, and there is no shadow_original/; mine.py"),
        ("return undefined", "NameError: name 'undefined' is not defined"),
        ("return None", "it returned None"),
    ],
)
def test_what_is_wrong_with_an_attack_of_a_user_is_told_without_shadow_models(monkeypatch, tmp_path, line, words):
    """An attack that says what it lacks is not asked; one that fails, fails."""
    monkeypatch.chdir(tmp_path)
    head = "from unlearning_audit.plugins.settings import Settings\nclass Options(Settings): pass\n"
    Path("mine.py").write_text(f"{head}def score(logits, y, reference, options, rng):\n    {line}\n")
    case, module = population(pair()), registry.load("attacks", "mine", "mine.py")
    if "learns" in words:
        assert list(scoring.scored(case, "mine", module, {"options": {}}, 0)) == []
        assert case.missing["mine/trained"].startswith(words)
        assert case.missing["mine/trained"].endswith("line 4, in score: ValueError: no members")
    else:
        with pytest.raises(PluginError, match=words):
            list(scoring.scored(case, "mine", module, {"options": {}}, 0))


def test_a_reference_holds_samples_that_its_models_know_from_one_side_only():
    one_side = pair()[:2]  # all forgot 0 to 2 and have never seen 3 to 5
    case = population(pair(), others={"shadow": population(one_side, 5)})
    np.testing.assert_array_equal(dict(case.references(()))["unlearned"].index, np.arange(6))


def test_why_an_attack_cannot_read_more_than_logits_is_true_of_any_folder():
    """A folder may hold shadow models before unlearning, which would tell it."""
    case = population(pair(), others={"shadow_original": population(pair(), 5)})
    for signals in (("reference_logp",), ("before", "reference_logp")):
        sentences = [why for _, why in case.references(signals)]
        assert sentences == ["it needs reference logp, which is not read of models from elsewhere"] * 2
