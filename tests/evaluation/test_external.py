"""Logits from elsewhere: the numbers are those of the workflow, and what cannot be computed is said."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.evaluation import opening, scoring
from unlearning_audit.evaluation.arrays import Logits, Membership
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import competition, ruli, swap
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.store import tables

import metric_calls as call
from external_cases import CLASSES, answers, number, only, planned, reason, run, save, world
from row_places import about

ATTACKS = ["correctness", "confidence", "modified_entropy", "shadow", "kde", "random"]
FIELDS = ("value", "ci_low", "ci_high", "n")


def same(part, whole, *metrics: str) -> int:
    """Assert that all rows of ``part`` stand in ``whole`` with the same numbers; how many of ``metrics`` there are."""
    lookup = {(row.attack, row.metric, about(row)): row for row in whole}
    for row in part:
        twin = lookup[row.attack, row.metric, about(row)]
        expected, found = ([getattr(one, name) for name in FIELDS] for one in (row, twin))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, err_msg=f"{row.attack} {row.metric}")
    return sum(row.metric in metrics for row in part)


def test_scores_and_the_swap_test_are_those_of_the_workflow(workdir):
    """Where the imported models are one case: targets first, then shadow models, stacked."""
    world(workdir / "logits")
    whole = only(planned(attacks=ATTACKS), "swap")
    rows = run(whole, "mine")["mine"]
    node = next(node for node in whole.nodes["metrics"].values() if "mine" in node.name)
    evaluation = opening.imported_evaluation(node.settings["populations"], node.inputs["populations"])
    first, second = evaluation.membership, evaluation.others["shadow"].membership
    second = replace(second, shadow=~second.shadow, seed=second.seed + 8, block=second.block + 2)
    Membership.concatenate([first, second]).write("native/membership.npz")
    evaluation.data.write("native/data.npz")
    others = {name: group.logits() for name, group in evaluation.others.items()}
    np.testing.assert_array_equal(evaluation.retrained.logits, others["retrain"])  # what a user's metric may read
    for name, parts in {"originals": (others["original"], others["shadow_original"]),
                        "unlearned": (evaluation.unlearned, others["shadow"])}.items():  # fmt: skip
        Logits(np.concatenate(parts), evaluation.data.index, evaluation.data.y).write(f"native/{name}.npz")
    data, *lists = (f"native/{name}.npz" for name in ("data", "membership", "originals", "unlearned"))
    native = Evaluation(data, *([path] for path in lists), scores_file="scores.parquet")
    attacks = {name: {"name": name, "options": {}} for name in sorted(ATTACKS)}
    tables.write_scores("scores.parquet", *scoring.score(native, attacks))
    sets = {name: [n for n in swap.ATTACK_SETS["adaptive"] if n in ATTACKS] for name in ("paper_set", "adaptive_set")}
    expected = call.rows(swap, native, {**sets, "bootstrap": 1000, "seed": 0})
    assert same(expected, rows, "q", "advantage", "auc") > 30
    assert 0 < number(rows, "q", "adaptive") < 1


def test_a_trace_is_found_and_its_absence_is_not(workdir):
    world(workdir / "logits", methods=("good", "bad"), trace=(0.0, 3.0), pairs=3)
    rows = run(only(planned(("good", "bad"), ATTACKS, bootstrap=100), "swap", "phi"))
    assert list(rows) == ["none", "good", "bad", "retrain", "retrain_control"]
    for method in ("good", "retrain", "retrain_control"):
        (auc,) = [row for row in rows[method] if (row.metric, row.attack) == ("auc", "phi")]
        assert auc.ci_low <= 0.5 <= auc.ci_high, method
    for method in ("none", "bad"):
        assert number(rows[method], "q", "adaptive") < 0.5 < number(rows["good"], "q", "adaptive")


def test_the_score_of_the_competition_is_that_of_the_workflow(workdir):
    rng = np.random.default_rng(1)
    y, test = rng.integers(CLASSES, size=120), np.arange(120) >= 90
    train, forget = np.arange(120) < 80, np.arange(120) < 10
    save("logits", labels=y, test=test, train=train, forget=forget)
    groups = []
    for name, trace, models in (("target", 4.0, 12), ("retrain", 0.0, 9), ("retrain_control", 0.0, 10)):
        logits = answers(rng, y, np.tile(train, (models, 1)), np.tile(forget, (models, 1)), memory=2, trace=trace)
        save(f"logits/{name}", logits=logits)
        right = logits.argmax(-1) == y
        phi = stats.phi(logits=logits[:, forget], y=y[forget])
        groups.append(competition.Models(phi, right[:, train & ~forget], right[:, test]))
    results = run(only(planned(attacks=[]), "competition", "forgotten_phi"), "mine", "retrain")
    for method, parts in (("mine", groups), ("retrain", groups[1:])):
        models = dict(zip(("unlearned", "retrained", "independent"), parts, strict=False))
        options, rng = competition.Options(), generator(0, "competition")
        assert same(competition.evaluate(**models, options=options, rng=rng), results[method], "score") == 1
    quality = {name: number(rows, "forgetting_quality", setting=None) for name, rows in results.items()}
    assert quality["retrain"] > 2 * quality["mine"]


def test_ruli_and_attacks_with_a_model_per_sample_run_where_shadow_models_know_every_sample(workdir):
    rng, shadows = np.random.default_rng(2), 30
    y = rng.integers(CLASSES, size=60)
    turn = (np.arange(60) + np.arange(shadows + 3)[:, None]) % 3  # kept, forgotten, never seen, in turn
    masks = {"train": turn < 2, "forget": turn == 1}
    save("logits", labels=y)
    parts = {}
    for kind in ("target", "original", "shadow", "shadow_original", "retrain"):
        of = {name: mask[:shadows] if "shadow" in kind else mask[shadows:] for name, mask in masks.items()}
        logits = answers(rng, y, **of, memory=3, trace=0 if kind == "retrain" else 3)
        parts[kind] = stats.phi(logits=logits, y=y)
        save(f"logits/{kind}", logits=logits, **(of if kind in ("target", "shadow") else {}))
    rows = run(only(planned(attacks=["lira", "rmia"]), "ruli", "swap"), "mine")["mine"]
    masks["heldout"] = turn == 2
    targets, shadow = (
        ruli.Population(parts[before], parts[after], **{name: mask[part] for name, mask in masks.items()})
        for before, after, part in (("original", "target", slice(shadows, None)),
                                    ("shadow_original", "shadow", slice(shadows)))
    )  # fmt: skip
    targets = replace(targets, retrained=parts["retrain"])
    expected = ruli.evaluate(targets=targets, shadows=shadow, options=ruli.Options())
    assert same(expected, rows, "privacy_auc", "efficacy_auc") == 4
    assert number(rows, "privacy_auc", "ruli", None) > 0.8
    for attack in ("lira/unlearned", "rmia/unlearned", "lira/trained"):
        assert number(rows, "auc", attack) > 0.6
    assert "split" in reason(rows, "q", "adaptive")


@pytest.mark.parametrize(
    ("missing", "metric", "attack", "setting", "words"),
    [
        ("mine/shadow", "advantage", "kde/unlearned", "", "no shadow/"),
        ("shadow_original", "advantage", "kde/trained", "", "no shadow_original/"),
        ("test.npy", "accuracy", "", "role=test", "test.npy"),
    ],
)
def test_what_cannot_be_computed_is_an_empty_row_with_the_reason(workdir, missing, metric, attack, setting, words):
    world(workdir / "logits")
    target = workdir / "logits" / missing
    target.unlink() if target.is_file() else shutil.rmtree(target)
    rows = run(only(planned(attacks=["correctness", "kde"]), "swap", "accuracy", "phi"), "mine")["mine"]
    assert words in reason(rows, metric, attack, setting)
    assert all(row.note for row in rows if np.isnan(row.value))
    assert number(rows, "accuracy", setting="role=forget") > 0  # always there
    assert number(rows, "auc", "phi") > 0
