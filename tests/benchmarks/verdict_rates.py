"""How often verdicts, shares, ranks, intervals and predictions are wrong, by simulated audits whose truth is known.

Run: PYTHONPATH=tests/helpers python tests/benchmarks/verdict_rates.py [--audits N] [--to FOLDER]
"""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from unlearning_audit.stats import Estimate, decide, rank_sets, ratio, resolution
from unlearning_audit.stats.paired import Distances

from audit_worlds import World
from common import command_line, markdown

#: True distances in standard errors of one method: four that are retraining, two at the margin (near and far), one half
#: way between, and none.
TRUTH = np.array([0.0, 0.0, 0.0, 0.0, 4.0, -4.0, 20.0, 40.0])
RETRAINED, AT_MARGIN, METHOD, NONE = slice(0, 4), (4, 5), 6, 7

#: Differences whose intervals are counted beside those of the last four distances: to retraining, to none, to another.
PAIRED = np.zeros((3, 8))
PAIRED[[0, 1, 2], [4, 6, 4]] = 1.0
PAIRED[[0, 1, 2], [0, 7, 5]] = -1.0

SHAPES = {
    "default study": World(truth=(), samples=640, asked=160),
    "pairs and models vary": World(truth=(), samples=640, asked=160, pair=0.03, model=0.05),
    "pairs vary most": World(truth=(), pair=0.3),
    "few models, many samples": World(truth=(), models=1, samples=1600, asked=400, model=0.02),
    "many models, few samples": World(truth=(), pairs=8, models=8, samples=40, asked=15, model=0.1),
    "two pairs": World(truth=(), pairs=2, model=0.05, pair=0.02),
    "skewed samples": World(truth=(), sample=1.0, noise=0.2, samples=320, asked=80, skewed=True),
    "correlated methods": World(truth=(), samples=320, asked=80, common=0.95, model=0.1, pair=0.05),
    "uncorrelated methods": World(truth=(), samples=320, asked=80, common=0.0, model=0.1, pair=0.05),
}

PROMISES = {
    "false_distinguishable": "≤ .05",
    "false_equivalent": "≤ .05",
    "rank_sets": "≥ .95",
    "share_closed": "≥ .93",
    "intervals": "≥ .94",
    "half_width_ratio": ".8–1.2",
}
COLUMNS = ["shape", "pairs", "models", "samples", "audits", *PROMISES]
COLUMNS += ["pilots_within_20pct", "distinguishable", "width"]
NOTE = """
Rates of simulated audits of eight methods: four are retraining, two lie exactly at the margin (4 standard errors, on
either side), one at 20 and doing nothing at 40 standard errors. `pairs`, `models` (per split) and `samples` of one
audit; a rate of .05 over {audits} audits has a standard error of {error:.4f}, so a test of exactly level .05 shows
more than .05 in half of the shapes.

* false_distinguishable: any of the four is distinguishable from retraining (Holm over all eight, none with half of α).
* false_equivalent: a method at the margin is called equivalent, mean of both sides.
* rank_sets: all eight true ranks lie in their sets. share_closed: ρ's interval covers.
* intervals: coverage of distances and of paired differences, the worst of seven.
* half_width_ratio: median half-width that a pilot foretells for four times its pairs over the median that these give;
  pilots_within_20pct: share of single pilots that are within 20 % of it.
* distinguishable: the method at 20 standard errors is found. width: its half-width over 1.96 true standard errors.
"""


