"""RULI on swapped pairs: every target model is audited with all others, but its twin, as its shadow models."""

from typing import Literal

import numpy as np
from pydantic import Field

from unlearning_audit.adversary.case import Case
from unlearning_audit.artifacts.rows import Row
from unlearning_audit.metrics import _pairs, row, ruli
from unlearning_audit.metrics.ruli import QUANTITIES as OF_RULI
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.stats.readings import Question, readings

#: The tests that are kept; all targets forgot or never saw the samples that are asked about, so none remained.
TESTS = (("ruli", "privacy"), ("ruli", "efficacy"), ("u_lira", "privacy"), ("population", "privacy"))


NEEDS = ("swapped_pairs",)

QUANTITIES = OF_RULI


class Options(Settings):
    """``density`` of phi in the other models: ``pooled`` Gaussians have each sample's mean and one spread for all, as
    is advised for few models (Carlini et al. 2022, §VI), the others are those of the metric ruli; ``fpr`` at which
    TPR is read; ``minimum`` models in every distribution.
    """

    density: Literal["pooled", "gaussian", "kde"] = "pooled"
    fpr: tuple[float, ...] = (0.01,)
    minimum: int = Field(default=2, ge=2)


def rows(case: Case, options: Options, rng: np.random.Generator) -> list[Row]:
    """Accuracy, AUC and TPR of each test over all pairs, then of each pair (field ``pair``).

    A model and its twin, the model of the other split with the same number, are left out together: then as many
    models forgot a sample as never saw it, and a model that learned nothing of its own reads .5 whatever the number.
    """
    options = ruli.Options(**options.model_dump())
    some = _pairs.groups(case.membership)
    asked = np.unique(np.concatenate([group.forget for group in some]))
    mask = np.zeros(len(case.data.y), bool)
    mask[asked] = True
    every = ruli.population(case, mask).models(case.target)
    number = np.cumsum(case.target) - 1  # of a target model among the targets
    found = leave_pair_out(every, [(number[g.models], number[g.twins]) for g in some], options)
    block = case.membership.block[case.target]

    def read(some: list[_pairs.Group]) -> list[Row]:
        own = np.isin(block, [group.block for group in some])
        return [
            row(attack=attack, metric=f"{name}_{metric}", estimate=estimate)
            for attack, name in TESTS
            for metric, estimate in readings(only(found[attack, name], own), fpr=options.fpr).items()
        ]

    return list(_pairs.each(some, read))


def leave_pair_out(
    every: ruli.Population, sides: list[tuple[np.ndarray, np.ndarray]], options: ruli.Options
) -> dict[tuple[str, str], Question]:
    """`ruli.score` of each model, with all as its shadow models but itself and its twin.

    ``sides``: of each split its models and their twins, int64 [models] each. Scores are NaN where a model neither
    forgot nor held out a sample. Raises ValueError as `ruli.score`.
    """
    models = len(every.train)
    pairs = {tuple(sorted(pair)) for one, other in sides for pair in zip(one.tolist(), other.tolist(), strict=True)}
    scores = {test: np.full(every.train.shape, np.nan) for test in TESTS}
    missing = dict.fromkeys(TESTS, "")
    for pair in sorted(pairs):
        own = np.isin(np.arange(models), pair)
        targets = every.models(own)
        columns = (targets.forget | targets.heldout).any(axis=0)
        made = ruli.score(targets=targets, shadows=every.models(~own), options=options)
        for test in TESTS:
            scores[test][np.ix_(own, columns)] = made[test].score
            missing[test] = made[test].missing
    return {test: Question(scores[test], every.forget, every.heldout, missing[test]) for test in TESTS}


def only(test: Question, models: np.ndarray) -> Question:
    """The same of some models, bool [models]; samples that none of them was asked about are left out."""
    asked = (test.positive | test.negative)[models].any(axis=0)
    return Question(*(x[models][:, asked] for x in (test.score, test.positive, test.negative)), test.missing)
