"""Records that are still recognised where all models forget one set: each is held against retrained models' answers."""

import numpy as np

from unlearning_audit.adversary.case import Case
from unlearning_audit.artifacts.files import NoAnswerError
from unlearning_audit.artifacts.rows import Row
from unlearning_audit.metrics import _contents
from unlearning_audit.metrics import records as lists
from unlearning_audit.metrics.records import QUANTITIES as QUANTITIES
from unlearning_audit.metrics.records import Options as Options

NEEDS = ("one_forget_set",)
DEFAULT = "one_forget_set"


def rows(case: Case, options: Options, rng: np.random.Generator) -> list[Row]:
    """The rows of `metrics.records`, by `stats.records.against_retrained`; none without two retrained models."""
    return lists.summary(_lines(case, options), options.rate)


def records(case: Case, options: Options) -> list[dict]:
    """A line for each forgotten record of the models that forgot the same."""
    return _contents.shown(_lines(case, options), case.data, options.most)


def _lines(case: Case, options: Options) -> list[dict]:
    files = case.compared_files
    if not files:
        return []
    try:
        retrained = case.answers(files).phi(case.labels_of(case.target), case.target)
    except NoAnswerError:  # that retraining failed is said of retraining
        return []
    member = case.membership[case.target]
    phi = case.answers(case.unlearned_files).phi(case.labels_of(case.target), case.target)
    return lists.against_retrained(case, member, phi, retrained=retrained, training=member.retain, rate=options.rate)
