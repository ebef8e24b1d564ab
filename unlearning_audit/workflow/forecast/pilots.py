"""Find finished comparisons that predict which distances a study will be able to detect.

A pilot has the same data, model, recipe and protocol. Its numbers of blocks and models, its methods and its seed may
differ.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unlearning_audit.store.files import ArtifactError, read_json
from unlearning_audit.workflow.nodes import ROOT, Plan

STAGES = ("data", "splits", "train", "unlearn", "metrics", "comparisons")
#: Options of protocols that state the number of models per split or per block.
MODELS = ("models_per_split", "models_per_block", "models")
NUMBERS = (*MODELS, "shadow_models_per_split", "shadow_blocks", "target_blocks")


@dataclass(frozen=True)
class Size:
    """The size of a comparison: its number of ``blocks``, and of ``models`` per split or block.

    Comparisons of equal ``kind`` have the same data, model, recipe and protocol.
    """

    node: str
    kind: str
    blocks: int
    models: int

    def times(self, pilot: "Size", unit: str) -> tuple[float, float]:
        """Return how many times as many units, and models per unit, this comparison has as the ``pilot``. ``unit``: the
        name of a unit."""
        blocks, models = self.blocks / pilot.blocks, self.models / pilot.models
        return (blocks, models) if unit in ("pairs", "blocks") else (blocks * models, 1.0)


def planned(plan: Plan) -> list[dict[str, Any]]:
    """Return every node of a plan as JSON values: stage, name (``node``), settings, and its parents' names by stage
    (``after``)."""
    nodes = []
    for node in plan.all():
        after: dict[str, list[str]] = {}
        for parent in node.parents.values():
            after.setdefault(parent.stage, []).append(parent.name)
        nodes.append({"stage": node.stage, "node": node.name, "settings": node.settings, "after": after})
    return nodes


def recorded(root: str | Path = ROOT) -> list[dict[str, Any]]:
    """Return the finished nodes in ``root``, in the form of `planned`. Unreadable ones are left out."""
    nodes = []
    for stage in STAGES:
        for path in sorted(Path(root, stage).glob("*/spec.json")):
            try:
                spec = read_json(path)
                parents = {tuple(Path(path_of).parts[-3:-1]) for path_of in spec["inputs"]}
                settings = spec["settings"]
            except (ArtifactError, KeyError, OSError):
                continue
            after: dict[str, list[str]] = {}
            for of, name in sorted(parents):
                after.setdefault(of, []).append(name)
            nodes.append({"stage": stage, "node": path.parent.name, "settings": settings, "after": after})
    return nodes


def sizes(nodes: Iterable[dict[str, Any]]) -> dict[str, Size]:
    """Return node → size for each comparison among ``nodes`` whose models the workflow makes."""
    by_name = {(node["stage"], node["node"]): node for node in nodes}
    comparisons = (_size(by_name, node) for (stage, _), node in by_name.items() if stage == "comparisons")
    return {size.node: size for size in comparisons if size}


def _size(by_name: dict[tuple[str, str], dict[str, Any]], node: dict[str, Any]) -> Size | None:
    """Return the size of one comparison; None if its memberships, models or data are not among the nodes."""

    def parents(of: list[dict[str, Any]], stage: str) -> list[dict[str, Any]]:
        names = dict.fromkeys(name for child in of for name in child["after"].get(stage, ()))
        return [by_name[stage, name] for name in names if (stage, name) in by_name]

    metrics = parents([node], "metrics")
    splits = [split for split in parents(metrics, "splits") if split["settings"]["population"] != "shadows"]
    models, data = parents(metrics, "train"), parents(metrics, "data")
    if not (splits and models and data):
        return None
    protocol, trained = splits[0]["settings"], models[0]["settings"]
    options = {name: value for name, value in protocol["options"].items() if name not in NUMBERS}
    kind = [
        {name: value for name, value in data[0]["settings"].items() if name != "seed"}, protocol["protocol"], options,
        protocol.get("request"), trained["model"], trained["options"], trained["recipe"],
    ]  # fmt: skip
    count = next((protocol["options"][name] for name in MODELS if name in protocol["options"]), 1)
    blocks = {block for split in splits for block in split["settings"]["blocks"]}
    return Size(node["node"], json.dumps(kind, sort_keys=True), len(blocks), count)


def pilot(of: Size, sizes: Iterable[Size]) -> Size | None:
    """Return the largest finished comparison of the same kind, or the comparison itself if it is finished; None if
    there is none."""
    alike = [size for size in sizes if size.kind == of.kind]
    return max(alike, key=lambda size: (size.node == of.node, size.blocks * size.models, size.node), default=None)
