"""A user's folder of logits whose truth is known, and what the workflow makes of it, without the workflow."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from unlearning_audit.evaluation import external, rows
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.stages import here
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

from row_places import about

CLASSES = 4

#: Two swapped pairs of models, complete and correct.
GOOD = {
    "logits": np.random.default_rng(0).normal(size=(4, 12, 3)).astype(np.float32),
    "labels": np.arange(12) % 3,
    "train": np.tile(np.repeat([[1, 1, 0, 0], [1, 0, 1, 0]], 3, axis=1), (2, 1)).astype(bool),
    "forget": np.tile(np.repeat([[0, 1, 0, 0], [0, 0, 1, 0]], 3, axis=1), (2, 1)).astype(bool),
}


def memberships(rng, *, samples, low=0, high=None, pairs=1, models=2, k=20):
    """train and forget bool [models, samples] of swapped pairs on the samples ``low`` … ``high``."""
    high = samples if high is None else high
    train, forget = [], []
    for _ in range(pairs):
        order = low + rng.permutation(high - low)
        f, t, r = order[:k], order[k : 2 * k], order[2 * k :]
        for side in (f, t):
            for _ in range(models):
                train_mask, forget_mask = np.zeros((2, samples), bool)
                train_mask[r] = train_mask[side] = forget_mask[side] = True
                train.append(train_mask)
                forget.append(forget_mask)
    return np.array(train), np.array(forget)


def answers(rng, y, train, forget, *, memory, trace):
    """logits float32 [models, samples, classes]: kept samples are surer by ``memory``, forgotten ones by ``trace``."""
    logits = rng.normal(size=(*train.shape, CLASSES))
    bonus = rng.normal(size=len(y)) + memory * (train & ~forget) + trace * forget
    np.put_along_axis(logits, np.broadcast_to(y[:, None], (len(train), len(y), 1)), bonus[..., None], axis=-1)
    return logits.astype(np.float32)


def save(folder, **arrays):
    """``name.npy`` for every array, in a folder that is made."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(Path(folder) / f"{name}.npy", array)


def read(folder, population="target", **changes):
    """The files of GOOD with some changed (None: left out), read."""
    arrays = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    save(folder, **arrays)
    return external.read({name: Path(folder) / f"{name}.npy" for name in arrays}, population)


def world(root, *, seed=0, samples=200, pairs=2, models=2, methods=("mine",), trace=(0.5,), test=20):
    """Every population there may be; game on the first half of the samples, adversary on the second.

    Returns the arrays by population: labels, and (logits, train, forget) of each.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=samples)
    half = (samples - test) // 2
    marked = np.arange(samples) >= samples - test
    game = memberships(rng, samples=samples, high=half, pairs=pairs, models=models)
    adversary = memberships(rng, samples=samples, low=half, high=2 * half, pairs=pairs, models=models)
    arrays = {"labels": y, "test": marked}
    save(root, labels=y, test=marked)
    for method, left in zip(methods, trace, strict=True):
        for name, (train, forget) in (("target", game), ("shadow", adversary)):
            logits = answers(rng, y, train, forget, memory=3, trace=left)
            arrays[f"{method}/{name}"] = logits, train, forget
            save(Path(root) / method / name, logits=logits, train=train, forget=forget)
    for name, (train, forget), left in (
        ("original", game, 3), ("retrain", game, 0), ("retrain_control", game, 0), ("shadow_original", adversary, 3)
    ):  # fmt: skip
        arrays[name] = answers(rng, y, train, forget, memory=3, trace=left), train, forget
        masks = {"train": train, "forget": forget} if name == "shadow_original" else {}
        save(Path(root) / name, logits=arrays[name][0], **masks)
    return arrays


def config(methods=("mine",), attacks=("random",), path="logits", **fields):
    """The shortest study of a folder, as a mapping."""
    scenario = {"protocol": {"name": "external", "path": str(path)}, "methods": list(methods), "attacks": list(attacks)}
    return {"study": "own", "scenarios": {"audit": scenario}, **fields}


def planned(*args, **kwargs):
    return plan.make(reading.read(config(*args, **kwargs), "own.yaml"))


def only(whole: plan.Plan, *metrics: str) -> plan.Plan:
    """The plan, of whose metrics only some are computed."""
    for name, node in whole.nodes["metrics"].items():
        settings = {**node.settings, "metrics": {one: node.settings["metrics"][one] for one in metrics}}
        whole.nodes["metrics"][name] = replace(node, settings=settings)
    return whole


def run(whole: plan.Plan, *methods: str) -> dict[str, list[dict]]:
    """Make a plan in the working directory, or the numbers of some of its methods alone: method → its rows."""
    cases = {case.metrics: case for case in whole.cases if case.method in methods or not methods}
    judged = [node for node in whole.nodes["metrics"].values() if node.outputs["metrics"] in cases]
    for node in [*whole.nodes["external"].values(), *judged] if methods else ():
        if not Path(node.outputs["spec"]).exists():
            here.run(node)
    if not methods:
        here.judge(whole)
    return {case.method: rows.read(path) for path, case in cases.items()}


def number(rows, metric, attack="", setting=""):
    """The row's value; raises unless there is exactly one such row (``setting`` None: of any setting)."""
    return _row(rows, metric, attack, setting).value


def reason(rows, metric, attack="", setting=""):
    """Why there is no value."""
    row = _row(rows, metric, attack, setting)
    assert np.isnan(row.value)
    return row.note


def _row(rows, metric, attack, setting):
    found = [row for row in rows if isinstance(row, Row) and (row.metric, row.attack) == (metric, attack)]
    (row,) = (row for row in found if setting in (None, about(row)))
    return row
