"""How often a model is called distinguishable that is drawn as the retrained ones are: a class is the forget set.

Run: OMP_NUM_THREADS=1 nice -n 19 python tests/benchmarks/verdict_audits.py [--audits N] [--through audit] [--to FOLDER]

One audited model stands against three retrained ones; a model that keeps its forget set is there as doing nothing.
`--through audit` calls `audit()`, a whole run of the workflow for each; else the jobs of `external` run one after the
other in this process, on the same files. What is done stays done: the next call goes on with the missing seeds.
"""

import argparse
import contextlib
import csv
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "scripts")]

from unlearning_audit import audit  # noqa: E402
from unlearning_audit.artifacts import verdicts as files  # noqa: E402
from unlearning_audit.study import reading  # noqa: E402
from unlearning_audit.workflow import plan  # noqa: E402

import external_cases as jobs  # noqa: E402
from comparisons import comparisons  # noqa: E402

SAMPLES, CLASSES, RETRAINED = 240, 4, 3
COLUMNS = ("through", "seed", "mine", "p", "none", "retrain")


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


def by_audit(seed: int) -> list[dict]:
    """The verdicts of `audit()`."""
    y, parts = world(seed)
    target = parts["target"]
    report = audit(
        target=target["logits"], original=parts["original"]["logits"], retrain=parts["retrain"], labels=y,
        **{name: target[name] for name in ("train", "forget", "heldout")},
        attacks=["confidence"], bootstrap=200, seed=seed, cores=1, progress=False,
    )  # fmt: skip
    return report.verdicts.to_dict("records")


def by_jobs(seed: int) -> list[dict]:
    """The verdicts of the jobs of the protocol external."""
    y, parts = world(seed)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        jobs.save("logits", labels=y)
        for name, arrays in parts.items():
            inputs = {k: v if k == "logits" else np.tile(v, (len(arrays["logits"]), 1)) for k, v in arrays.items()}
            jobs.save(Path("logits", {"target": "mine/target"}.get(name, name)), **inputs)
        study = jobs.config(attacks=["confidence"])
        whole = plan.make(reading.read({**study, "seed": seed, "bootstrap": 200}, "own.yaml"))
        jobs.run(whole)
        (node,) = whole.nodes["comparisons"].values()
        outputs = {name: path for name, path in node.outputs.items() if name != "spec"}
        Path(outputs["verdicts"]).parent.mkdir(parents=True, exist_ok=True)
        comparisons(**node.inputs, **outputs, settings=node.settings)
        return files.read(outputs["verdicts"], files.VERDICTS)


def line(through: str, seed: int) -> dict:
    """One audit: verdicts of the model, with its p-value, of doing nothing and of retraining."""
    rows = {row["method"]: row for row in {"audit": by_audit, "jobs": by_jobs}[through](seed)}
    names = {name: rows[name]["verdict"] for name in ("mine", "none", "retrain")}
    return {"through": through, "seed": seed, **names, "p": float(rows["mine"]["p_holm"])}


def lines_of(path: Path) -> list[dict]:
    """What was done."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=200)
    parser.add_argument("--through", choices=["audit", "jobs"], default="jobs")
    parser.add_argument("--to", type=Path, default=ROOT / "resources" / "measured" / "verdicts")
    options = parser.parse_args()
    path = (options.to / "audits.csv").resolve()
    before = lines_of(path)
    recorded_seeds = {int(row["seed"]) for row in before if row["through"] == options.through}
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not before:
            writer.writeheader()
        for seed in sorted(set(range(options.audits)) - recorded_seeds):
            writer.writerow(line(options.through, seed))
            file.flush()
    table = ["| through | audits | called distinguishable | doing nothing found |", "|---|---|---|---|"]
    rows = lines_of(path)
    for through, name in (("audit", "`audit()`"), ("jobs", "jobs of `external`")):
        part = [row for row in rows if row["through"] == through]
        wrong = sum(row["mine"] in ("distinguishable", "over_unlearned") for row in part)
        detections = sum(row["none"] == "distinguishable" for row in part)
        table += [f"| {name} | {len(part)} | {wrong} | {detections} |"] if part else []
    path.with_suffix(".md").write_text("\n".join(table) + "\n")
    print("\n".join(table))


if __name__ == "__main__":
    main()
