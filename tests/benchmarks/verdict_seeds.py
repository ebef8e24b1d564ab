"""Whether `none` and the retrained get the verdicts that they must get, over many seeds of the tour.

Run: OMP_NUM_THREADS=1 python tests/benchmarks/verdict_seeds.py [--seeds N] [--truth] [--keep] [--work FOLDER] [--to
FOLDER]

Every scenario of the tour but the language model's, with none, retrain and its control alone. Retraining must
not be distinguishable. `none` must be, unless truth.csv knows from many more models that it lies closer to retraining
than what this study finds with power .8; `--truth` makes that file first. Seeds that the folder of results has are not
run again; `--keep` leaves the folders of work, from which a seed is made again in less time.
"""

import argparse
import csv
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = ("text", "halves")  # halves only choose the samples of memorised
BASELINES = ("none", "retrain", "retrain_control")
COLUMNS = ("seed", "scenario", "setting", "method", "verdict", "found_by", "distance", "ci_low", "ci_high", "p_holm",
           "least", "wrong")  # fmt: skip
#: Where a few models may not tell none: (axis, value), and what of the protocol is larger to know how far it is.
MORE = {
    "budget": ("epsilon", 0.5, {"pairs": 16}),
    "confusion": ("epsilon", 0.5, {"models": 12}),
    "efficacy": ("fraction", 0.01, {"models_per_block": 80}),
}
TRUTH = ("scenario", "setting", "models", "distance", "ci_low", "ci_high", "margin")
NOTE = """
Seeds {first} to {last} of the tour ({seeds} of them), every scenario but the language model's, with none,
retrain and its control alone. *distinguishable*: how often the p-value of a method, adjusted over methods and metrics
of the scenario, is at most .05: for `none` it has to be so in every study, for the two of retraining together by chance
in at most one scenario of two hundred. *equivalent*: how often equivalence within the margin was shown, which takes
more samples and models than most of these small scenarios have. *least*: the least distance that the study tells with
power .8, its median over seeds, and *true distance*, from many more models of seed 0, where it may be below: then none
need not be found.
"""


def reduced(seed: int) -> dict:
    """The tour with the references alone, and no more metrics than the systems themselves."""
    study = yaml.safe_load((ROOT / "studies/tour.yaml").read_text())
    for name in ("tables", "figures"):
        del study[name]
    study |= {"study": "verdict_seeds", "seed": seed}
    study["defaults"]["methods"] = {"none": {}, "retrain": {}}
    for name in WITHOUT[:1]:
        del study["scenarios"][name]
    for name, scenario in study["scenarios"].items():
        scenario.pop("methods", None)
        scenario.pop("controls", None)
        if name == "halves":
            scenario["methods"] = ["none"]
        elif name == "efficacy":
            scenario["methods"] = {"none": {}, "retrain": {"same_start": True}}
            scenario.pop("attacks")
            for axis in scenario["vary"].values():
                for value in axis.values():
                    value.pop("attacks", None)
            scenario["attacks"] = []
        else:
            scenario.pop("metrics", None)
    return study


def run_study(study: dict, folder: Path) -> Path:
    """The verdicts.csv of a study that is run in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(study, sort_keys=False))
    table = folder / "results/verdict_seeds/tables/verdicts.csv"
    with (folder / "log.txt").open("w") as log:
        subprocess.run(
            [sys.executable, "-m", "snakemake", "-s", ROOT / "Snakefile", "--directory", folder, "--cores", "1",
             table.relative_to(folder), "--configfile", file],
            check=True, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    return table


def run(seed: int, work: Path, truth: dict[tuple[str, str], dict], *, keep: bool) -> list[dict]:
    """The lines on the references of every scenario of one seed."""
    folder = work / str(seed)
    table = run_study(reduced(seed), folder)
    with table.open(newline="", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["scenario"] != "halves"]
    least = least_found(table.with_name("resolution.csv"))
    if not keep:
        shutil.rmtree(folder)
    for row in rows:
        place = row["scenario"], row["setting"]
        row |= {"seed": str(seed), "least": least.get((*place, row["method"]), "")}
        row["wrong"] = str(int(wrong(row, truth.get(place))))
    return [{name: row[name] for name in COLUMNS} for row in rows]


def least_found(table: Path) -> dict[tuple[str, str, str], str]:
    """(scenario, setting, method) → the least distance by a metric that decides, as the study's own plans have it."""
    distances = {}
    with table.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            key = row["scenario"], row["setting"], row["method"]
            if row["what"] == "today" and not row["metric"].startswith(("accuracy", "nll")):
                distances[key] = min(distances.get(key, row["least_distance"]), row["least_distance"], key=float)
    return distances


