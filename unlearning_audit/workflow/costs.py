"""Measure how long jobs took, and predict how long the others will take."""

import os
import re

from unlearning_audit.store.files import record_of
from unlearning_audit.workflow.progress import HEAVY, RATES, SHORT

#: The last part of a label that names blocks of models, and what precedes it.
BLOCKS = re.compile(r"(.*)-[a-z]+\d+(?:to\d+)?(?=-|$)")


def measured(specs: list[str]) -> dict[str, float]:
    """Return spec path → the seconds that its job took, for the ``specs`` of jobs that are done."""
    return {path: float(record_of(path)["seconds"]["function"]) for path in specs if os.path.exists(path)}


def tell(specs: list[str], done: dict[str, float]) -> bool:
    """Return whether the jobs that are done suffice to predict the others. ``specs``: paths of all jobs' specs;
    ``done``: spec path → seconds.

    If some jobs with models remain, another job with models must be done, because models take seconds in one study and
    days in another. Otherwise any job suffices.
    """
    heavy = {path for path in specs if _parts(path)[0] in HEAVY}
    return bool(done if heavy <= done.keys() else heavy & done.keys())


def expected(specs: list[str], done: dict[str, float]) -> dict[str, float]:
    """Return spec path → seconds of every job: those in ``done`` if it is finished, a prediction otherwise.

    A prediction is the mean of finished jobs of the same name, whatever their blocks; if there are none, of the same
    stage. Without those, it is the stage's shipped rate, which for jobs with models is scaled by
    how long the finished ones took in proportion to their rates.
    """
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
    """Return (stage, label without key) of a spec's path."""
    stage, node = os.path.normpath(path).split(os.sep)[-3:-1]
    return stage, node.rsplit("-", 1)[0]


def _shipped(stage: str, label: str) -> float:
    """Return the shipped rate of a job, in seconds."""
    return RATES.get(_work(stage, label), SHORT)


def _work(stage: str, label: str) -> str:
    """Return the stage by whose rate a job is predicted. A job of retraining counts as "train", because it takes longer
    than other methods of the stage "unlearn"."""
    return "train" if stage == "unlearn" and label.endswith("-retrain") else stage


def _groups(stage: str, label: str) -> tuple[tuple[str, ...], ...]:
    """Return the groups to which a job belongs, from the most similar to the least: same label but for the blocks; same
    stage. Jobs of a group take about as long.

    For "…-shadows4to7-npo", the first group holds the same jobs on other shadow models. For jobs with models, a last
    group () holds all jobs with models.
    """
    alike = (stage, BLOCKS.sub(r"\1", label)), (_work(stage, label),)
    return (*alike, ()) if stage in HEAVY else alike
