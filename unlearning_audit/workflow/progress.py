"""Progress of a run and time left, printed from a thread that cannot stop or slow the run."""

import contextlib
import json
import math
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from unlearning_audit.workflow import interruption
from unlearning_audit.workflow.forecast import rates
from unlearning_audit.workflow.forks import ON_CARDS

#: Seconds between two looks: for a line that is written over, on a terminal, elsewhere.
LIVE, TERMINAL, FILE = 0.5, 5.0, 30.0

#: The blocks of models in a label.
BLOCKS = re.compile(r"-[a-z]+\d+(?:to\d+)?(?=-|$)")


@dataclass
class Watch:
    """Counts finished and missing nodes, and estimates the time left.

    ``specs`` are the paths of all nodes' spec files, results/<stage>/<node>/spec.json; a node is done when
    its spec exists. ``now`` gives seconds; ``slots`` is how many jobs run at once, 0 if that is not known; ``names``
    says in the user's words what a node makes.
    """

    specs: list[str]
    now: float
    slots: int = 0
    names: Mapping[str, str] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)
    done_here: float = 0.0

    def __post_init__(self) -> None:
        self.started = self.now
        self.ready: set[str] = set()
        self.latest = ""
        self.look(self.now)
        self.present = len(self.ready)
        self.done_here = 0.0

    def look(self, now: float) -> bool:
        """Look for new files; returns whether anything changed. Files that are being rebuilt count as missing."""
        self.now = now
        present = {path for path in self.specs if os.path.exists(path)}
        new = [path for path in self.specs if path in present and path not in self.ready]
        for path in new:
            self.measured[path] = _seconds(path)
            self.done_here += self.measured[path]
        changed = present != self.ready
        self.ready = present
        self.latest = max(reversed(new), key=_made_at) if new else self.latest  # of equal times the last in the plan
        return changed

    def tells(self) -> bool:
        """Whether what is done says how long the rest takes: data and splits say nothing of how long models take, which
        is seconds in one study and days in another."""
        heavy = {path for path in self.specs if _parts(path)[0] in ON_CARDS}
        return bool(self.ready if heavy <= self.ready else heavy & self.ready)

    def left(self) -> float:
        """Estimated seconds for the rest, at the speed so far; NaN as long as nothing that is done tells it."""
        elapsed = self.now - self.started
        if elapsed <= 0 or self.done_here <= 0 or not self.tells():
            return math.nan
        rest, missing = self._rest(), len(self.specs) - len(self.ready)
        # Of the jobs that run now, half is done on average; long ones would make this run look slow.
        running = min(self.slots, missing) / 2 * rest / max(missing, 1)
        running = min(running, max(self.slots * elapsed - self.done_here, 0.0))
        return (rest - running) * elapsed / (self.done_here + running)

    def line(self) -> str:
        """ "[37 of 160] unlearn salun in noisy · about 2 min left"."""
        return f"[{len(self.ready)} of {len(self.specs)}] {self.name(self.latest)}".rstrip() + self._time()

    def live(self, running: Iterable[str], width: int) -> str:
        """A line that is written over: bar, jobs, time left, what runs now; no wider than ``width``."""
        names = [self.name(path) for path in running if path in self.names]
        now = f" · {', '.join(dict.fromkeys(names))}" if names else ""
        line = f"{self.bar()} {len(self.ready)} of {len(self.specs)} jobs{self._time()}{now}"
        return line if len(line) < width else f"{line[: max(width - 2, 0)]}…"

    def name(self, path: str) -> str:
        """What a node makes: stage, and names from the study where they are known."""
        if not path:
            return ""
        stage, label = _parts(path)
        return f"{stage} {self.names.get(path, label)}"

    def _time(self) -> str:
        left = self.left()
        return f" · {spoken(left)} left" if len(self.ready) < len(self.specs) and not math.isnan(left) else ""

    def bar(self, width: int = 20) -> str:
        """ "█████···············": how much of all work is done, by the time it takes rather than by counting parts."""
        finished = sum(self.measured.get(path, 0.0) for path in self.ready)
        left = self._rest() if self.tells() else math.nan
        share = finished / (finished + left) if finished + left > 0 else len(self.ready) / max(len(self.specs), 1)
        full = min(int(width * share), width)
        return "█" * full + "·" * (width - full)

    def _rest(self) -> float:
        """Seconds of all missing jobs."""
        return sum(seconds for path, seconds in self.costs().items() if path not in self.ready)

    def costs(self) -> dict[str, float]:
        """Seconds of every job: what it took, else as jobs of its name, of its name but for the blocks, or of its
        stage, else what the stage takes in the default study, of jobs with models in proportion to those measured."""
        alike: dict[tuple[str, ...], list[float]] = {}
        for path, seconds in self.measured.items():
            stage, label = _parts(path)
            for group in _groups(stage, label):
                total = alike.setdefault(group, [0.0, 0.0])
                total[0] += seconds
                total[1] += 1.0 if group else rates.SECONDS[_work(stage, label)]
        forecast = {path: self.measured[path] for path in self.specs if path in self.ready}
        for path in self.specs:
            if path not in self.ready:
                stage, label = _parts(path)
                group = next((g for g in _groups(stage, label) if g in alike), None)
                seconds, count = (1.0, 1.0) if group is None else alike[group]
                forecast[path] = seconds / count * (1.0 if group else rates.SECONDS[_work(stage, label)])
        return forecast