def wrong(row: dict, truth: dict | None) -> bool:
    """Retraining that is distinguishable, or none that is not though it lies further away than what is found."""
    if row["method"] != "none":
        return distinguishable(row)
    hidden = truth is not None and abs(float(truth["distance"])) < float(row["least"])
    return not distinguishable(row) and not hidden


def true_distances(work: Path, to: Path) -> None:
    """Write truth.csv: the distance of none in larger studies of seed 0."""
    rows = []
    for scenario, (axis, value, more) in MORE.items():
        study = reduced(0)
        part = study["scenarios"][scenario]
        part["protocol"] = (
            {**study["defaults"]["protocol"], **more} if "protocol" not in part else part["protocol"] | more
        )
        part["vary"] = {axis: {value: part["vary"][axis][value]}}
        study["scenarios"] = {scenario: part}
        with run_study(study, work / f"truth_{scenario}").open(newline="", encoding="utf-8") as lines:
            (verdict,) = [row for row in csv.DictReader(lines) if row["method"] == "none"]
        rows.append({name: verdict.get(name, "") for name in TRUTH} | {"models": " ".join(map(str, *more.items()))})
        with (to / "truth.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, TRUTH, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)


def read_truth(to: Path) -> dict[tuple[str, str], dict]:
    """truth.csv by (scenario, setting)."""
    if not (to / "truth.csv").exists():
        return {}
    with (to / "truth.csv").open(newline="") as file:
        return {(row["scenario"], row["setting"]): row for row in csv.DictReader(file)}


def distinguishable(row: dict) -> bool:
    """Whether a line says distinguishable, on whichever side, within the margin or not."""
    return bool(row["p_holm"]) and float(row["p_holm"]) <= 0.05


def write_tables(rows: list[dict], to: Path) -> None:
    """Keep all lines as seeds.csv, and how often each verdict was given as seeds.md."""
    to.mkdir(parents=True, exist_ok=True)
    with (to / "seeds.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    seeds = sorted({int(row["seed"]) for row in rows})
    places = list(dict.fromkeys((row["scenario"], row["setting"]) for row in rows))
    heads = [f"{name.replace('_', ' ')}: {word}" for name in BASELINES for word in ("distinguishable", "equivalent")]
    lines, truth = [["scenario", "setting", *heads[:1], *heads[2:], "least", "true distance"]], read_truth(to)
    lines.append(["---"] * len(lines[0]))
    for place in places:
        cells = []
        for name in BASELINES:
            method_rows = [row for row in rows if (row["scenario"], row["setting"], row["method"]) == (*place, name)]
            cells.append(f"{sum(map(distinguishable, method_rows))} of {len(method_rows)}")
            cells.append(f"{sum(row['verdict'] == 'equivalent' for row in method_rows)} of {len(method_rows)}")
        least = [float(row["least"]) for row in rows if (row["scenario"], row["setting"], row["method"]) ==
                 (*place, "none") and row["least"]]  # fmt: skip
        far = truth.get(place)
        cells.append(f"{statistics.median(least):.3f}" if least else "")
        cells.append("{:.3f} [{:.3f}, {:.3f}]".format(*(float(far[x]) for x in TRUTH[3:6])) if far else "")
        lines.append([*place, *cells[:1], *cells[2:]])
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    (to / "seeds.md").write_text(text + NOTE.format(first=seeds[0], last=seeds[-1], seeds=len(seeds)))


def main() -> None:
    """Run the seeds that are missing, one after the other, and keep the tables after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--work", type=Path, default=Path("results/verdict_seeds"))
    parser.add_argument("--to", type=Path, default=Path("resources/measured/verdicts"))
    parser.add_argument("--truth", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options, rows = parser.parse_args(), []
    if options.truth:
        options.to.mkdir(parents=True, exist_ok=True)
        true_distances(options.work.resolve(), options.to)
    if (options.to / "seeds.csv").exists():
        with (options.to / "seeds.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
    for seed in range(options.seeds):
        if str(seed) in {row["seed"] for row in rows}:
            continue
        start = time.perf_counter()
        rows += run(seed, options.work.resolve(), read_truth(options.to), keep=options.keep)
        write_tables(rows, options.to)
        faults = [row for row in rows if row["seed"] == str(seed) and row["wrong"] == "1"]
        print(f"seed {seed}: {time.perf_counter() - start:.0f} s, {len(faults)} wrong", *faults, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
