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


def compute(cases: Iterable[dict]) -> dict:
    """{"scenario|setting": {"phi": {"edges", "methods"}, "roc": {method: {"attack", "fpr", "tpr"}}}}.

    ``cases`` hold scenario, setting, method, ``attack`` (attack/form, "" if none speaks) and the ``files`` of a case
    as figures get them: data, splits, unlearned and, for attacks, scores. A case that failed has no curve.
    """
    places: dict[str, dict] = {}
    shared = _Shared()
    for case in cases:
        place = places.setdefault(f"{case['scenario']}|{case['setting']}", {"phi": {}, "roc": {}})
        files = case["files"]
        data = shared.data(files["data"])
        batches = [shared.membership(path, len(data.y)) for path in files["splits"]]
        with suppress(NoAnswerError):  # the method failed, and the verdict says so
            place["phi"][case["method"]] = phi.of(data, batches, files["unlearned"])
        if files.get("scores") and case["attack"] and (curve := _curve(files["scores"], case["attack"], data, batches)):
            place["roc"][case["method"]] = curve
    return {key: {**place, "phi": _binned(place["phi"])} for key, place in places.items()}


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


def _binned(values: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict:
    """Densities of φ over edges that all methods of a place share: {"edges": [low, high], "methods": {name: lists}}.

    The two lists, of `BARS` each, are of forgotten and of held-out samples; {} where no sample has a finite φ."""
    samples = [side for pair in values.values() for side in pair if len(side)]
    if not samples:
        return {}
    low, high = np.quantile(np.concatenate(samples), [TAIL, 1 - TAIL])
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return {}
    edges = np.linspace(low, high, BARS + 1)
    methods = {name: [_density(side, edges) if len(side) else [] for side in pair] for name, pair in values.items()}
    return {"edges": [round(float(low), 4), round(float(high), 4)], "methods": methods}


def _density(values: np.ndarray, edges: np.ndarray) -> list[float]:
    heights, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges, density=True)
    return [float(f"{height:.3g}") for height in heights]


def _curve(scores: str, attack: str, data: Data, batches: list[Membership]) -> dict:
    """The curve of one attack, or {} where it has none."""
    columns = tables.read_scores(scores).get(tuple(attack.split("/")))
    membership = Membership.concatenate(batches)
    target = membership[~membership.shadow]
    if columns is None:
        return {}
    score = np.full((len(target.seed), len(data.y)), np.nan)
    score[columns["model"], columns["index"]] = columns["score"]
    curve = roc.curve(attack, score, target, POINTS)
    if curve is None:
        return {}
    digits = {name: [float(f"{x:.3g}") for x in getattr(curve, name)] for name in ("fpr", "tpr")}
    return {"attack": attack, **digits}
