"""Define the phrases of verdicts, checks, the answer and tables, each once: five states with a word, mark and tone
each."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from unlearning_audit.stats import decide


class State(NamedTuple):
    """A verdict as readers see it; ``tone`` names its colour in the page's style."""

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
STATE_OF = {decide.EQUIVALENT: LIKE, decide.DISTINGUISHABLE: TRACES, decide.OVER_UNLEARNED: OVER,
            decide.BROKEN: DAMAGED}  # fmt: skip

#: What each state means.
MEANINGS = {
    LIKE: "every deciding distance from retraining lies within the margin",
    TRACES: "forgotten samples can still be distinguished from samples never seen",
    OVER: "forgotten samples look less familiar than samples never seen",
    DAMAGED: "the model lost accuracy on what it was to keep",
    UNKNOWN: "none of these could be shown; the reason stands beside it",
}

#: Code of a verdict without a state of its own → why nothing can be concluded.
REASONS = {
    decide.INCONCLUSIVE: "too few models",
    decide.NOTHING_TO_FIND: "doing nothing leaves no trace here",
    decide.NO_YARDSTICK: "too few retrained models to compare with",
    decide.YARDSTICKS_DISAGREE: "two retrainings differ",
    decide.FAILED: "the method failed",
}


#: Replaces `REASONS` if models can be compared, but none of their readings decides.
UNDECIDED = "none of their numbers decides"

#: The verdict's word for retraining if there is no second retraining.
REFERENCE = "the reference"

#: Why a method without numbers is damaged.
DIVERGED = "its models diverged"


def state(verdict: str) -> State:
    """Return the state of a verdict's code; `UNKNOWN` for a code that has no state of its own."""
    return STATE_OF.get(verdict, UNKNOWN)


def joined(parts: list[str], last: str = "and") -> str:
    """Return the parts as an enumeration, with the word ``last`` before the last part.

    >>> joined(["a", "b", "c"], "or")
    'a, b or c'
    """
    # The first text is empty for a single part; a slice lets the list be empty.
    return f" {last} ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


#: The smallest Kendall's τ at which two rankings agree.
HOLDS = 0.6


def rankings(taus: list[float]) -> str:
    """Return a sentence that says whether several rankings of methods are alike, with the range of Kendall's τ between
    them; "" without any τ.

    Rankings are alike if all τ are at least `HOLDS`.

    Parameters
    ----------
    taus
        Kendall's τ between every two rankings; NaN is ignored.
    """
    taus = [tau for tau in taus if not math.isnan(tau)]
    if not taus:
        return ""
    order = "The ranking of methods holds" if min(taus) >= HOLDS else "The ranking of methods changes"
    low, high = (plain(tau, digits=2) for tau in (min(taus), max(taus)))
    return f"{order} (τ {low})" if low == high else f"{order} (τ {low} to {high})"


