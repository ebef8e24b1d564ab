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
        """Return how many times as many units this comparison has as the ``pilot``, and how many times as many models
        per unit.

        ``unit``: what is resampled, "pairs" or "blocks"; anything else is taken for single models.
        """
        blocks, models = self.blocks / pilot.blocks, self.models / pilot.models
        return (blocks, models) if unit in ("pairs", "blocks") else (blocks * models, 1.0)


def planned(plan: Plan) -> list[dict[str, Any]]:
    """Return every node of a plan as JSON values, to be compared with finished nodes (`recorded`).

    Each has ``stage``, ``node`` (its name), ``settings``, and ``after`` (stage → names of its parents).
    """
    nodes = []
    for node in plan.all():
        after: dict[str, list[str]] = {}
        for parent in node.parents.values():
            after.setdefault(parent.stage, []).append(parent.name)
        nodes.append({"stage": node.stage, "node": node.name, "settings": node.settings, "after": after})
    return nodes


def recorded(root: str | Path = ROOT) -> list[dict[str, Any]]:
    """Return the finished nodes in the folder ``root`` as JSON values: ``stage``, ``node`` (its name), ``settings``,
    and ``after`` (stage → names of its parents).

    Only stages that a comparison depends on are read. Unreadable nodes are left out.
    """
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
    """Return node's name → size for each comparison among ``nodes``, without those of imported models. ``nodes`` are as
    `planned` and `recorded` return them."""
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
    """Return the comparison from which to predict what the comparison ``of`` will detect: ``of`` itself if it is among
    the finished ``sizes``, otherwise the largest of the same kind, or None."""
    alike = [size for size in sizes if size.kind == of.kind]
    return max(alike, key=lambda size: (size.node == of.node, size.blocks * size.models, size.node), default=None)