def audit(world: World, rng: np.random.Generator, margin: float) -> dict[str, np.ndarray | float]:
    """One simulated audit: what was called wrongly, what was covered, and the half-width foretold for 4 × the pairs."""
    read, truth = world.read(rng), np.array(world.truth)
    p = decide.adjusted_p(p=read.p_values(), nothing=np.arange(8) == NONE, retrained=np.zeros(8, dtype=bool))
    half, inner = read.half_widths(), read.half_widths(level=1 - 2 * decide.ALPHA)
    verdicts = [
        decide.classify(
            deciding=[decide.Distance("", Estimate(v, v - h, v + h, 1), (v - i, v + i), (-margin, margin), q)],
            p_holm=[q],
            utility=[],
        ).verdict
        for v, h, i, q in zip(read.value, half, inner, p, strict=True)
    ]
    best, worst = rank_sets.rank_ranges(rank_sets.proven(distances=read, rng=rng, draws=500))
    rank = 1 + (truth[None] > truth[:, None]).sum(axis=1)
    both = read.combined(np.eye(len(truth))[[METHOD, NONE]])
    share = ratio.share_closed(distances=both, significant=bool(read.value[NONE] > half[NONE]))
    gaps = read.combined(PAIRED)
    error = np.abs(np.concatenate([read.value - truth, gaps.value - PAIRED @ truth]))
    covered = error <= np.concatenate([half, gaps.half_widths()])
    foretold = resolution.components(distances=only(read, METHOD))[0]
    design = resolution.planned(foretold.design, dimension=resolution.PAIRS, times=4)
    return {
        "false_distinguishable": float((p[RETRAINED] <= decide.ALPHA).any()),
        "false_equivalent": np.array([verdicts[k] == decide.EQUIVALENT for k in AT_MARGIN], dtype=float),
        "rank_sets": float(((best <= rank) & (rank <= worst)).all()),
        "share_closed": np.nan
        if np.isnan(share.value)
        else float(share.low <= 1 - truth[METHOD] / truth[NONE] <= share.high),
        "intervals": covered[4:].astype(float),
        "half_width_ratio": resolution.half_width(components=foretold, design=design),
        "distinguishable": float(p[METHOD] <= decide.ALPHA),
        "width": half[METHOD] / (1.959964 * world.error),
    }


def only(read: Distances, index: int) -> Distances:
    """The reading of one number."""
    return read.combined(np.eye(len(read.value))[[index]])


def rates(name: str, audits: int, rng: np.random.Generator) -> dict[str, str | int | float]:
    """One row of the table: the worst rate over methods where there are several, medians of the half-widths."""
    world = SHAPES[name]
    unit = world.error
    world = replace(world, truth=tuple(TRUTH * unit))
    results = [audit(world, rng, 4 * unit) for _ in range(audits)]
    large = replace(world, pairs=4 * world.pairs)
    measured = [only(large.read(rng), METHOD).half_widths()[0] for _ in range(max(audits // 4, 100))]
    foretold = np.array([result["half_width_ratio"] for result in results]) / np.median(measured)
    mean = {key: np.nanmean([result[key] for result in results], axis=0) for key in results[0]}
    return {
        "shape": name, "pairs": world.pairs, "models": world.models, "samples": world.samples, "audits": audits,
        "false_distinguishable": mean["false_distinguishable"], "false_equivalent": mean["false_equivalent"].mean(),
        "rank_sets": mean["rank_sets"], "share_closed": mean["share_closed"], "intervals": mean["intervals"].min(),
        "half_width_ratio": np.median(foretold), "pilots_within_20pct": np.mean(np.abs(foretold - 1) < 0.2),
        "distinguishable": mean["distinguishable"], "width": mean["width"],
    }  # fmt: skip


def write_tables(to: Path, rows: list[dict], audits: int) -> None:
    """Keep the rows as rates.csv, and as rates.md with what was promised and what the columns mean."""
    to.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=COLUMNS).to_csv(to / "rates.csv", index=False)
    lines = [[row[key] for key in COLUMNS] for row in rows]
    lines.append(["promised", *[""] * 4, *PROMISES.values(), "", "", ""])
    markdown(to / "rates.md", COLUMNS, lines, NOTE.format(audits=audits, error=(0.0475 / audits) ** 0.5))


def main() -> None:
    """Print the table and keep it in a folder; shapes that the folder has with as many audits are not run again."""
    options = command_line(__doc__, audits=2000, to=Path("resources/measured/verdicts"))
    stored, rows, start = {}, [], time.perf_counter()
    if (options.to / "rates.csv").exists():
        table = pd.read_csv(options.to / "rates.csv", dtype=str, keep_default_na=False).to_dict("records")
        stored = {row["shape"]: row for row in table if row["audits"] == str(options.audits)}
    for seed, name in enumerate(SHAPES):
        if name not in stored:
            entry = rates(name, options.audits, np.random.default_rng([0, seed]))
            stored[name] = {key: f"{x:.4f}" if isinstance(x, float) else x for key, x in entry.items()}
        rows.append(stored[name])
        print(f"{time.perf_counter() - start:5.0f} s", *rows[-1].values(), sep="  ", flush=True)
        write_tables(options.to, rows, options.audits)


if __name__ == "__main__":
    main()