def ordinal(number: int) -> str:
    """Return the ordinal of a number, such as "1st", "2nd" or "11th"."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def plain(number: float, digits: int) -> str:
    """Return a number with a true minus sign: "0.35", "−0.20"."""
    return signed(number, digits).removeprefix("+")


def signed(number: float, digits: int = 1) -> str:
    """Return a number with its sign: "+3.2", "−1.3", "0.0"."""
    text = f"{abs(number):.{digits}f}"
    # A number that is rounded to 0 has no sign.
    return text if not float(text) else f"{'+' if number > 0 else '−'}{text}"


# ---------------------------------------------------------------- numbers and what they are of

#: Metric of utility → its name as readers see it.
UTILITY = {
    "accuracy_retain": "retain accuracy", "accuracy_test": "test accuracy", "accuracy_heldout": "held-out accuracy",
    "nll_retain": "retain perplexity", "nll_test": "test perplexity", "nll_heldout": "held-out perplexity",
    "model_utility": "model utility",
}  # fmt: skip
#: What a distance is measured from if there is a single retrained model.
LONE = "this retrained model"
#: Clause about a scenario that was extended after its verdicts could be seen.
EXTENDED = (
    "extended from {sizes} to {to} {unit} after its verdicts could be seen, without planned looks, so more than "
    "5 % of its verdicts may be wrong"
)
#: Remark on a method that changed nothing.
UNCHANGED = "the logits after unlearning are identical to those before: the method changed nothing"
#: Text in place of numbers if a method raised an error, and if its models diverged.
FAILED = "failed"
LOST = (FAILED, DAMAGED.word)

# ---------------------------------------------------------------- the answer, on a terminal and on the page

QUESTION = "Did it forget? (0 % = did nothing, 100 % = like retraining; 95 % intervals)"
LEGEND = ", ".join(f"{state.mark} {state.word}" for state in STATES)
NEXT = "Next: audit new NAME.py"

#: Column of the table of checks → the check in words.
CHECKS = {"retrain is perfect": "retraining is like retraining", "two retrainings agree": "two retrainings agree",
          "none is found out": "doing nothing is detected"}  # fmt: skip
#: Whether the checks of a scenario passed: the sign if they did, and words.
OK, PASSED, UNCHECKED, UNSURE = "✓", "passed", "not checked", "too few models to confirm"
NO_CONTROL = "retraining itself is not checked: this takes a second group of retrained models (retrain_control)"


def best(like: list[str], nearest: list[str], unknown: bool) -> str:
    """Return a sentence that names the methods like retraining or, if there are none, the methods that may be nearest
    to retraining. A single nearest method is certain to be the nearest; several are not.

    Parameters
    ----------
    like, nearest
        Names of the methods like retraining, and of the methods for which no other is proven to be nearer.
    unknown
        Whether the verdict on some methods is open.
    """
    if like:
        return f"Like retraining: {joined(like)}."
    # A method whose verdict is open may still be like retraining.
    first = "No method is shown to be like retraining." if unknown else "No method is like retraining."
    certainty = "at 95 % confidence" if len(nearest) == 1 else "which is not certain"
    return f"{first} The nearest is {joined(nearest, 'or')}, {certainty}." if nearest else first


def checked(checks: Iterable[tuple[str, str, str]]) -> str:
    """Return sentences that say which checks passed and which are open; if a check failed, only the sentence of the
    first failed check. ``checks``: (name, tone, sentence), with the tone "good" (passed), "bad" (failed) or ""
    (open)."""
    failed = next((sentence for _, tone, sentence in checks if tone == "bad"), "")
    if failed:
        return f"A check failed: {failed}."
    passed = ", ".join(name for name, tone, _ in checks if tone == "good")
    unsure = ", ".join(name for name, tone, _ in checks if tone == "")
    sentences = (f"Checks passed: {passed}." if passed else "", f"Not shown: {unsure}." if unsure else "")
    return " ".join(filter(None, sentences))


# ---------------------------------------------------------------- how tables are read

#: What two verdicts mean, and the columns of their table.
RULES = (
    "Traces remain: the distance from retraining is not 0, at 5 % over all methods and metrics of {family}. Like "
    "retraining: every deciding distance, and the accuracies, lie within the margin."
)
VERDICTS = RULES + (
    " Removed: the share of the traces of doing nothing that the method removes. By: the metric or attack that finds "
    "most; in parentheses if it finds nothing. Accuracy: points above retraining, or perplexity as its multiple."
)
RANKS = "The ranks that each method may have, at 95 % for all methods at once; 1 = closest to retraining."
RESOLUTION = (
    "Half-width of the interval of a distance from retraining, and the least distance that is found with power "
    "0.8: for this study, and as its variances predict for larger studies."
)
#: Family of tests whose error rate is 5 % → the words for it.
FAMILIES = {"scenario": "a scenario", "study": "the whole study"}
META = (
    "Grounding: retraining minus perfect unlearning; its interval should contain 0. Separation: retrain minus none "
    "in standard errors; below 2 the metric cannot tell doing nothing from retraining. Power: share of the "
    "pairs of methods that differ significantly. Agreement: Kendall's τ between the rankings of methods for "
    "other seeds or sizes; 1 = the same ranking. Monotonicity: Spearman's ρ with the privacy budget; −1 = "
    "falls as theory says. Models: how many must be trained, unlearned and retrained to judge one method."
)
RECORDS = (
    "Forgotten records that are still recognised{}. On average, at most the share of a list is false that the study "
    "allows (option rate of the metric records). Labels: those of the listed records, the most frequent first."
)
STANDINGS = (
    "Mean distance from retraining over the scenarios, in margins (1 is the margin of equivalence), with 95 % "
    "intervals; tuned methods count at their tuned setting. Ranks: those that each may have among all methods "
    "of the study, published settings and references included, at 95 % for all at once; 1 = closest. Methods "
    "that a scenario lacks are left out. Of scenarios with the same data, only the first counts."
)
RANKINGS = (
    "Kendall's τ between the rankings of methods in two scenarios, without none and retraining: 1 is the same order, 0 "
    "no agreement, −1 the reverse order. Its interval covers the choice of methods, not the error of their numbers."
)
TELLING = (
    "Half-width of the interval of a distance from retraining, and the least distance that will be found with power "
    "0.8. Equivalence can be shown only if the half-width is below the margin. Both are predicted from the largest "
    "finished comparison with the same data, model, recipe and protocol. Time: that of the compared models."
)
TUNING = (
    "Distances from retraining in margins (1 is the margin of equivalence) by the deciding metric with the largest "
    "distance. Tried: by the objective of tuning, on the models that chose the setting, where the best of many "
    "looks better than it is. Tuned and published: on the audited models, which tuning never saw. Loses: the "
    "accuracy that the tuned and the published setting lose against retraining, in margins; tuning rejects "
    "settings that lose more than 1. Flat: the share of settings that cannot be distinguished from the best."
)
#: Clause that says how often a record or a person counts.
PER_SPLIT = ", each counted in every split that forgets it"
HEADLINE = "Q: 1 = nothing left to find, 0 = all of it; compare with retrain. Brackets: 95 % interval."
HOLDS_PRINTED = "∈: our 95 % interval holds the printed number; ∉: it does not"
UNPRINTED = "the paper prints no number that belongs here"
UNSIGNED = "printed without its sign"
TELLING_TITLE = "What the study will be able to distinguish"
