"""How often a model is called distinguishable that is drawn as the retrained ones are: a class is the forget set.

Run: OMP_NUM_THREADS=1 nice -n 19 python tests/benchmarks/verdict_audits.py [--audits N] [--to FOLDER]

One audited model stands against three retrained ones; a model that keeps its forget set is there as doing nothing.
What is done stays done: the next call goes on with the missing seeds.
"""

import argparse
import contextlib
import csv
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from unlearning_audit.evaluation import verdicts as files  # noqa: E402
from unlearning_audit.stages import here  # noqa: E402
from unlearning_audit.study import reading  # noqa: E402
from unlearning_audit.workflow import plan  # noqa: E402

import external_cases as cases  # noqa: E402

SAMPLES, CLASSES, RETRAINED = 240, 4, 3
COLUMNS = ("seed", "mine", "p", "none", "retrain")


def logits(rng, models: int, y: np.ndarray, easy: np.ndarray) -> np.ndarray:
    """float32 [models, samples, classes]: the label leads by how ``easy`` a sample is, the same for all models."""
    values = rng.standard_normal((models, len(y), CLASSES))
    values[:, np.arange(len(y)), y] += easy
    return values.astype(np.float32)


def world(seed: int) -> tuple[np.ndarray, dict[str, dict]]:
    """Labels and, by population, its arrays: the class is harder than the rest for whoever never saw it."""
    rng = np.random.default_rng(seed)
    y = np.arange(SAMPLES) % CLASSES
    forget = y == 0
    heldout = ~forget & (np.arange(SAMPLES) % 3 == 0)
    easy = 1.0 + rng.standard_normal(SAMPLES) - forget + 2.0 * (~forget & ~heldout)
    return y, {
        "target": {"logits": logits(rng, 1, y, easy), "train": ~heldout, "forget": forget, "heldout": heldout},
        "original": {"logits": logits(rng, 1, y, easy + 4.0 * forget)},
        "retrain": {"logits": logits(rng, RETRAINED, y, easy), "train": ~forget & ~heldout, "forget": forget},
    }


def verdicts(seed: int) -> list[dict]:
    """The verdicts on one world."""
    y, parts = world(seed)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        cases.save("logits", labels=y)
        for name, arrays in parts.items():
            inputs = {k: v if k == "logits" else np.tile(v, (len(arrays["logits"]), 1)) for k, v in arrays.items()}
            cases.save(Path("logits", {"target": "mine/target"}.get(name, name)), **inputs)
        study = cases.config(attacks=["confidence"])
        whole = plan.make(reading.read({**study, "seed": seed, "bootstrap": 200}, "own.yaml"))
        here.judge(whole)
        (node,) = whole.nodes["comparisons"].values()
        return files.read(node.outputs["verdicts"], files.VERDICTS)


def line(seed: int) -> dict:
    """One audit: verdicts of the model, with its p-value, of doing nothing and of retraining."""
    rows = {row["method"]: row for row in verdicts(seed)}
    names = {name: rows[name]["verdict"] for name in ("mine", "none", "retrain")}
    return {"seed": seed, **names, "p": float(rows["mine"]["p_holm"])}


def lines_of(path: Path) -> list[dict]:
    """What was done."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=200)
    parser.add_argument("--to", type=Path, default=ROOT / "resources" / "measured" / "verdicts")
    options = parser.parse_args()
    path = (options.to / "audits.csv").resolve()
    before = lines_of(path)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not before:
            writer.writeheader()
        for seed in sorted(set(range(options.audits)) - {int(row["seed"]) for row in before}):
            writer.writerow(line(seed))
            file.flush()
    rows = lines_of(path)
    wrong = sum(row["mine"] in ("distinguishable", "over_unlearned") for row in rows)
    detections = sum(row["none"] == "distinguishable" for row in rows)
    table = ["| audits | called distinguishable | doing nothing found |", "|---|---|---|"]
    table.append(f"| {len(rows)} | {wrong} | {detections} |")
    path.with_suffix(".md").write_text("\n".join(table) + "\n")
    print("\n".join(table))


if __name__ == "__main__":
    main()
