"""Measure how long jobs took, and predict how long the others will take."""

import os
from collections import defaultdict

from unlearning_audit.store.files import spec_of
from unlearning_audit.workflow.progress import HEAVY, RATES, SHORT


def measured(specs: list[str]) -> dict[str, float]:
    """Return spec path → the seconds that its job took, for the ``specs`` of jobs that are done."""
    return {path: float(spec_of(path)["seconds"]["function"]) for path in specs if os.path.exists(path)}


def finished_suffice(specs: list[str], done: dict[str, float]) -> bool:
    """Return whether the jobs that are done suffice to predict the others.

    If all jobs with models are done, or no job has models, one finished job of any kind suffices. As long as jobs with
    models are left, a job with models must be done, because models take seconds in one study and days in another.

    Parameters
    ----------
    specs
        Paths of all jobs' specs.
    done
        Spec path → seconds.
    """
    heavy = {path for path in specs if _rated_as(path) in HEAVY}
    return bool(done) if heavy <= done.keys() else bool(heavy & done.keys())


def expected(specs: list[str], done: dict[str, float]) -> dict[str, float]:
    """Return spec path → seconds of every job: the seconds in ``done`` of a finished job, a prediction for any other.

    The prediction is the mean seconds of the finished jobs of the same stage. If no job of the stage is finished, the
    prediction is the stage's shipped rate, in seconds per job. For a stage with models (`HEAVY`) this rate is
    multiplied by a factor: the seconds that all finished jobs with models took, divided by the seconds that the rates
    predict for them. The factor is 1 if no job with models is finished.
    """
    took: defaultdict[str, list[float]] = defaultdict(list)
    for path, seconds in done.items():
        took[_rated_as(path)].append(seconds)
    # All finished jobs with models: the seconds that they took, and those that the rates predict for them.
    spent = sum(sum(took[stage]) for stage in HEAVY if took[stage])
    predicted = sum(len(took[stage]) * RATES[stage] for stage in HEAVY if took[stage])
    factor = spent / predicted if predicted else 1.0
    costs = dict(done)
    for path in specs:
        if path not in done:
            stage = _rated_as(path)
            shipped = RATES.get(stage, SHORT) * (factor if stage in HEAVY else 1.0)
            costs[path] = sum(took[stage]) / len(took[stage]) if took[stage] else shipped
    return costs


def _rated_as(path: str) -> str:
    """Return the stage by whose rate the job of a spec is predicted, from the spec's path, which ends in
    stage/node/spec.json. A job of retraining counts as "train", because it takes longer than other methods of the stage
    "unlearn"."""
    stage, node = os.path.normpath(path).split(os.sep)[-3:-1]
    # What stands before the last hyphen of a node's name is its label, and the rest is its key.
    return "train" if stage == "unlearn" and node.rpartition("-")[0].endswith("-retrain") else stage
