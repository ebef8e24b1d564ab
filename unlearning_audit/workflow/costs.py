"""Measure how long jobs took, and predict how long the others will take."""

import os
from collections import defaultdict

from unlearning_audit.store.files import record_of
from unlearning_audit.workflow.progress import HEAVY, RATES, SHORT


def measured(specs: list[str]) -> dict[str, float]:
    """Return spec path → the seconds that its job took, for the ``specs`` of jobs that are done."""
    return {path: float(record_of(path)["seconds"]["function"]) for path in specs if os.path.exists(path)}


def tell(specs: list[str], done: dict[str, float]) -> bool:
    """Return whether the jobs that are done suffice to predict the others. ``specs``: paths of all jobs' specs;
    ``done``: spec path → seconds.

    If some jobs with models remain, another job with models must be done, because models take seconds in one study and
    days in another. Otherwise any job suffices.
    """
    heavy = {path for path in specs if _work(path) in HEAVY}
    # If all jobs with models are done, any job will do. Otherwise one of those with models must be done.
    return bool(done if heavy <= done.keys() else heavy & done.keys())


def expected(specs: list[str], done: dict[str, float]) -> dict[str, float]:
    """Return spec path → seconds of every job: those in ``done`` if it is finished, a prediction otherwise.

    The prediction is the mean seconds of the finished jobs of the same stage. If no job of the stage is
    finished, it is the stage's shipped rate, in seconds per job. For a stage with models (`HEAVY`) the rate is
    multiplied by a factor: the seconds that all finished jobs with models took, divided by the seconds that the rates
    predict for these jobs.
    """
    took: defaultdict[str, list[float]] = defaultdict(list)
    for path, seconds in done.items():
        took[_work(path)].append(seconds)
    # Of each stage with models: the seconds that its finished jobs took, and those that its rate predicts for them.
    heavy = [(sum(took[work]), len(took[work]) * RATES[work]) for work in HEAVY if took[work]]
    scale = sum(spent for spent, _ in heavy) / sum(predicted for _, predicted in heavy) if heavy else 1.0
    costs = dict(done)
    for path in specs:
        if path not in done:
            work = _work(path)
            shipped = RATES.get(work, SHORT) * (scale if work in HEAVY else 1.0)
            costs[path] = sum(took[work]) / len(took[work]) if took[work] else shipped
    return costs


def _work(path: str) -> str:
    """Return the stage by whose rate the job of a spec is predicted. A job of retraining counts as "train", because it
    takes longer than other methods of the stage "unlearn"."""
    stage, node = os.path.normpath(path).split(os.sep)[-3:-1]
    return "train" if stage == "unlearn" and node.rpartition("-")[0].endswith("-retrain") else stage
