"""The metrics that are compared with each other: how each is read, and how many models it takes."""

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
    """A quantity as the meta-evaluation reads it: what it is, and how it is compared."""

    quantity: Quantity
    how: Comparison

    def goodness(self, value: np.ndarray) -> np.ndarray:
        """Larger = judged more forgotten."""
        if self.how.two_sided:
            return -np.abs(value - self.how.ideal)
        return -value if self.how.falling else value

    def reads(self, row: Row | Failure) -> TypeGuard[Row]:
        """Whether a row is one of this metric's."""
        how = self.how
        if not isinstance(row, Row):
            return False
        name = how.per_model if how.per_model and row.model is not None else self.quantity.name
        return row.metric == name and how.attack in ("", row.attack) and how.role in ("", row.role)


def metrics(quantities: Iterable[Quantity]) -> dict[str, Compared]:
    """Every comparison that the ``quantities`` declare, by its name, from the top of the table."""
    comparisons = [Compared(quantity, how) for quantity in quantities for how in quantity.comparisons]
    return {metric.how.name: metric for metric in sorted(comparisons, key=lambda metric: metric.how.place)}


@dataclass(frozen=True)
class ModelCounts:
    """How many models one method needs in a scenario of ``protocol``: ``trained``, and ``unlearned`` from these, the
    defender's and the adversary's."""

    protocol: str
    trained: int
    unlearned: int
    shadow_trained: int = 0
    shadow_unlearned: int = 0


def model_counts(protocol: str, member: Membership) -> ModelCounts:
    """The models of ``member``, all batches of a scenario together."""
    first, _ = member.originals()
    counts = [(int((~shadow).sum()), int(shadow.sum())) for shadow in (member.shadow[first], member.shadow)]
    (trained, shadow_trained), (unlearned, shadow_unlearned) = counts
    return ModelCounts(protocol, trained, unlearned, shadow_trained, shadow_unlearned)


def models(metric: Compared, count: ModelCounts) -> Estimate:
    """How many models have to be made to judge one method by a metric: a count, which is its own interval."""
    adversary = count.protocol in metric.how.shadows
    counts = {
        "trained": count.trained + count.shadow_trained * adversary,
        "unlearned": count.unlearned + count.shadow_unlearned * adversary,
        "retrained": count.unlearned * metric.how.retrained,
    }
    total = float(sum(counts.values()))
    return Estimate(total, total, total, int(total), ", ".join(f"{n} {kind}" for kind, n in counts.items() if n))
