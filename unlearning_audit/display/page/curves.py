"""The curves behind the squares of the page: ROC of the attack that speaks, distributions of φ."""

import math
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np

from unlearning_audit.artifacts import tables
from unlearning_audit.artifacts.arrays import Data, Membership, NoAnswerError
from unlearning_audit.artifacts.files import read_json, write_json
from unlearning_audit.display.figures import phi, roc

#: Points of a ROC curve and bars of a distribution; what a screen resolves.
POINTS, BARS = 48, 32
#: Outermost share of φ on each side that counts in the outermost bars.
TAIL = 0.005
#: What a method lies between: doing nothing and retraining.
BOUNDS = ("none", "retrain")


def compute(cases: Iterable[dict]) -> dict:
    """{"scenario|setting": {"phi": {method: …}, "roc": {"attack": {method: attack}, "curves": {attack: {method: …}}}}}.

    ``cases`` hold scenario, setting, method, ``attack`` (attack/form, "" if none speaks) and the ``files`` of a case
    as figures get them: data, splits, unlearned and, for attacks, scores. Under the attack that speaks for a method,
    doing nothing and retraining have a curve too, as `_densities` has their distributions beside the method's. A case
    that failed has no curve.
    """
    places: dict[str, list[dict]] = {}
    for case in cases:
        places.setdefault(f"{case['scenario']}|{case['setting']}", []).append(case)
    shared = _Shared()
    return {key: _place(members, shared) for key, members in places.items()}


def _place(cases: list[dict], shared: "_Shared") -> dict:
    """The distributions and curves of one scenario at one step of its axis."""
    values, spoken = {}, {case["method"]: case["attack"] for case in cases if case["attack"]}
    curves: dict[str, dict] = {attack: {} for attack in spoken.values()}
    for case in cases:
        method, files = case["method"], case["files"]
        data = shared.data(files["data"])
        batches = [shared.membership(path, len(data.y)) for path in files["splits"]]
        with suppress(NoAnswerError):  # the method failed, and the verdict says so
            values[method] = phi.of(data, batches, files["unlearned"])
        attacks = list(curves) if method in BOUNDS else [case["attack"]] if case["attack"] else []
        if files.get("scores") and attacks:
            for attack, curve in _curves(files["scores"], attacks, data, batches).items():
                curves[attack][method] = curve
    densities = {method: _densities(values, method) for method in values}
    attack_of = {method: attack for method, attack in spoken.items() if method in curves[attack]}
    return {"phi": {m: d for m, d in densities.items() if d}, "roc": {"attack": attack_of, "curves": curves}}


class _Shared:
    """Data and memberships, which the methods of a scenario share, are read once while they are asked for in turn."""

    def __init__(self) -> None:
        self.data = lru_cache(maxsize=2)(Data.read)
        self.membership = lru_cache(maxsize=64)(Membership.read)


def write(path: str | Path, cases: Iterable[dict]) -> None:
    """Compute and write the curves as JSON."""
    write_json(path, compute(cases))


def read(path: str | Path) -> dict:
    """What `write` wrote. Raises ArtifactError that names the file."""
    return read_json(path)


def _densities(values: dict[str, tuple[np.ndarray, np.ndarray]], method: str) -> dict:
    """Densities of φ, `BARS` each over the same edges: {"edges": [low, high], "after": of the forgotten samples,
    "unseen": of those never seen, both under ``method``, "before" and "retrained": of the forgotten samples under the
    original and the retrained models}. {} where no sample has a finite φ.

    The edges are those of the four together, so that another method which broke its models hides nothing."""
    none, retrain = BOUNDS
    sides = {"after": values[method][0], "unseen": values[method][1]}
    sides |= {
        name: values[bound][0]
        for name, bound in (("before", none), ("retrained", retrain))
        if bound in values and bound != method
    }
    samples = [side for side in sides.values() if len(side)]
    if not samples:
        return {}
    low, high = np.quantile(np.concatenate(samples), [TAIL, 1 - TAIL])
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return {}
    edges = np.linspace(low, high, BARS + 1)
    bars = {name: _density(side, edges) for name, side in sides.items() if len(side)}
    return {"edges": [round(float(low), 4), round(float(high), 4)], **bars}


def _density(values: np.ndarray, edges: np.ndarray) -> list[float]:
    heights, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges, density=True)
    return [float(f"{height:.3g}") for height in heights]


def _curves(scores: str, attacks: list[str], data: Data, batches: list[Membership]) -> dict[str, dict]:
    """The curve of each of ``attacks`` that has one."""
    table = tables.read_scores(scores)
    membership = Membership.concatenate(batches)
    target = membership[~membership.shadow]
    curves = {}
    for attack in attacks:
        columns = table.get(tuple(attack.split("/")))
        if columns is None:
            continue
        score = np.full((len(target.seed), len(data.y)), np.nan)
        score[columns["model"], columns["index"]] = columns["score"]
        curve = roc.curve(attack, score, target, POINTS)
        if curve is not None:
            curves[attack] = {name: [float(f"{x:.3g}") for x in getattr(curve, name)] for name in ("fpr", "tpr")}
    return curves
