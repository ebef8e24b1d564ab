"""What benchmarks share: options, ways that take turns, so that a busy machine slows all alike, and readers' tables."""

import argparse
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np


def command_line(description: str | None, **defaults: object) -> argparse.Namespace:
    """Return the options of a program by their ``defaults``, of whose types they are; of a list, one or more."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in defaults.items():
        several = isinstance(value, list)
        kind = type(value[0] if several else value)
        parser.add_argument(f"--{name}", type=kind, nargs="+" if several else None, default=value)
    return parser.parse_args()


def clocked(way: Callable[..., object], *arguments: object, clock: Callable[[], float] = time.process_time) -> float:
    """Return the seconds of the processor, or by another ``clock``, that a call takes."""
    start = clock()
    way(*arguments)
    return clock() - start


def by_turns(ways: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, np.ndarray]:
    """Return the seconds of each way, float64 [repeats], after a first call that imports and fills caches.

    ``ways``: name → function that returns its seconds. Every other turn goes backwards.
    """
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(repeats + 1):
        for name in list(ways)[:: 1 if repeat % 2 else -1]:
            spent[name].append(ways[name]())
    return {name: np.array(seconds[1:]) for name, seconds in spent.items()}


def told(spent: Mapping[str, np.ndarray]) -> str:
    """Return the median milliseconds of each way, and the ratio of the first to each other way as the median over
    turns with the smallest and largest value (above 1: the other is faster)."""
    first, *others = spent
    parts = [f"{name} {1e3 * np.median(seconds):8.2f} ms" for name, seconds in spent.items()]
    for name in others:
        ratio = spent[first] / spent[name]
        parts.append(f"{first}/{name} {np.median(ratio):.2f} [{ratio.min():.2f}, {ratio.max():.2f}]")
    return "  ".join(parts)


def markdown(path: Path, heads: Iterable[str], lines: Iterable[Iterable[object]], note: str = "") -> None:
    """Write a table for readers, and a ``note`` below it."""
    heads = list(heads)
    rows = [heads, ["---"] * len(heads), *lines]
    path.write_text("".join(f"| {' | '.join(map(str, row))} |\n" for row in rows) + note, encoding="utf-8")
