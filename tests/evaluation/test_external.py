"""Logits from elsewhere: what a folder may hold, what is refused, what is inferred, and that the numbers are ours."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.evaluation import scoring
from unlearning_audit.evaluation.arrays import Data, Logits, Membership
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import competition, ruli, swap
from unlearning_audit.plugins import registry
from unlearning_audit.randomness.keyed import generator

import metric_calls as call
from external_cases import CLASSES, answers, number, planned, reason, run, save, world
from row_places import about

ATTACKS = ["correctness", "confidence", "modified_entropy", "shadow", "kde", "random"]


def same(part: list[dict], whole: list[dict], *metrics: str) -> int:
    """Assert that all rows of ``part`` stand in ``whole`` with the same numbers; how many of ``metrics`` there are."""
    lookup = {(r.attack, r.metric, about(r)): r for r in whole}
    for row in part:
        twin = lookup[row.attack, row.metric, about(row)]
        for name in ("value", "ci_low", "ci_high", "n"):
            np.testing.assert_allclose(
                getattr(twin, name), getattr(row, name), rtol=0, atol=1e-12, err_msg=f"{row.attack} {row.metric} {name}"
            )
    return sum(row.metric in metrics for row in part)


# ---------------------------------------------------------------- the numbers are those of the workflow


def native(folder: Path, arrays: dict, method="mine") -> Evaluation:
    """The same models as one case of the workflow: targets first, then shadow models, stacked."""
    target, shadow = arrays[f"{method}/target"], arrays[f"{method}/shadow"]
    y, test = arrays["labels"], arrays["test"]
    train, forget = (np.concatenate([target[i], shadow[i]]) for i in (1, 2))
    union = np.concatenate([np.broadcast_to(side[1].any(0), side[1].shape) for side in (target, shadow)])
    half = len(target[1])
    split = np.tile(np.repeat([0, 1], 2), len(train) // 4)
    block = np.concatenate([np.arange(half) // 4, np.arange(len(train) - half) // 4])
    # What another model of the same side saw and this one did not.
    member = Membership(
        train, forget, union & ~train, np.arange(len(train)), split, block, np.arange(len(train)) >= half
    )
    folder.mkdir()
    Data(np.zeros((len(y), 1), np.float32), y, test.astype(np.uint8), y, np.arange(len(y)), CLASSES).write(
        folder / "data.npz"
    )
    member.write(folder / "membership.npz")
    logits = {
        "originals": np.concatenate([arrays["original"][0], arrays["shadow_original"][0]]),
        "unlearned": np.concatenate([target[0], shadow[0]]),
    }
    for name, value in logits.items():
        Logits(value, np.arange(len(y)), y).write(folder / f"{name}.npz")
    data, *lists = (str(folder / f"{name}.npz") for name in ("data", "membership", "originals", "unlearned"))
    return Evaluation(data, *([path] for path in lists))


def test_scores_and_the_swap_test_are_those_of_the_workflow(workdir):
    arrays = world(workdir / "logits")
    rows = run(planned(attacks=ATTACKS), "mine")["mine"]
    case = native(workdir / "native", arrays)
    scores = {}
    for name in sorted(ATTACKS):
        spec = {"name": name, "options": {}}
        for column in scoring.scored(case, name, registry.load("attacks", name), spec, 0):
            dense = np.full((8, 200), np.nan), np.zeros((8, 200), bool)
            for to, field in zip(dense, ("score", "decision"), strict=True):
                to[column["model"], column["index"]] = column[field]
            scores[name, str(column["form"][0])] = dense
    case.__dict__["scores"] = scores
    sets = {name: [n for n in swap.ATTACK_SETS["adaptive"] if n in ATTACKS] for name in ("paper_set", "adaptive_set")}
    settings = {**sets, "bootstrap": 1000, "seed": 0}
    expected = call.rows(swap, case, settings)
    assert same(expected, rows, "q", "advantage", "auc") > 30
    assert 0 < number(rows, "q", "adaptive") < 1


def test_a_trace_is_found_and_its_absence_is_not(workdir):
    world(workdir / "logits", methods=("good", "bad"), trace=(0.0, 3.0), pairs=3)
    rows = run(planned(("good", "bad"), ATTACKS))
    assert list(rows) == ["none", "good", "bad", "retrain", "retrain_control"]
    for method in ("good", "retrain", "retrain_control"):
        (auc,) = [r for r in rows[method] if (r.metric, r.attack) == ("auc", "phi")]
        assert auc.ci_low <= 0.5 <= auc.ci_high, method
    for method in ("none", "bad"):
        assert number(rows[method], "q", "adaptive") < 0.5 < number(rows["good"], "q", "adaptive")


def test_the_score_of_the_competition_is_that_of_the_workflow(workdir):
    rng = np.random.default_rng(1)
    y, test = rng.integers(CLASSES, size=120), np.arange(120) >= 90
    train, forget = ~test & (np.arange(120) < 80), np.arange(120) < 10
    populations = {"target": (4.0, 12), "retrain": (0.0, 9), "retrain_control": (0.0, 10)}
    save("logits", labels=y, test=test, train=train, forget=forget)
    logits = {}
    for name, (trace, models) in populations.items():
        logits[name] = answers(rng, y, np.tile(train, (models, 1)), np.tile(forget, (models, 1)), memory=2, trace=trace)
        save(f"logits/{name}", logits=logits[name])
    groups = [competition.Models(
        stats.phi(logits=values[:, forget], y=y[forget]),
        (values.argmax(-1) == y)[:, train & ~forget], (values.argmax(-1) == y)[:, test],
    ) for values in logits.values()]  # fmt: skip
    expected = competition.evaluate(
        unlearned=groups[0], retrained=groups[1], independent=groups[2], options=competition.Options(),
        rng=generator(0, "competition"),
    )  # fmt: skip
    results = run(planned(attacks=[]))
    assert same(expected, results["mine"], "score", "forgetting_quality_over_null") == 2
    of_retrain = competition.evaluate(
        unlearned=groups[1], retrained=groups[2], options=competition.Options(), rng=generator(0, "competition")
    )
    assert same(of_retrain, results["retrain"], "score", "forgetting_quality") == 2
    shutil.rmtree("logits/retrain_control")
    assert "retrain_control/" in reason(run(planned(attacks=[]), "retrain")["retrain"], "score")
    np.save("logits/retrain/forget.npy", np.arange(120) < 11)
    assert "retrain/ have other forget sets" in reason(run(planned(attacks=[]), "mine")["mine"], "score")
    quality = {name: number(rows, "forgetting_quality", setting=None) for name, rows in results.items()}
    assert quality["retrain"] > 2 * quality["mine"]


def test_ruli_and_attacks_with_a_model_per_sample_run_where_shadow_models_know_every_sample(workdir):
    rng = np.random.default_rng(2)
    n, shadows = 60, 30
    y = rng.integers(CLASSES, size=n)
    turn = (np.arange(n) + np.arange(shadows + 3)[:, None]) % 3  # kept, forgotten, never seen, in turn
    train, forget = turn < 2, turn == 1
    save("logits", labels=y)
    parts = {}
    for name, rows in (("target", slice(shadows, None)), ("shadow", slice(shadows))):
        for kind in (name, {"target": "original", "shadow": "shadow_original"}[name]):
            logits = answers(rng, y, train[rows], forget[rows], memory=3, trace=3)
            parts[kind] = stats.phi(logits=logits, y=y)
            save(
                f"logits/{kind}",
                logits=logits,
                **({"train": train[rows], "forget": forget[rows]} if kind == name else {}),
            )
    retrained = answers(rng, y, train[shadows:], forget[shadows:], memory=3, trace=0)
    save("logits/retrain", logits=retrained)
    rows = run(planned(attacks=["lira", "rmia"]), "mine")["mine"]
    masks = {"train": train, "forget": forget, "heldout": turn == 2}
    targets, shadow = (
        ruli.Population(parts[before], parts[after], **{name: mask[part] for name, mask in masks.items()})
        for before, after, part in (
            ("original", "target", slice(shadows, None)), ("shadow_original", "shadow", slice(shadows))
        )
    )  # fmt: skip
    targets = replace(targets, retrained=stats.phi(logits=retrained, y=y))
    expected = ruli.evaluate(targets=targets, shadows=shadow, options=ruli.Options())
    assert same(expected, rows, "privacy_auc", "efficacy_auc") == 4
    assert number(rows, "privacy_auc", "ruli", None) > 0.8
    for attack in ("lira/unlearned", "rmia/unlearned", "lira/trained"):
        assert number(rows, "auc", attack) > 0.6
    assert "forget set of one split" in reason(rows, "q", "adaptive") or "splits" in reason(rows, "q", "adaptive")


# ---------------------------------------------------------------- what is not there is said


@pytest.mark.parametrize(
    ("missing", "metric", "attack", "setting", "words"),
    [
        ("mine/shadow", "advantage", "kde/unlearned", "", "no shadow/"),
        ("shadow_original", "advantage", "kde/trained", "", "no shadow_original/"),
        ("test.npy", "accuracy", "", "role=test", "test.npy"),
        ("", "score", "", "", "different forget sets"),
        ("", "advantage", "lira/unlearned", "", "same samples"),
    ],
)
def test_what_cannot_be_computed_is_an_empty_row_with_the_reason(workdir, missing, metric, attack, setting, words):
    world(workdir / "logits")
    target = workdir / "logits" / missing
    if missing:
        target.unlink() if target.is_file() else shutil.rmtree(target)
    rows = run(planned(attacks=["correctness", "kde", "lira"]), "mine")["mine"]
    assert words in reason(rows, metric, attack, setting)
    assert all(r.note for r in rows if np.isnan(r.value))
    for name in ("accuracy", "auc"):  # always there
        assert number(rows, name, *(("", "role=forget") if name == "accuracy" else ("phi", ""))) > 0
