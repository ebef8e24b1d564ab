"""Whether `none` and the retrained get the verdicts that they must get, over many seeds of the default study.

Run: OMP_NUM_THREADS=1 python tests/benchmarks/verdict_seeds.py [--seeds N] [--work FOLDER] [--to FOLDER]

Every scenario of the default study but the language model's, with none, retrain and its control alone. `none` must be
told from retraining, retraining must not be. Seeds that the folder of results has are not run again.
"""

import argparse
import csv
import shutil
import subprocess
import sys
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = ("text", "halves")  # halves only choose the samples of memorised
BASELINES = ("none", "retrain", "retrain_control")
COLUMNS = ("seed", "scenario", "setting", "method", "verdict", "told_by", "distance", "ci_low", "ci_high", "p_holm",
           "wrong")  # fmt: skip
NOTE = """
Seeds {first} to {last} of the default study ({seeds} of them), every scenario but the language model's, with none,
retrain and its control alone. *told*: how often the p-value of a method, adjusted over methods and metrics of the
scenario, is at most .05: for `none` it has to be so in every study, for each of the retrained in at most one of
twenty, with its share of false alarms in the scenario. *as retrained*: how often equivalence within the margin was
shown, which takes more samples and models than most of these small scenarios have.
"""


def reduced(seed: int) -> dict:
    """The default study with the references alone, and no more metrics than the systems themselves."""
    study = yaml.safe_load((ROOT / "config.yaml").read_text())
    for name in ("tables", "figures"):
        del study[name]
    study |= {"study": "verdict_seeds", "seed": seed}
    study["defaults"]["methods"] = {"none": {}, "retrain": {}}
    for name in WITHOUT[:1]:
        del study["scenarios"][name]
    for name, one in study["scenarios"].items():
        one.pop("methods", None)
        one.pop("controls", None)
        if name == "halves":
            one["methods"] = ["none"]
        elif name == "efficacy":
            one["methods"] = {"none": {}, "retrain": {"same_start": True}}
            one.pop("attacks")
            for axis in one["vary"].values():
                for value in axis.values():
                    value.pop("attacks", None)
            one["attacks"] = []
        else:
            one.pop("metrics", None)
    return study


def run(seed: int, work: Path) -> list[dict]:
    """The lines on the references of every scenario of one seed."""
    folder = work / str(seed)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(reduced(seed), sort_keys=False))
    table = folder / "results/verdict_seeds/tables/verdicts.csv"
    with (folder / "log.txt").open("w") as log:
        subprocess.run(
            [sys.executable, "-m", "snakemake", "-s", ROOT / "Snakefile", "--directory", folder, "--cores", "1",
             table.relative_to(folder), "--configfile", file],
            check=True, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    with table.open(newline="", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["scenario"] != "halves"]
    shutil.rmtree(folder)
    for row in rows:
        row |= {"seed": str(seed), "wrong": str(int(told(row) != (row["method"] == "none")))}
    return [{name: row[name] for name in COLUMNS} for row in rows]


def told(row: dict) -> bool:
    """Whether a line says told, on whichever side, within the margin or not."""
    return bool(row["p_holm"]) and float(row["p_holm"]) <= 0.05


def written(rows: list[dict], to: Path) -> None:
    """Keep all lines as seeds.csv, and how often each verdict was given as seeds.md."""
    to.mkdir(parents=True, exist_ok=True)
    with (to / "seeds.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    seeds = sorted({int(row["seed"]) for row in rows})
    places = list(dict.fromkeys((row["scenario"], row["setting"]) for row in rows))
    heads = [f"{name.replace('_', ' ')}: {what}" for name in BASELINES for what in ("told", "as retrained")]
    lines = [["scenario", "setting", *heads[:1], *heads[2:]]]
    lines.append(["---"] * len(lines[0]))
    for place in places:
        cells = []
        for name in BASELINES:
            own = [row for row in rows if (row["scenario"], row["setting"], row["method"]) == (*place, name)]
            cells.append(f"{sum(map(told, own))} of {len(own)}")
            cells.append(f"{sum(row['verdict'] == 'as_retrained' for row in own)} of {len(own)}")
        lines.append([*place, *cells[:1], *cells[2:]])
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    (to / "seeds.md").write_text(text + NOTE.format(first=seeds[0], last=seeds[-1], seeds=len(seeds)))


def main() -> None:
    """Run the seeds that are missing, one after the other, and keep the tables after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--work", type=Path, default=Path("results/verdict_seeds"))
    parser.add_argument("--to", type=Path, default=Path("resources/measured/verdicts"))
    asked, rows = parser.parse_args(), []
    if (asked.to / "seeds.csv").exists():
        with (asked.to / "seeds.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
    for seed in range(asked.seeds):
        if str(seed) in {row["seed"] for row in rows}:
            continue
        start = time.perf_counter()
        rows += run(seed, asked.work.resolve())
        written(rows, asked.to)
        wrong = [row for row in rows if row["seed"] == str(seed) and row["wrong"] == "1"]
        print(f"seed {seed}: {time.perf_counter() - start:.0f} s, {len(wrong)} wrong", *wrong, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
