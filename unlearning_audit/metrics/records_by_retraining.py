"""Records that are still recognised where all models forget one set: each is compared with retrained models."""

import numpy as np

from unlearning_audit.metrics import Evaluation, Row, _contents
from unlearning_audit.metrics import records as lists
from unlearning_audit.metrics.records import QUANTITIES as QUANTITIES
from unlearning_audit.metrics.records import Options as Options

NEEDS = ("one_forget_set",)
DEFAULT = "one_forget_set"


def rows(evaluation: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return the share of forgotten records that are recognised by comparison with retrained models, and, where records
    belong to people, the share of people with such a record; [] if there are fewer than two retrained models.

    ``options.rate`` is the expected share of false ones among the recognised.
    """
    return lists.summary(lists.by_retraining(evaluation, options.rate), options.rate)


def records(evaluation: Evaluation, options: Options) -> list[_contents.Line]:
    """Return a line for each forgotten record of the models that forgot the same set, with its contents; [] if no
    retrained models have the same samples, or if they failed."""
    lines = lists.by_retraining(evaluation, options.rate)
    return _contents.with_contents(lines, evaluation.data, options.examples, surprise=_contents.surprise(evaluation))