def watch(
    specs: list[str], slots: int = 0, *, names: Mapping[str, str] | None = None,
    running: Callable[[], Iterable[str]] | None = None, stream: TextIO | None = None, interval: float | None = None,
) -> threading.Thread:  # fmt: skip
    """Print what was finished, from a thread that ends with the process: a line each time, or, where ``running`` gives
    the specs of the jobs that run now and the stream is a terminal, one line that is written over."""
    stream = sys.stderr if stream is None else stream
    live = running if _is_terminal(stream) else None
    pause = interval or (LIVE if live else TERMINAL if _is_terminal(stream) else FILE)
    state = list(specs), slots, dict(names or {})
    thread = threading.Thread(target=_follow, args=(state, stream, pause, live), name="progress", daemon=True)
    thread.start()
    return thread


def spoken(seconds: float) -> str:
    """ "less than 10 s", "about 40 s", "about 3 min", "about 2 h"."""
    if seconds < 10:
        return "less than 10 s"
    if seconds < 90:
        return f"about {round(seconds, -1):.0f} s"
    if seconds < 90 * 60:
        return f"about {seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"about {hours:.1f} h" if hours < 10 else f"about {hours:.0f} h"


def _follow(state_of_run: tuple, stream: TextIO, pause: float, running: Callable[[], Iterable[str]] | None) -> None:
    """Look, print, sleep (longer after a slow look); any exception ends the thread silently."""
    with contextlib.suppress(Exception):
        specs, slots, names = state_of_run
        state = Watch(specs, time.monotonic(), slots, names)
        missing = len(specs) - state.present
        if missing:
            ready = f", {state.present} are there already" if state.present else ""
            print(f"{missing} of {len(specs)} parts are to be made{ready}.", file=stream, flush=True)
        while True:
            time.sleep(pause)
            if interruption.noticed():
                return
            before = time.monotonic()
            changed = state.look(before)
            if running:
                end = "" if len(state.ready) < len(specs) else "\n"
                line = state.live(running(), shutil.get_terminal_size().columns)
                print(f"\r\x1b[K{line}", end=end, file=stream, flush=True)
                if end:
                    return
            elif changed and state.latest:
                bar = f"{state.bar()} " if _is_terminal(stream) else ""
                print(f"{bar}{state.line()}", file=stream, flush=True)
            pause = max(pause, 50 * (time.monotonic() - before))


def _parts(path: str) -> tuple[str, str]:
    """(stage, label without key) of a spec's path."""
    stage, node = os.path.normpath(path).split(os.sep)[-3:-1]
    return stage, node.rsplit("-", 1)[0]


def _work(stage: str, label: str) -> str:
    """The stage whose jobs take as long: retraining is training, and says nothing of other methods."""
    return "train" if stage == "unlearn" and label.endswith("-retrain") else stage


def _groups(stage: str, label: str) -> tuple[tuple[str, ...], ...]:
    """Which jobs take about as long, the most alike first: of "…-shadows4to7-npo" those of other shadow models next;
    last, for jobs with models, all that hold such."""
    blocks = BLOCKS.findall(label)
    before, _, after = label.rpartition(blocks[-1]) if blocks else (label, "", "")
    alike = (stage, label), (stage, before, after), (_work(stage, label),)
    return (*alike, ()) if stage in ON_CARDS else alike


def _made_at(path: str) -> int:
    """When the file was written, in ns; 0 if it is gone again."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _seconds(path: str) -> float:
    """What the job took by its own account; 0 where the file does not say."""
    try:
        return max(float(json.loads(Path(path).read_text())["seconds"]["function"]), 0.0)
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def _is_terminal(stream: TextIO) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # no file, or a closed one
        return False
