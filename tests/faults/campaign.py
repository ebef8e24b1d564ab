"""Does to a study what may happen to it, and counts what went unnoticed or was told badly.

    python tests/faults/campaign.py flips --results results --tries 10000
    python tests/faults/campaign.py studies --study config.yaml --tries 5000
    python tests/faults/campaign.py kills --work /tmp/kills --tries 100
    python tests/faults/campaign.py cluster --work /tmp/cluster --tries 24
    python tests/faults/campaign.py surroundings --work /tmp/surroundings --tries 19
    python tests/faults/campaign.py publish kills.jsonl studies.jsonl --to faults

Every try depends on --seed and its own number alone. They are written down in --record as they are made, and those that
stand there are not made again, so that a campaign may be interrupted.
"""

import argparse
import atexit
import csv
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import numpy as np

import cluster_ends
import flips
import kills
import studies
import surroundings
from workplace import TINY


def flipped(options: argparse.Namespace) -> Callable[[np.random.Generator, int], tuple[str, str]]:
    """A try of a random bit: kinds of artifacts take turns."""
    kinds = flips.artifacts(Path(options.results))
    if not kinds:
        sys.exit(f"{options.results}: there are no artifacts; run a study first, or name its folder with --results")
    names = list(kinds)

    def attempt(rng: np.random.Generator, number: int) -> tuple[str, str]:
        kind = names[number % len(names)]
        return kind, flips.attempt(kind, kinds[kind], rng)

    return attempt


def damaged(options: argparse.Namespace) -> Callable[[np.random.Generator, int], tuple[str, str]]:
    """A try of a study with faults: it is read and planned; the ways to give it take turns."""
    text, ways = Path(options.study).read_text(encoding="utf-8"), list(studies.WAYS)
    return lambda rng, number: studies.attempt(text, rng, ways[number % len(ways)])


def _whole(options: argparse.Namespace) -> tuple[surroundings.Workplace, dict[str, bytes]]:
    """Where the tiny study is run, and what an undisturbed run makes of it."""
    root = Path(options.work).resolve()
    undisturbed = surroundings.prepared(root / "undisturbed", TINY)
    undisturbed.run()
    return surroundings.prepared(root / options.campaign, TINY), undisturbed.contents()


def ended(options: argparse.Namespace) -> Callable[[np.random.Generator, int], tuple[str, str]]:
    """A try of a run that is ended from outside."""
    place, whole = _whole(options)
    return lambda rng, number: kills.attempt(place, whole, rng, number)


def submitted(options: argparse.Namespace) -> Callable[[np.random.Generator, int], tuple[str, str]]:
    """A try of a run on a SLURM of its own that is disturbed."""
    place, whole = _whole(options)
    cluster = cluster_ends.Cluster()
    atexit.register(cluster.stop)
    cluster.start()
    return lambda rng, number: cluster_ends.attempt(place, cluster, whole, rng, number)


def troubled(options: argparse.Namespace) -> Callable[[np.random.Generator, int], tuple[str, str]]:
    """A try of a run where something is amiss; all kinds take turns."""
    place, whole = _whole(options)
    return lambda rng, number: surroundings.attempt(place, whole, number)


CAMPAIGNS = {"flips": flipped, "studies": damaged, "kills": ended, "cluster": submitted, "surroundings": troubled}


def run(options: argparse.Namespace) -> list[dict]:
    """What every try was and came to: what, number and wrong, which is "" where all went well."""
    record = Path(options.record or f"{options.campaign}.jsonl")
    entries = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    numbers, attempt = {entry["number"] for entry in entries}, CAMPAIGNS[options.campaign](options)
    with record.open("a") as file:
        for number in range(options.tries):
            if number in numbers:
                continue
            trial, wrong = attempt(np.random.default_rng([options.seed, number]), number)
            entries.append({"number": number, "what": trial, "wrong": wrong})
            file.write(json.dumps(entries[-1]) + "\n")
            file.flush()
    return entries


def table(entries: list[dict]) -> str:
    """Tried and failed, by what was tried, and the first failures in full."""
    tried = Counter(entry["what"] for entry in entries)
    failed = Counter(entry["what"] for entry in entries if entry["wrong"])
    lines = [f"{trial:40} {tried[trial]:7} {failed[trial]:7}" for trial in sorted(tried)]
    total = f"{'all':40} {len(entries):7} {sum(failed.values()):7}"
    return "\n".join(
        [f"{'what':40} {'tried':>7} {'failed':>7}", *lines, total, *[o["wrong"] for o in entries if o["wrong"]][:20]]
    )


def publish(records: list[str], to: Path) -> None:
    """The tables of several records, each called as its campaign, as csv and Markdown."""
    rows = []
    for record in map(Path, records):
        entries = [json.loads(line) for line in record.read_text().splitlines()]
        tried, failed = (
            Counter(entry["what"] for entry in entries),
            Counter(entry["what"] for entry in entries if entry["wrong"]),
        )
        rows += [(record.stem, trial, tried[trial], failed[trial]) for trial in sorted(tried)]
        rows += [(record.stem, "all", len(entries), sum(failed.values()))]
    with to.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("campaign", "what", "tried", "failed"), *rows])
    lines = ["| campaign | what | tried | failed |", "|---|---|--:|--:|"]
    lines += ["| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in row) + " |" for row in rows]
    to.with_suffix(".md").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", choices=[*CAMPAIGNS, "publish"])
    parser.add_argument("records", nargs="*", help="to publish: files of records")
    parser.add_argument("--to", default="faults", help="to publish: where the tables go, without ending")
    parser.add_argument("--results", default="results", help="the results of a finished study")
    parser.add_argument("--study", default="config.yaml", help="the study that is damaged")
    parser.add_argument("--work", default="campaign", help="where the runs work that are killed or hindered")
    parser.add_argument("--tries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", help="what was tried so far (default: the campaign's name with .jsonl)")
    options = parser.parse_args()
    if options.campaign == "publish":
        publish(options.records, Path(options.to))
        return
    entries = run(options)
    print(table(entries))
    sys.exit(any(entry["wrong"] for entry in entries))


if __name__ == "__main__":
    main()
