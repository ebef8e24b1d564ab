"""RULI on swapped pairs: every target model is audited with all others except its twin as shadow models."""

from typing import Literal

import numpy as np
from pydantic import Field

from unlearning_audit.metrics import Evaluation, FalsePositiveRates, Group, Row, Settings, _pairs, ruli, table
from unlearning_audit.stats.readings import MembershipTest, readings

#: The tests that are kept. The test "remained" is not: every target forgot or never saw the evaluated samples.
TESTS = (("ruli", "privacy"), ("ruli", "efficacy"), ("u_lira", "privacy"), ("population", "privacy"))


NEEDS = ("swapped_pairs",)

QUANTITIES = ruli.QUANTITIES

#: A sample is surely forgotten only by the models of the split whose forget set holds it, and the audited one of these
#: is left out. So a split needs one model more than ``minimum``. Whether models of other pairs forget the sample is
#: random.
PROTOCOL_MINIMUM = {"models_per_split": ("minimum", 1)}


class Options(Settings):
    """``density`` of phi in the models that serve as shadow models: ``pooled`` Gaussians have each sample's mean and
    one spread for all, as is advised for few models (Carlini et al. 2022, §VI); ``kde`` and ``gaussian`` have a spread
    for each sample; ``fpr``: the false positive rates at which TPR is given; ``minimum`` models in every
    distribution."""

    density: Literal["pooled", "gaussian", "kde"] = "pooled"
    fpr: FalsePositiveRates = (0.01,)
    minimum: int = Field(default=2, ge=2)


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return accuracy, AUC and TPR of each test over all pairs, then of each pair (field ``pair``) if there are
    several. Without retrained models, the rows of the efficacy test have this reason in place of a number.

    A model and its twin, the model of the other split with the same number, are left out together. So among the models
    that are left, as many forgot a sample as never saw it, and a model without traces has an AUC of .5, whatever the
    number of models.
    """
    of_ruli = ruli.Options(**options.model_dump())
    splits = _pairs.swapped_splits(evaluation.membership)
    forgotten = np.isin(np.arange(len(evaluation.data.y)), np.concatenate([split.forget for split in splits]))
    files = evaluation.originals, evaluation.unlearned_files, evaluation.compared_files
    models = [None if paths is None else Group(evaluation, paths, evaluation.target) for paths in files]
    population = ruli.population(dict(zip(("original", "unlearned", "retrained"), models, strict=True)), forgotten)
    number = np.cumsum(evaluation.target) - 1  # number[m] is the number of target model m among the targets
    tests = leave_pair_out(population, [(number[split.models], number[split.twins]) for split in splits], of_ruli)
    block = evaluation.membership.block[evaluation.target]

    def of_splits(some: list[_pairs.SplitModels]) -> list[Row]:
        """Return the rows of all ``tests`` for the models of ``some`` splits, those of all pairs or of one pair.
        ``block`` has the pair of each target model."""
        models = np.isin(block, [split.block for split in some])
        lines = []
        for attack, name in TESTS:
            numbers = readings(restricted(tests[attack, name], models, block), fpr=options.fpr)
            lines += table({f"{name}_{metric}": number for metric, number in numbers.items()}, attack=attack)
        return lines

    return _pairs.by_pair(splits, of_splits)


def leave_pair_out(
    population: ruli.Population, splits: list[tuple[np.ndarray, np.ndarray]], options: ruli.Options
) -> dict[tuple[str, str], MembershipTest]:
    """Return (attack, test) → the scores of all models in this test of RULI, with which samples are positives and
    negatives. The shadow models of each model are all except itself and its twin, the model of the other split with the
    same number.

    Scores are NaN where neither a model nor its twin forgot or held out a sample.

    Parameters
    ----------
    splits
        For each split, its models and their twins, int64 [models] each.

    Raises
    ------
    ValueError
        For samples with too few shadow models, and for phi that is not finite.
    """
    # [pairs of models, 2]: each model beside its twin. Both splits list the pair; sorted, it is the same row in both.
    pairs = np.sort(np.concatenate([np.stack(split, axis=1) for split in splits]), axis=1)
    scores = {test: np.full(population.train.shape, np.nan) for test in TESTS}
    missing = dict.fromkeys(TESTS, "")
    for pair in np.unique(pairs, axis=0):
        audited = np.isin(np.arange(len(population.train)), pair)
        targets = population.models(audited)
        columns = (targets.forget | targets.heldout).any(axis=0)  # the samples that `ruli.score_tests` scores
        tests = ruli.score_tests(targets, population.models(~audited), options)
        for test in TESTS:
            scores[test][np.ix_(audited, columns)] = tests[test].score
            missing[test] = tests[test].missing
    return {test: MembershipTest(scores[test], population.forget, population.heldout, missing[test]) for test in TESTS}


def restricted(test: MembershipTest, models: np.ndarray, block: np.ndarray) -> MembershipTest:
    """Return the ``test`` restricted to some ``models``, bool [models], and to the samples that any of these forgot or
    held out. ``block`` int [models]: the pair of splits of each model, which becomes its unit."""
    columns = (test.positive | test.negative)[models].any(axis=0)
    score, positive, negative = (array[models][:, columns] for array in (test.score, test.positive, test.negative))
    return MembershipTest(score, positive, negative, missing=test.missing, unit=block[models])
