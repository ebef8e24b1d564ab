"""Cases of RULI on disk, whose phi is Gaussian with known means: models that need no training."""

from pathlib import Path

import numpy as np
from unlearning_audit.evaluation.arrays import Data, Logits, Membership, Selection
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.protocols import ruli, swap

SAMPLES, TEST = 700, 100
#: Mean phi of models that were trained on a sample, and of those that never saw it.
SEEN, UNSEEN = 3.0, 0.0


def data(seed: int = 0) -> Data:
    """Two balanced classes, so that phi is the difference of two logits; pixels that say nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, SAMPLES)
    part = (np.arange(SAMPLES) >= SAMPLES - TEST).astype(np.uint8)
    x = rng.integers(0, 255, (SAMPLES, 4, 4), dtype=np.uint8)
    return Data(x, y, part, y, np.arange(SAMPLES), 2)


def memberships(options: ruli.Options, selection: Selection | None = None, seed: int = 1) -> list[Membership]:
    """One batch for each population."""
    selections = () if selection is None else (selection,)
    return [
        Membership.concatenate([ruli.draw(b, population, data(), options, seed, *selections) for b in range(count)])
        for population, count in ruli.blocks(options).items()
    ]


def swapped_pairs(pairs: int = 2, models: int = 3, shadows: int = 1) -> list[Membership]:
    """Target and shadow models of so many swapped pairs, a batch each."""
    options = swap.Options(alpha=0.25, pairs=pairs, models_per_split=models, shadow_models_per_split=shadows)
    return [swap.draw(block, "pairs", data(), options, 1) for block in range(pairs)]


def trained(member: Membership) -> np.ndarray:
    """Mean phi of models that know what they were trained on."""
    return np.where(member.train, SEEN, UNSEEN)


def retrained(member: Membership) -> np.ndarray:
    """Mean phi of models that know what they kept."""
    return np.where(member.retain, SEEN, UNSEEN)


class Folder:
    """Files of one scenario; populations of models are added by name, from their mean phi."""

    def __init__(self, path: Path, parts: list[Membership], selection: Selection | None = None) -> None:
        self.path, self.parts, self.selection = path, parts, selection
        data().write(path / "data.npz")
        for i, part in enumerate(parts):
            part.write(path / f"splits{i}.npz")
        if selection is not None:
            selection.write(path / "selection.npz")
        self.rng = np.random.default_rng(2)

    def add(self, name: str, mean) -> list[str]:
        """Write logits whose phi is normal with ``mean(membership)`` and standard deviation 1."""
        y, files = data().y, []
        for i, part in enumerate(self.parts):
            phi = mean(part) + self.rng.normal(size=part.train.shape)
            logits = np.zeros((*phi.shape, 2), np.float32)
            np.put_along_axis(logits, np.broadcast_to(y, phi.shape)[..., None], phi[..., None].astype(np.float32), -1)
            folder = self.path / f"{name}{i}"
            folder.mkdir()
            Logits(logits, np.arange(SAMPLES), y).write(folder / "logits.npz")
            files.append(str(folder / "logits.npz"))
        return files

    def evaluation(self, original: list[str], unlearned: list[str], *references: list[str]) -> Evaluation:
        """A method's case; ``references`` are retrained models and their control."""
        splits = [str(self.path / f"splits{i}.npz") for i in range(len(self.parts))]
        retrained, control = [*references, None, None][:2]
        selection = str(self.path / "selection.npz") if self.selection is not None else None
        return Evaluation(
            str(self.path / "data.npz"), splits, original, unlearned, retrained_files=retrained, control_files=control,
            selection_file=selection,
        )  # fmt: skip


def covers(row: dict, truth: float, width: float) -> bool:
    """Whether the interval holds the truth and says something."""
    return row.ci_low <= truth <= row.ci_high and row.ci_high - row.ci_low < width
