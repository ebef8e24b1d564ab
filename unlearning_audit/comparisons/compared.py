"""The metrics that are compared with each other: how each is read, and how many models it takes."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from unlearning_audit.artifacts.arrays import Membership
from unlearning_audit.artifacts.rows import Row
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

    def reads(self, row: Row) -> bool:
        """Whether a row is one of this metric's."""
        how = self.how
        name = how.per_model if how.per_model and row.model is not None else self.quantity.name
        return row.metric == name and how.attack in ("", row.attack) and how.role in ("", row.role)


def metrics(quantities: Iterable[Quantity]) -> dict[str, Compared]:
    """Every comparison that the ``quantities`` declare, by its name, from the top of the table."""
    found = [Compared(quantity, how) for quantity in quantities for how in quantity.comparisons]
    return {one.how.name: one for one in sorted(found, key=lambda one: one.how.place)}


@dataclass(frozen=True)
class Made:
    """How many models one method needs in a scenario of ``protocol``: ``trained``, and ``unlearned`` from these, the
    defender's and the adversary's."""

    protocol: str
    trained: int
    unlearned: int
    shadow_trained: int = 0
    shadow_unlearned: int = 0


def made(protocol: str, member: Membership) -> Made:
    """The models of ``member``, all batches of a scenario together."""
    first, _ = member.originals()
    counts = [(int((~some).sum()), int(some.sum())) for some in (member.shadow[first], member.shadow)]
    (trained, shadow_trained), (unlearned, shadow_unlearned) = counts
    return Made(protocol, trained, unlearned, shadow_trained, shadow_unlearned)


def models(metric: Compared, made: Made) -> Estimate:
    """How many models have to be made to judge one method by a metric: a count, which is its own interval."""
    adversary = made.protocol in metric.how.shadows
    counts = {
        "trained": made.trained + made.shadow_trained * adversary,
        "unlearned": made.unlearned + made.shadow_unlearned * adversary,
        "retrained": made.unlearned * metric.how.retrained,
    }
    total = float(sum(counts.values()))
    return Estimate(total, total, total, int(total), ", ".join(f"{n} {kind}" for kind, n in counts.items() if n))
