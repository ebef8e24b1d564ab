"""What every job took or will take, told by those that are done."""

import json
import os
import re
from pathlib import Path

from unlearning_audit.workflow.progress import HEAVY, RATES, SHORT

#: The blocks of models in a label.
BLOCKS = re.compile(r"-[a-z]+\d+(?:to\d+)?(?=-|$)")


def measured(specs: list[str]) -> dict[str, float]:
    """Seconds of the jobs that are done, by the path of their spec."""
    return {path: _seconds(path) for path in specs if os.path.exists(path)}


def tell(specs: list[str], done: dict[str, float]) -> bool:
    """Whether what is done says how long the rest takes: data and splits say nothing of how long models take, which is
    seconds in one study and days in another."""
    heavy = {path for path in specs if _parts(path)[0] in HEAVY}
    return bool(done if heavy <= done.keys() else heavy & done.keys())


def expected(specs: list[str], done: dict[str, float]) -> dict[str, float]:
    """Seconds of every job: what it took, else as jobs of its name, of its name but for the blocks, or of its stage,
    else what the stage takes by the shipped rates, of jobs with models in proportion to those measured."""
    alike: dict[tuple[str, ...], list[float]] = {}
    for path, seconds in done.items():
        stage, label = _parts(path)
        for group in _groups(stage, label):
            total = alike.setdefault(group, [0.0, 0.0])
            total[0] += seconds
            total[1] += 1.0 if group else _shipped(stage, label)
    costs = dict(done)
    for path in specs:
        if path not in done:
            stage, label = _parts(path)
            nearest = next((g for g in _groups(stage, label) if g in alike), None)
            seconds, count = (1.0, 1.0) if nearest is None else alike[nearest]
            costs[path] = seconds / count * (1.0 if nearest else _shipped(stage, label))
    return costs


def _parts(path: str) -> tuple[str, str]:
    """(stage, label without key) of a spec's path."""
    stage, node = os.path.normpath(path).split(os.sep)[-3:-1]
    return stage, node.rsplit("-", 1)[0]


def _shipped(stage: str, label: str) -> float:
    return RATES.get(_work(stage, label), SHORT)


def _work(stage: str, label: str) -> str:
    """The stage whose jobs take as long: retraining is training, and says nothing of other methods."""
    return "train" if stage == "unlearn" and label.endswith("-retrain") else stage


def _groups(stage: str, label: str) -> tuple[tuple[str, ...], ...]:
    """Which jobs take about as long, the most alike first: of "…-shadows4to7-npo" those of other shadow models next;
    last, for jobs with models, all that hold such."""
    blocks = BLOCKS.findall(label)
    before, _, after = label.rpartition(blocks[-1]) if blocks else (label, "", "")
    alike = (stage, label), (stage, before, after), (_work(stage, label),)
    return (*alike, ()) if stage in HEAVY else alike


def _seconds(path: str) -> float:
    """What the job took by its own account; 0 where the file does not say."""
    try:
        return max(float(json.loads(Path(path).read_text())["seconds"]["function"]), 0.0)
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
