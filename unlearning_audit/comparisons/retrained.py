"""How many retrained models would decide on models that have no partners among them.

Such models are held against what retrained ones vary by (`unlearning_audit.stats.unpaired`): with m audited and n
retrained models the error of a distance is s·√(1/m + 1/n), or that over samples if this is larger, and a distance is
found by Student's t with n − 1 degrees of freedom.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from unlearning_audit import stats
from unlearning_audit.comparisons.distances import Read
from unlearning_audit.stats import LEVEL, decide
from unlearning_audit.stats.resolution import POWER
from unlearning_audit.stats.unpaired import KNOWN

#: More retrained models than anybody trains for one audit.
MOST = 256


@dataclass(frozen=True)
class Yardstick:
    """What a distance varies by: variance over samples, ``sampled``, and of one model, ``spread``; ``audited`` models;
    ``band``, how much wider intervals are than those of one number alone; ``known``: whether the spread of one
    retrained model is given, where more of them would show it."""

    sampled: float
    spread: float
    audited: int
    band: float
    known: bool = False

    @classmethod
    def of(cls, read: Read) -> "Yardstick":
        """Of the number that speaks for all by one metric."""
        audited, retrained = len(read.side.audited.unit), read.side.retrained
        spread = float(read.chance.models.variances[0][read.place]) / (1 / audited + 1 / retrained)
        return cls(float(read.numbers.sampled[read.place]), spread, audited, read.factor, bool(read.given))

    def _dof(self, retrained: int) -> int:
        return KNOWN if self.known and retrained == 1 else retrained - 1

    def least_distance(self, retrained: int, *, level: float = LEVEL, power: float = POWER) -> float:
        """The distance that is found with this ``power`` beside so many ``retrained`` models, at least two or of known
        spread."""
        return self._reach(retrained, self._dof(retrained), tail=(1 - level) / 2, power=power)

    def room_needed(self, retrained: int, *, level: float = LEVEL, power: float = POWER) -> float:
        """How far inside its margin a distance must lie to be shown equivalent by two one-sided tests; half of the
        missing power is left to each."""
        dof = self._dof(retrained) if self.audited == 1 else min(self._dof(retrained), self.audited - 1)
        return self._reach(retrained, dof, tail=1 - level, power=(1 + power) / 2)

    def _reach(self, retrained: int, dof: int, *, tail: float, power: float) -> float:
        """How far from a bound a distance must lie for its interval to leave the bound out with this ``power``: by what
        models vary, whose estimate varies too (noncentral t), and by what samples vary."""
        quantile = self.band * float(stats.t_quantile(p=np.array([1 - tail]), dof=np.array([float(dof)]))[0])
        of_models = float(special.nctdtrinc(dof, 1 - power, quantile))
        of_samples = float(self.band * stats.normal_quantile(1 - tail) + stats.normal_quantile(power))
        error = np.sqrt(self.spread * (1 / self.audited + 1 / retrained))
        return max(of_models * float(error), of_samples * float(np.sqrt(self.sampled)))


def present(read: Read) -> int:
    """How many retrained models there are, at least two unless their spread is given: with one alone the audited ones
    say how models vary."""
    return max(read.side.retrained, 1 if read.given else 2)


def deciding_counts(read: Read) -> list[tuple[int, str, float]]:
    """(retrained models, outcome, assumed distance) that decide on an inconclusive distance with power .8: that show
    equivalence if the method is retraining, and that find it at either limit of its interval. None for what no number
    of retrained models decides."""
    yardstick = Yardstick.of(read)
    room = min(-read.margin[0], read.margin[1])
    outcomes = [(decide.EQUIVALENT, 0.0)]
    outcomes += [(decide.DISTINGUISHABLE, limit) for limit in (read.distance.estimate.low, read.distance.estimate.high)]
    plans = []
    for outcome, distance in outcomes:
        for count in range(present(read), MOST + 1):
            alike = outcome == decide.EQUIVALENT
            if room >= yardstick.room_needed(count) if alike else abs(distance) >= yardstick.least_distance(count):
                plans.append((count, outcome, distance))
                break
    return plans
