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
    """A number that a metric declares, and how the meta-evaluation compares it with other metrics.

    Parameters
    ----------
    quantity
        The number, as the metric declares it.
    how
        Under which name, with which ideal value and direction, and from which rows of results.
    """

    quantity: Quantity
    how: Comparison

    def goodness(self, value: np.ndarray) -> np.ndarray:
        """Return ``value`` (of any shape) transformed so that larger means more forgotten.

        Where the ideal value may be missed both ways (``two_sided``), this is minus the distance from it. Where a
        smaller value means more forgotten (``falling``), it is minus the value; else the value itself.
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
        # Rows of single models have another name than their mean where the comparison declares one.
        name = how.per_model if how.per_model and row.model is not None else self.quantity.name
        return row.metric == name and how.attack in ("", row.attack) and how.role in ("", row.role)


def metrics(quantities: Iterable[Quantity]) -> dict[str, Compared]:
    """Return every comparison that the ``quantities`` of metrics declare: name of the comparison → comparison, in the
    order in which the table of the meta-evaluation lists them."""
    comparisons = [Compared(quantity, how) for quantity in quantities for how in quantity.comparisons]
    return {metric.how.name: metric for metric in sorted(comparisons, key=lambda metric: metric.how.place)}


def models(metric: Compared, protocol: str, member: Membership) -> Estimate:
    """Return how many models are needed to judge one method by a metric: an exact count, so that its limits equal it.

    Originals that several models copy are trained once. The adversary's models count only if the metric trains on them,
    and retrained ones only if the metric compares with them. The note says how many of each kind there are.

    Parameters
    ----------
    metric
        The metric, whose ``how`` says which models it uses.
    protocol
        The name of the scenario's protocol.
    member
        The memberships of all models of one method in the scenario.
    """
    originals, _ = member.originals()
    # Which models count of those that are trained, and of those that are unlearned: all, or only the defender's.
    counted = np.ones_like(member.shadow) if protocol in metric.how.shadows else ~member.shadow
    trained, unlearned = int(counted[originals].sum()), int(counted.sum())
    retrained = int((~member.shadow).sum()) if metric.how.retrained else 0
    total = float(trained + unlearned + retrained)
    note = f"{trained} trained, {unlearned} unlearned" + (f", {retrained} retrained" if retrained else "")
    return Estimate(total, low=total, high=total, n=int(total), note=note)
