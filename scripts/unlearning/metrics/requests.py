"""A sequence of requests: each of them read by itself, after every one of them. Does forgetting last?

The setting "of=i" names the request that a row speaks of, that of the scenario the one that was made last. Requests yet
to come are read as well: models still know them, so that their advantage says how much there is to find.
"""

from unlearning.adversary.case import Case
from unlearning.artifacts.arrays import Membership
from unlearning.metrics import _coins, _one_run, row, swap
from unlearning.metrics.accuracy import QUANTITIES as OF_ACCURACY
from unlearning.metrics.one_run import QUANTITIES as OF_ONE_RUN
from unlearning.metrics.swap import QUANTITIES as OF_SWAP
from unlearning.plugins.settings import Settings
from unlearning.stats import rates

#: It compares with no retrained models; these are a line of their own.
ALONE = True

QUANTITIES = (*OF_ACCURACY, *OF_ONE_RUN, *OF_SWAP)

#: What is kept of the metrics that are read of each request.
KEPT = ("q", "advantage", "right_guesses", "one_run_p", "epsilon_request")


class Options(Settings):
    """Nothing to choose."""


def rows(case: Case, settings: dict) -> list[dict]:
    """For each request: Q and advantages, or the one-run audit of its canaries if it was made; accuracy on what models
    were trained on of it (role=forget) and on what they were not (role=heldout)."""
    member = case.membership[case.target]
    found = []
    for request in range(1, int(member.request.max()) + 1):
        part = member.part(request)
        if member.pair is None:
            own = swap.read(case, part, settings)
        else:
            own = _audit(case, part, settings) if request <= member.made else []
        own = [one for one in own if one["metric"] in KEPT and not one["setting"]]
        own = [*own, *_accuracies(case, part)]
        found += [{**one, "setting": ";".join(filter(None, (f"of={request}", one["setting"])))} for one in own]
    return found


def _audit(case: Case, part: Membership, settings: dict) -> list[dict]:
    return _one_run.evaluate(
        scores=_one_run.scores_of(case),
        tosses=_coins.tossed(part, settings["seed"]),
        paper=settings["paper_set"],
        delta=0.0,
        seed=settings["seed"],
    )


def _accuracies(case: Case, part: Membership) -> list[dict]:
    guess = case.answers(case.unlearned_files).predicted(case.target)
    right = guess == rates.per_model(case.labels_of(case.target), guess.shape, "y")
    return [
        row(
            metric="accuracy",
            setting=f"role={name}",
            estimate=rates.rate(hit=right, rows=getattr(part, name), split=part.split, block=part.block),
        )
        for name in ("forget", "heldout")
    ]
