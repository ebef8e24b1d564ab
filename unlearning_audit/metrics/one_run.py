"""One-run audit: in each pair of samples, a fair coin chose the one that a model was trained on and then forgot.

The pairs are canaries that the protocol drew. In the SWAP test, forgotten and never-seen samples are paired at random:
these sets are uniform and of one size, so that fair coins decide such pairs as well.
"""

from pydantic import Field

from unlearning_audit.evaluation.effects import OF_SAMPLES, DecisionRule, Effect
from unlearning_audit.metrics import Evaluation, Membership, Row, Settings, _one_run, or_nothing, or_reason, swap
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity

#: The metric does not need retrained models.
ALONE = True

NEEDS = ("coins",)
DEFAULT = ("canaries", "imported")

#: Ways to guess. A verdict rests on the first two: the best attack in both directions, or the confidence in both
#: directions if there are no others.
_ATTACKS = ("extended", "phi_two_sided", "phi", "phi_likelihood_ratio", "adaptive", "extended_half")
QUANTITIES = (
    Quantity(
        "right_guesses", primary=True, ideal=0.5, attacks=_ATTACKS,
        reading="Share of pairs of a forgotten and a never seen sample of which the attack names the forgotten one: "
        "0.5 = chance.",
        columns=(Column(10, "right guesses", besides=True),),
        comparisons=(Comparison("one-run guesses", 11, attack="phi", ideal=0.5, two_sided=True),),
    ),
    Quantity(
        "one_run_p", "p of one run", "higher", logarithmic=True, attacks=_ATTACKS,
        reading="Chance of so many right guesses if nothing were left: below 0.05, something is.",
        columns=(Column(10, "p of one run", interval=False, besides=True),),
    ),
    Quantity(
        "epsilon_request", "ε of the request", "lower", ideal=0.0, attacks=_ATTACKS,
        reading="Lower bound, with confidence 0.95, on the ε of (ε, δ)-unlearning of all that was to be forgotten, "
        "together: 0 = nothing shown.",
    ),
    Quantity(
        "epsilon_record", "ε of a sample", "lower", ideal=0.0, attacks=_ATTACKS,
        reading="Lower bound, with confidence 0.95, on the ε of differential privacy where a record is added "
        "or removed, as the budgets of DP-SGD are: 0 = nothing shown.",
    ),
    Quantity(
        "epsilon_replace", "ε of a replaced sample", "lower", ideal=0.0, attacks=_ATTACKS,
        reading="Lower bound, with confidence 0.95, on the ε of differential privacy where one record of a "
        "pair replaces the other: 0 = nothing shown.",
    ),
    Quantity(
        "detectable_share", "least share found", "lower", attacks=_ATTACKS,
        reading="Share of right guesses that this many pairs find in four audits of five: a smaller trace "
        "may be missed.",
    ),
    Quantity(
        "one_run_e", "e of one run", "lower", logarithmic=True, attacks=_ATTACKS,
        reading="Evidence that something is left; e-values of independent audits may be multiplied, and 20 "
        "is as strong as a p-value of 0.05, however often one looked.",
    ),
)  # fmt: skip


class Options(Settings):
    """``delta``: the δ of (ε, δ)-unlearning in all lower bounds on ε."""

    delta: float = Field(0.0, ge=0, lt=1)


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return how often the target models' forgotten samples are guessed right, with p-values and lower bounds on ε.

    Where no coin decided what is forgotten, there is nothing to guess. Then imported models get one row with this
    reason, and ValueError is raised for models that were trained here.
    """

    def audited() -> list[Row]:
        """Return the rows of the audit of the target models of ``evaluation``. Raises ValueError where no coin decided
        which of two samples is forgotten."""
        # Models without canaries have coins if they are swapped pairs; ``why_unpaired`` says why imported ones are not.
        if evaluation.membership.pair is None and evaluation.why_unpaired:
            raise ValueError("there is no pair.npy that says which canaries a coin chose from")
        return audit(evaluation, evaluation.membership[evaluation.target], options.delta)

    return or_reason(evaluation, audited, metric="one_run_p", attack="phi")


#: Coins are fair, so theory gives the value of retraining.
DECIDES = {
    "right_guesses": DecisionRule(1, "auc", ideal=0.5, chance=OF_SAMPLES, lowest=0.0, highest=1.0),
    "tail_advantage": swap.DECIDES["tail_advantage"],
}


def effects(evaluation: Evaluation) -> dict[str, Effect]:
    """Return numbers of the target models: "right_guesses" → the share of right guesses on the canaries, with exact
    p-values, and "tail_advantage" → by each attack, the share of forgotten samples above the 99th percentile of
    held-out scores, minus 1 %; it is left out if no attack was run.

    {} for models without canaries, whose verdicts rest on other metrics, and for imported models with scores that are
    NaN.
    """
    if evaluation.membership.pair is None:
        return {}
    member = evaluation.membership[evaluation.target]

    def of_canaries() -> dict[str, Effect]:
        """Return the effects of the target models, whose memberships are ``member``. Raises ValueError for scores that
        are NaN for some sample of a pair."""
        of_swap = swap.advantages(evaluation.scores, evaluation.audited.phi(), member)
        return guess_effects(evaluation, member) | {name: effect for name, effect in of_swap.items() if name in DECIDES}

    return or_nothing(evaluation, of_canaries)


def guess_effects(evaluation: Evaluation, member: Membership) -> dict[str, Effect]:
    """Return "right_guesses" → the share of right guesses on the canaries of the target models, for verdicts.
    ``member``: the memberships of these models. Raises ValueError for scores that are NaN for some sample of a pair."""
    tosses, rule = _one_run.tossed(member, evaluation.seed), DECIDES["right_guesses"]
    return {"right_guesses": _one_run.effect(scores=_one_run.scores_of(evaluation), tosses=tosses, rule=rule)}


def audit(evaluation: Evaluation, member: Membership, delta: float) -> list[Row]:
    """Return the rows of the one-run audit of the target models, whose memberships are ``member``. ``delta``: the δ of
    the lower bounds on ε. Raises ValueError for a model without canaries that forgot more or fewer samples than it
    never saw, and for scores that are NaN for some sample of a pair."""
    scores, tosses = _one_run.scores_of(evaluation), _one_run.tossed(member, evaluation.seed)
    return _one_run.evaluate(
        scores=scores, tosses=tosses, adaptive=evaluation.sets["adaptive"], delta=delta, seed=evaluation.seed
    )
