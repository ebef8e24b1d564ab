"""The words of verdicts: five states, each with one word, one mark and one tone, used nowhere else."""

import math
from typing import NamedTuple

from unlearning_audit.stats import decide


class State(NamedTuple):
    """A verdict as people read it; ``tone`` names its colour in the page's style."""

    word: str
    mark: str
    tone: str


LIKE = State("like retraining", "✓", "like")
TRACES = State("traces remain", "●", "traces")
OVER = State("over-unlearned", "▲", "over")
DAMAGED = State("model damaged", "✖", "damaged")
UNKNOWN = State("cannot tell", "–", "unknown")

#: The states from the best to the worst.
STATES = (LIKE, TRACES, OVER, DAMAGED, UNKNOWN)

#: Code of a verdict → its state.
STATE_OF = {
    decide.EQUIVALENT: LIKE,
    decide.DISTINGUISHABLE: TRACES,
    decide.OVER_UNLEARNED: OVER,
    decide.BROKEN: DAMAGED,
}

#: What each state means.
MEANINGS = {
    LIKE: "every deciding distance from retraining lies within the margin",
    TRACES: "forgotten samples can still be distinguished from samples never seen",
    OVER: "forgotten samples look less familiar than samples never seen",
    DAMAGED: "it lost accuracy on what it was to keep",
    UNKNOWN: "none of these could be shown; the reason stands beside it",
}

#: Code of a verdict without a state of its own → why nothing can be told.
REASONS = {
    decide.INCONCLUSIVE: "too few models",
    decide.NOTHING_TO_FIND: "doing nothing leaves no trace here",
    decide.NO_YARDSTICK: "too few retrained models to compare with",
    decide.YARDSTICKS_DISAGREE: "two retrainings differ",
    decide.FAILED: "the method failed",
}


#: Stands in the place of `REASONS` where models can be compared, and nothing that was read of them decides.
UNDECIDED = "nothing that was read of them decides"

#: What retraining is called where nothing is left to compare it with.
REFERENCE = "the reference"

#: Why a method is damaged of which there is no number.
DIVERGED = "its models diverged"


def state(verdict: str) -> State:
    """The state of a verdict's code."""
    return STATE_OF.get(verdict, UNKNOWN)


def joined(parts: list[str], last: str = "and") -> str:
    """ "a, b and c".

    >>> joined(["a", "b", "c"], "or")
    'a, b or c'
    """
    return f" {last} ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


#: The least Kendall's τ between two rankings that hold.
HOLDS = 0.6


def rankings(taus: list[float]) -> str:
    """Whether methods are ranked alike, by Kendall's τ between every two rankings; "" if there is none."""
    taus = [tau for tau in taus if not math.isnan(tau)]
    if not taus:
        return ""
    order = "The ranking of methods holds" if min(taus) >= HOLDS else "The ranking of methods changes"
    low, high = (plain(tau, 2) for tau in (min(taus), max(taus)))
    return f"{order} (τ {low})" if low == high else f"{order} (τ {low} to {high})"


def ordinal(number: int) -> str:
    """ "1st", "2nd", "11th"."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def plain(number: float, digits: int) -> str:
    """ "0.35", "−0.20"."""
    return signed(number, digits).removeprefix("+")


def signed(number: float, digits: int = 1) -> str:
    """ "+3.2", "−1.3", "0.0"."""
    text = f"{abs(number):.{digits}f}"
    return text if not float(text) else f"{'+' if number > 0 else '−'}{text}"
