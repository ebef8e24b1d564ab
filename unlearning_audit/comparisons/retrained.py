"""How many retrained models are needed to decide on audited models that have no partners among them.

Audited models without partners are compared with the variation between retrained ones
(`unlearning_audit.stats.unpaired`). With m audited and n retrained models the error of a distance is s·√(1/m + 1/n), or
that over samples if this is larger. A distance is tested by Student's t with n − 1 degrees of freedom.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from unlearning_audit import stats
from unlearning_audit.comparisons.distances import Read
from unlearning_audit.stats import LEVEL
from unlearning_audit.stats.resolution import POWER
from unlearning_audit.stats.unpaired import KNOWN

#: The largest number of retrained models that is considered.
MOST = 256


@dataclass(frozen=True)
class Reference:
    """The variances of a distance between audited and retrained models without partners.

    Parameters
    ----------
    sampled
        The variance over samples.
    spread
        The variance of one model.
    audited
        The number of audited models.
    widening
        How many times wider intervals are than those of one number alone, because they hold for several attacks.
    known
        Whether the spread is given for a single retrained model. With more retrained models it is estimated.
    """

    sampled: float
    spread: float
    audited: int
    widening: float
    known: bool = False

    @classmethod
    def from_read(cls, read: Read) -> "Reference":
        """Return the variances of ``read``, the distance that stands for all attacks of a metric."""
        audited, retrained = len(read.side.audited.unit), read.side.retrained
        # The variance of a difference of two means, over models that are alike, gives that of one model.
        spread = float(read.chance.models.variances[0][read.chosen]) / (1 / audited + 1 / retrained)
        return cls(float(read.numbers.sampled[read.chosen]), spread, audited, read.factor, known=bool(read.given))

    def _dof(self, retrained: int) -> int:
        """Return the degrees of freedom of the variance between this number of ``retrained`` models; `KNOWN`,
        practically infinitely many, for a single model of known spread."""
        return KNOWN if self.known and retrained == 1 else retrained - 1

    def least_distance(self, retrained: int) -> float:
        """Return the least distance that is detected with `POWER` by this number of ``retrained`` models: at least two,
        or one of known spread."""
        return self._detectable(retrained, self._dof(retrained), tail=(1 - LEVEL) / 2, power=POWER)

    def room_needed(self, retrained: int) -> float:
        """Return how far inside its margin a distance must lie to be shown equivalent with `POWER` by this number of
        ``retrained`` models.

        This is by two one-sided tests, each of which gets half of the missing power.
        """
        # A single audited model is assumed to vary as retrained ones.
        dof = self._dof(retrained) if self.audited == 1 else min(self._dof(retrained), self.audited - 1)
        return self._detectable(retrained, dof, tail=1 - LEVEL, power=(1 + POWER) / 2)

    def _detectable(self, retrained: int, dof: int, *, tail: float, power: float) -> float:
        """Return how far from 0, or from a margin, the true distance must lie for its interval to exclude that point
        with probability ``power``.

        This is the larger of two results: by the variation of models, whose estimate with ``dof`` degrees of freedom
        varies too (noncentral t), and by the variation of samples.

        Parameters
        ----------
        retrained
            The number of retrained models.
        tail
            The probability outside one end of the interval.
        """
        quantile = self.widening * float(stats.t_quantile(p=1 - tail, dof=dof))
        # Both in standard errors; the first is the noncentrality with which t exceeds the quantile with ``power``.
        by_models = float(special.nctdtrinc(dof, 1 - power, quantile))
        by_samples = float(self.widening * stats.normal_quantile(1 - tail) + stats.normal_quantile(power))
        error_of_models = np.sqrt(self.spread * (1 / self.audited + 1 / retrained))
        return max(by_models * float(error_of_models), by_samples * float(np.sqrt(self.sampled)))


def models_today(read: Read) -> int:
    """Return how many retrained models there are, but at least two unless the spread of a single one is given.

    A single retrained model of unknown spread does not show how models vary; the audited models show it then.
    """
    return max(read.side.retrained, 1 if read.given else 2)
