"""The metrics that the meta-evaluation compares with each other, and how many models each needs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.rows import Failure, Row
from unlearning_audit.plugins.declarations import Comparison, Quantity
from unlearning_audit.stats import Estimate


@dataclass(frozen=True)
class Compared:
    """A number that a metric declares, ``quantity``, and how the meta-evaluation compares it with other metrics,
    ``how``."""

    quantity: Quantity
    how: Comparison

    def goodness(self, value: np.ndarray) -> np.ndarray:
        """Return ``value`` (of any shape) transformed so that larger means more forgotten.

        Where the ideal value may be missed both ways, this is minus the distance from it.
        """
        if self.how.two_sided:
            return -np.abs(value - self.how.ideal)
        return -value if self.how.falling else value

    def reads(self, row: Row | Failure) -> TypeGuard[Row]:
        """Return whether a row of results holds the number of this comparison, with its attack and role; a failure does
        not."""
        how = self.how
        if not isinstance(row, Row):
            return False
        name = how.per_model if how.per_model and row.model is not None else self.quantity.name
        return row.metric == name and how.attack in ("", row.attack) and how.role in ("", row.role)


def metrics(quantities: Iterable[Quantity]) -> dict[str, Compared]:
    """Return every comparison that the ``quantities`` of metrics declare, by its name, in the order of the table of the
    meta-evaluation."""
    comparisons = [Compared(quantity, how) for quantity in quantities for how in quantity.comparisons]
    return {metric.how.name: metric for metric in sorted(comparisons, key=lambda metric: metric.how.place)}


@dataclass(frozen=True)
class ModelCounts:
    """How many models are made to judge one method in a scenario of ``protocol``.

    ``trained`` and ``unlearned``: the defender's models; ``shadow_trained`` and ``shadow_unlearned``: the adversary's.
    """

    protocol: str
    trained: int
    unlearned: int
    shadow_trained: int = 0
    shadow_unlearned: int = 0


def model_counts(protocol: str, member: Membership) -> ModelCounts:
    """Count the models that are made to judge one method in a scenario: trained and unlearned ones, of the defender and
    of the adversary.

    ``protocol``: the name of the scenario's protocol, which goes into the result; ``member``: the memberships of all
    models of the scenario. Originals that several models copy are trained once.
    """
    first, _ = member.originals()
    counts = [(int((~shadow).sum()), int(shadow.sum())) for shadow in (member.shadow[first], member.shadow)]
    (trained, shadow_trained), (unlearned, shadow_unlearned) = counts
    return ModelCounts(protocol, trained, unlearned, shadow_trained, shadow_unlearned)


def models(metric: Compared, count: ModelCounts) -> Estimate:
    """Return how many models are needed to judge one method by a metric: an exact count, so that its limits equal it.

    ``count``: the models of one method in the scenario. The adversary's models count only if the metric trains on them,
    and retrained ones only if the metric compares with them. The note says how many of each kind there are.
    """
    adversary = count.protocol in metric.how.shadows
    counts = {
        "trained": count.trained + count.shadow_trained * adversary,
        "unlearned": count.unlearned + count.shadow_unlearned * adversary,
        "retrained": count.unlearned * metric.how.retrained,
    }
    total = float(sum(counts.values()))
    return Estimate(total, total, total, int(total), ", ".join(f"{n} {kind}" for kind, n in counts.items() if n))
