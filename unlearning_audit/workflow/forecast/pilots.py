"""Find finished comparisons that predict which distances a study will be able to detect.

A pilot has the same data, model, recipe and protocol. Its numbers of blocks and models, its methods and its seed may
differ.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from unlearning_audit.workflow import compared
from unlearning_audit.workflow.nodes import ROOT, Plan

#: Options of protocols that state the number of models per split or per block.
MODEL_COUNTS = ("models_per_split", "models_per_block", "models")
COUNTS = (*MODEL_COUNTS, "shadow_models_per_split", "shadow_blocks", "target_blocks")


@dataclass(frozen=True)
class Size:
    """The size of a comparison.

    Parameters
    ----------
    node
        The name of the comparison's node.
    kind
        A text; comparisons of equal kind have the same data, model, recipe and protocol.
    blocks
        The number of blocks: models that are drawn together, such as a pair.
    models
        The number of models per split or block.
    """

    node: str
    kind: str
    blocks: int
    models: int

    def times(self, pilot: "Size", unit: str) -> tuple[float, float]:
        """Return how many times as many units this comparison has as the ``pilot``, and how many times as many models
        per unit.

        Parameters
        ----------
        unit
            What is resampled, "pairs" or "blocks"; anything else is taken for single models, of which a unit has one.
        """
        blocks, models = self.blocks / pilot.blocks, self.models / pilot.models
        return (blocks, models) if unit in ("pairs", "blocks") else (blocks * models, 1.0)


def planned(plan: Plan) -> dict[str, Size]:
    """Return how many models each comparison of a plan rests on: name of its node → size. Comparisons of imported
    models, which have no size (None), are left out."""
    sizes = {name: _size(name, compared.origins(node)) for name, node in plan.nodes["comparisons"].items()}
    return {name: size for name, size in sizes.items() if size}


def recorded(root: str | Path = ROOT) -> list[Size]:
    """Return the sizes of the finished comparisons in the folder ``root``, without those of imported models and those
    that cannot be read."""
    sizes: list[Size] = []
    for path in sorted(Path(root, "comparisons").absolute().glob("*/spec.json")):
        with suppress(ValueError, LookupError, TypeError, OSError, StopIteration):
            # A comparison of imported models has the size None, which the filter drops.
            sizes += filter(None, [_size(path.parent.name, compared.recorded(path.parent))])
    return sizes


def _size(node: str, origins: compared.Origins) -> Size | None:
    """Return the size of the comparison ``node``; None for imported models, which have no memberships drawn here.

    ``origins``: the settings of the jobs from which it comes. Blocks of shadow models do not count. The kind is a text
    of all settings but numbers of models and the seed of the data.
    """
    splits = [split for split in origins["splits"] if split["population"] != "shadows"]
    if not splits:
        return None
    protocol, trained = splits[0], origins["train"][0]
    options = {name: value for name, value in protocol["options"].items() if name not in COUNTS}
    kind = [
        {name: value for name, value in origins["data"][0].items() if name != "seed"}, protocol["protocol"], options,
        protocol.get("request"), trained["model"], trained["options"], trained["recipe"],
    ]  # fmt: skip
    count = next((protocol["options"][name] for name in MODEL_COUNTS if name in protocol["options"]), 1)
    blocks = {block for split in splits for block in split["blocks"]}
    return Size(node, json.dumps(kind, sort_keys=True), len(blocks), count)


def pilot(planned: Size, finished: Iterable[Size]) -> Size | None:
    """Return the finished comparison from which to predict what the ``planned`` comparison will detect: the planned
    comparison itself if it is finished, or else the finished comparison of the same kind that has most models. Return
    None if no comparison of this kind is finished."""
    alike = [size for size in finished if size.kind == planned.kind]
    itself = [size for size in alike if size.node == planned.node]
    # Of equally large ones, the last by name.
    return max(itself or alike, key=lambda size: (size.blocks * size.models, size.node), default=None)
