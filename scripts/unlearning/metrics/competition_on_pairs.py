"""The score of the competition on swapped pairs: each split's models against those retrained for the same split."""

from typing import Literal

import numpy as np
from pydantic import Field

from unlearning import stats
from unlearning.case import Case
from unlearning.keyed import generator
from unlearning.metrics import _pairs, competition
from unlearning.metrics.competition import Models
from unlearning.settings import Settings

#: What is kept of it: the rest needs more models of one forget set than a pair has.
KEPT = ("forgetting_quality", "forgetting_quality_null", "forgetting_quality_over_null", "score")


class Options(Settings):
    """``rule`` and ``groups`` as for the metric competition."""

    rule: Literal["exact", "grid"] = "exact"
    groups: int = Field(default=16, ge=2)


def rows(case: Case, settings: dict) -> list[dict]:
    """F, its null F₀, F/F₀ and the final score over all splits, then of each pair (setting "pair=…").

    ε of a sample compares the n models of a split that unlearned it with n models retrained for that split; F₀ those
    with the n retrained for the other split, which keep the same samples. With few models ε is coarse, but F and F₀
    are so alike. Retraining itself is held against its control, or without one against the other split.
    """
    options = competition.Options(**settings["metrics"]["competition_on_pairs"])
    some = _pairs.groups(case.membership)
    itself = case.unlearned_files == case.retrained_files

    def found(some: list[_pairs.Group]) -> list[dict]:
        twins = models(case, case.retrained, some, "twins")
        reference, independent = models(case, case.retrained, some), twins
        if itself:
            reference = twins if case.control is None else models(case, case.control, some)
            independent = None if case.control is None else twins
        made = competition.evaluate(
            unlearned=models(case, case.unlearned, some),
            retrained=reference,
            independent=independent,
            options=options,
            rng=generator(settings["seed"], "competition_on_pairs"),
        )
        note = f"{len(some)} forget sets"
        return [{**row, "note": "; ".join(filter(None, (note, row["note"])))} for row in made if row["metric"] in KEPT]

    return list(_pairs.each(some, found))


def models(case: Case, logits: np.ndarray, some: list[_pairs.Group], of: str = "models") -> Models:
    """What the score reads of ``logits`` float32 [models, samples, classes]: the samples of all splits side by side,
    the i-th model of each in row i. ``of``: whose answers, the "models" of a split or their "twins"."""
    member, labels = case.membership, np.broadcast_to(case.labels, case.membership.train.shape)
    clean, test = case.data.y_clean, case.data.part == 1
    phi, retain, tests = [], [], []
    for group in some:
        asked = getattr(group, of)
        answers, y = logits[asked], labels[asked]
        kept = member.retain[group.models[0]]
        phi.append(stats.phi(logits=answers[:, group.forget], y=y[:, group.forget]))
        retain.append((answers[:, kept].argmax(-1) == y[:, kept]).mean(axis=1))
        tests.append((answers[:, test].argmax(-1) == clean[test]).mean(axis=1) if test.any() else None)
    return Models(np.concatenate(phi, axis=1), np.mean(retain, axis=0), np.mean(tests, axis=0) if test.any() else None)
