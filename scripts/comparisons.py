"""Compare all methods of one scenario and come to verdicts."""

from job import script
from unlearning.artifacts import contributions as added
from unlearning.artifacts import tables
from unlearning.artifacts import verdicts as files
from unlearning.comparisons import verdicts as judge


@script
def comparisons(
    metrics: list[str],
    contributions: list[str],
    verdicts: str,
    distances: str,
    ranks: str,
    resolution: str,
    settings: dict,
) -> dict:
    """``metrics`` and ``contributions`` are one file for each method of ``settings``, in its order."""
    found = dict(zip(settings["methods"], map(added.read, contributions), strict=True))
    failed = {
        method: row["note"] or "no reason given"
        for method, path in zip(settings["methods"], metrics, strict=True)
        for row in tables.read_rows(path)
        if row["metric"] == "failed" and not row["attack"] and "metric=" not in row["setting"]
    }
    made = judge.compare(
        found, failed, margins=settings["margins"], draws=settings["draws"], seed=settings["seed"]
    )  # fmt: skip
    tables.write_rows(verdicts, made.verdicts, files.VERDICTS)
    tables.write_rows(distances, made.distances, files.DISTANCES)
    tables.write_rows(ranks, made.ranks, files.RANKS)
    tables.write_rows(resolution, made.resolution, files.RESOLUTION)
    return {"verdicts": {row["method"]: row["verdict"] for row in made.verdicts}}
