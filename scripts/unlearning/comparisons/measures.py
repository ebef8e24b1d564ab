"""The metrics that are measured themselves: how each is read, and how many models it takes."""

import math
from dataclasses import dataclass

import numpy as np

from unlearning.artifacts.arrays import Membership
from unlearning.stats import Estimate


@dataclass(frozen=True)
class Measure:
    """One metric as it is compared: its ``attack`` ("" = any one), what perfect unlearning scores (``ideal``, NaN if
    unknown), and whether only the distance from that counts (``two_sided``), less is better (``falling``) or more is.

    ``each``: the metric that is given for every seed, where it has another name. ``part``: what the setting must hold.
    ``logarithmic``: values span orders of magnitude, so differences are those of their logarithms.
    ``retrained``: whether it reads retrained models; ``shadows``: the protocols whose shadow models it reads, too.
    """

    metric: str
    attack: str
    ideal: float
    two_sided: bool = False
    falling: bool = False
    each: str = ""
    part: str = ""
    logarithmic: bool = False
    retrained: bool = False
    shadows: tuple[str, ...] = ()

    def goodness(self, value: np.ndarray) -> np.ndarray:
        """Larger = judged more forgotten."""
        if self.two_sided:
            return -np.abs(value - self.ideal)
        return -value if self.falling else value

    def reads(self, row: dict) -> bool:
        """Whether a row is one of this metric's."""
        parts = row["setting"].split(";")
        of_seed = self.each and any(part.startswith("model=") for part in parts)
        named = row["metric"] == (self.each if of_seed else self.metric) and self.attack in ("", row["attack"])
        return named and (not self.part or self.part in parts)


_PAIRED = ("swap", "random_splits")
MEASURES = {
    "Q": Measure("q", "paper", 1.0, shadows=_PAIRED),
    "Q, extended": Measure("q", "extended", 1.0, shadows=_PAIRED),
    "Q, cross-fitted": Measure("q_crossfit", "paper", 1.0, shadows=_PAIRED),
    "MIA score": Measure("mia_score", "confidence/trained", 0.5, two_sided=True),
    "F / F₀": Measure("forgetting_quality_over_null", "", 1.0, retrained=True),
    "final score": Measure("score", "", math.nan, retrained=True),
    "efficacy": Measure("efficacy_median", "", math.nan, falling=True, each="efficacy", logarithmic=True),
    "RULI privacy AUC": Measure("privacy_auc", "ruli", 0.5, two_sided=True, shadows=("ruli",)),
    "RULI efficacy AUC": Measure("efficacy_auc", "ruli", 0.5, two_sided=True, retrained=True, shadows=("ruli",)),
    "U-LiRA AUC": Measure("privacy_auc", "u_lira", 0.5, two_sided=True, shadows=("ruli",)),
    "population AUC": Measure("privacy_auc", "population", 0.5, two_sided=True, shadows=("ruli",)),
    "accuracy gap": Measure("accuracy_gap", "", 0.0, two_sided=True, part="role=forget", retrained=True),
    "IC score": Measure("ic_score", "", 1.0),
}


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


def models(measure: Measure, made: Made) -> Estimate:
    """How many models have to be made to judge one method by a measure: a count, which is its own interval."""
    adversary = made.protocol in measure.shadows
    counts = {
        "trained": made.trained + made.shadow_trained * adversary,
        "unlearned": made.unlearned + made.shadow_unlearned * adversary,
        "retrained": made.unlearned * measure.retrained,
    }
    total = float(sum(counts.values()))
    return Estimate(total, total, total, int(total), ", ".join(f"{n} {kind}" for kind, n in counts.items() if n))
