"""How often a model is called broken: one drawn as the retrained ones are, and one that lost what it should keep.

Run: OMP_NUM_THREADS=1 python tests/benchmarks/broken_models.py [--audits N] [--to FOLDER]

Logits of known truth go through the accuracies of models and the decision as imported ones do. Models differ in skill,
by which every label leads; the audited ones have that of their kind or less.
"""

import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from unlearning_audit.comparisons import distances  # noqa: E402
from unlearning_audit.metrics import accuracy  # noqa: E402
from unlearning_audit.study.schema import Margins  # noqa: E402

from common import command_line, markdown  # noqa: E402
from verdict_worlds import CLASSES, evaluation  # noqa: E402

MARGINS, SAMPLES = Margins().model_dump(), 240
#: How the skill of models is drawn, float64 [models].
SKILLS = {
    "all alike": lambda rng, models: np.zeros(models),
    "normal, sd 0.7": lambda rng, models: 0.7 * rng.standard_normal(models),
    "normal, sd 2": lambda rng, models: 2.0 * rng.standard_normal(models),
    "normal, sd 5": lambda rng, models: 5.0 * rng.standard_normal(models),
    "Student's t, 3 degrees of freedom": lambda rng, models: rng.standard_t(3, models),
    "exponential": lambda rng, models: -2.0 * rng.standard_exponential(models),
    "one in four learned nothing": lambda rng, models: -5.0 * (rng.random(models) < 0.25),
}
#: What the audited models lost of their lead, where they are of another kind.
LOST = 4.0
COLUMNS = ("skill", "audited", "retrained", "alike", "alike_by_accuracy", "destroyed", "destroyed_by_accuracy")
HEADS = (
    "skill of models", "audited", "retrained", "drawn alike, called broken", "… by accuracy alone",
    "destroyed, called broken", "… by accuracy alone",
)  # fmt: skip


def parts(rng: np.random.Generator, audited: int, retrained: int, skill: str, lost: float = 0.0) -> dict:
    """Method → its accuracies, of models ``audited`` as ``mine`` and ``retrained``; a class is to be forgotten."""
    y, skills = rng.integers(CLASSES, size=SAMPLES), SKILLS[skill](rng, audited + retrained)
    forget = np.isin(np.arange(SAMPLES), rng.permutation(120)[:60])
    heldout = (np.arange(SAMPLES) < 120) & ~forget
    easy = 1.0 - 0.5 * forget + 2.0 * (~forget & ~heldout)
    skills[:audited] -= lost
    logits = rng.standard_normal((len(skills), SAMPLES, CLASSES))
    logits[:, np.arange(SAMPLES), y] += easy + skills[:, None]
    populations = {"mine": logits[:audited], "retrain": logits[audited:]}
    return {
        method: accuracy.effects(evaluation(part.astype(np.float32), y, forget, heldout, "given"))
        for method, part in populations.items()
    }


def broken(of: dict) -> tuple[bool, bool]:
    """Whether the verdict on ``mine`` is *broken*, and whether it would be by accuracy alone."""
    rng, reads = np.random.default_rng(0), []
    for metric in of["mine"]:
        side = distances.contrast_or_reason("mine", metric, of)
        reads.append(distances.read(side, metric, margins=MARGINS, rng=rng, draws=10))
    by_accuracy = [replace(read, outlying=True) for read in reads]
    verdicts, alone = ([r.distance.lower_limit > r.breaking_loss for r in some] for some in (reads, by_accuracy))
    return any(verdicts), any(alone)


def shares(skill: str, audited: int, retrained: int, *, audits: int, lost: float = 0.0) -> list[float]:
    """The shares of audits that say so, and that would."""
    rng = np.random.default_rng([audited, retrained, list(SKILLS).index(skill), int(lost)])
    calls = [broken(parts(rng, audited, retrained, skill, lost)) for _ in range(audits)]
    return np.mean(calls, axis=0).round(4).tolist()


def main() -> None:
    options = command_line(__doc__, audits=1000, to=ROOT / "resources" / "measured" / "verdicts")
    lines = []
    for skill, size in product(SKILLS, ((1, 3), (1, 10), (3, 3))):
        alike = shares(skill, *size, audits=options.audits)
        destroyed = shares(skill, *size, audits=options.audits // 5, lost=LOST)
        lines.append([skill, *size, *alike, *destroyed])
        print(lines[-1], flush=True)
    pd.DataFrame(lines, columns=COLUMNS).to_csv(options.to / "broken.csv", index=False)
    markdown(options.to / "broken.md", HEADS, lines)


if __name__ == "__main__":
    main()
