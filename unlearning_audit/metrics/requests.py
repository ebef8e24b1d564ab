"""Sequences of requests: each request is evaluated by itself, after every one of them. Does forgetting last?

The field ``request`` of a row numbers the request that it is about. The setting ``request`` that a scenario varies
counts the requests that were made.
Requests yet to come are evaluated as well. Models still know their samples, so the advantage shows how much there is to
find.
"""

from dataclasses import replace

from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import Effect, Quantity, Row, Settings, accuracy, one_run, rates, row, splits, swap
from unlearning_audit.randomness.keyed import generator

#: The metric does not need retrained models, which have rows of their own.
ALONE = True

NEEDS = ("requests",)
DEFAULT = "requests"

QUANTITIES = (
    *accuracy.QUANTITIES, *one_run.QUANTITIES, *swap.QUANTITIES,
    Quantity("advantage_request_*", "advantage on one request"),
    Quantity("right_guesses_request_*", "right guesses on one request"),
)  # fmt: skip

#: The rows that are kept of each request.
METRICS = ("q", "advantage", "right_guesses", "one_run_p", "epsilon_request")


class Options(Settings):
    """``decides``: whether a verdict rests on each single request that was made, besides all requests together."""

    decides: bool = False


def effects(evaluation: Evaluation, options: Options) -> dict[str, Effect]:
    """Return "advantage_request_i" → the advantage of attacks on request i, or for canaries "right_guesses_request_i" →
    the share of right guesses, for each request i that was made and each target model. {} unless the option ``decides``
    is set. A request on which only the random control was run has no advantage.

    A request that was forgotten first may come back with later ones, which a number over all requests together hides.
    """
    if not options.decides:
        return {}
    member, phi = evaluation.membership[evaluation.target], evaluation.audited.phi()
    of_all: dict[str, Effect] = {}
    for request in range(1, member.request_count + 1):
        one_request = member.of_request(request)  # the memberships, as if it were the only request
        if member.pair is None:
            of_request = swap.advantages(evaluation.scores, phi, one_request)
            of_request.pop("tail_advantage", None)  # `QUANTITIES` declares the advantage alone for single requests
        else:
            of_request = one_run.guess_effects(evaluation, one_request)
        of_all |= {f"{name}_request_{request}": effect for name, effect in of_request.items()}
    return of_all


def rows(evaluation: Evaluation) -> list[Row]:
    """Return the rows of every request of the sequence, with its number in the field ``request``: "accuracy" of the
    target models on the samples of the request that they were trained on (role=forget) and on its other samples
    (role=heldout), and how well attacks tell the two kinds apart.

    The rows of attacks are "q" and "advantage". If samples are canaries, rows of the one-run audit replace them:
    "right_guesses", "one_run_p" and "epsilon_request". A request of canaries that is not made yet has accuracies alone.
    Rows of single pairs or models are left out. Intervals cover models and samples.
    """
    member = evaluation.membership[evaluation.target]
    assert member.request is not None  # NEEDS asks for requests
    predicted, lines = evaluation.outputs(evaluation.unlearned_files).predicted(evaluation.target), []
    right = predicted == evaluation.labels_of(evaluation.target)
    for request in range(1, int(member.request.max()) + 1):
        one_request = member.of_request(request)  # the memberships, as if it were the only request
        of_request: list[Row] = []
        if member.pair is None:
            of_request = swap.rows_of_scores(evaluation, one_request, generator(evaluation.seed, "swap"))
        elif request <= member.request_count:  # the samples are canaries, and the request was made
            of_request = one_run.audit(evaluation, one_request, delta=0.0)
        # A row with a place is of a single pair or model.
        of_request = [line for line in of_request if line.metric in METRICS and not line.place]
        for role in ("forget", "heldout"):
            accuracy_of_role = rates.rate(hit=right, rows=getattr(one_request, role), **splits(one_request))
            of_request.append(row(metric="accuracy", role=role, estimate=accuracy_of_role))
        lines += [replace(line, request=request) for line in of_request]
    return lines
