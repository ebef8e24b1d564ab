"""Campaigns of tuning with known truth, through what attacks say, advantages and the decision as it is used.

    uv run python tests/benchmarks/tuning_truth.py --campaigns 1000 > resources/measured/leaderboard/truth.csv

Worlds: ``none``, every setting does nothing and its models only differ more or less from each other; ``margin``, the
same at the margin of equivalence, where 5 % may be called equivalent; ``needle``, a setting of sixteen that is
retraining, and all others as far away as their rate is from it. ``same``: the winner is judged on the pairs that chose
it; ``fresh``: on others, as the stage does.
"""

import argparse
import csv
import math
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/helpers")]

from unlearning_audit.comparisons import distances, tuning  # noqa: E402
from unlearning_audit.comparisons.tuning import Trial  # noqa: E402
from unlearning_audit.metrics import swap  # noqa: E402
from unlearning_audit.randomness.keyed import generator, seed_of  # noqa: E402
from unlearning_audit.stats import decide  # noqa: E402

from comparison_cases import MARGINS, NEVER, membership  # noqa: E402

SPACE = {"lr": {"low": 1e-3, "high": 1.0, "log": True}}
STUDY = {"lr": 1.0}
PAIRS, AUDITED, MODELS = 2, 4, 2
#: World → samples of the game, and how many of them are forgotten: at the margin an audit needs many to decide.
SIZES = {"none": (300, 60), "margin": (1500, 500), "needle": (300, 60), "needle, 500 to forget": (1500, 500)}
MARGIN = MARGINS["advantage"]


def position(options):
    """Where a rate lies on its logarithmic axis, from 0 to 1."""
    return 1 + math.log10(options["lr"]) / 3


#: World → the advantage that a setting truly leaves, and by how much its models differ.
WORLDS = {
    "none": (lambda o: 0.25, lambda o: 0.1 * position(o)),
    "margin": (lambda o: MARGIN, lambda o: 0.02 * position(o)),
    **dict.fromkeys(("needle", "needle, 500 to forget"), (lambda o: 0.4 * abs(position(o) - 1 / 3), lambda o: 0.02)),
}
FIELDS = (
    "world",
    "campaigns",
    "equivalent_same",
    "equivalent_fresh",
    "bias_same",
    "bias_fresh",
    "share_within_a_margin",
)


def read(rng, member, advantage, spread):
    """The distance of models whose advantages are ``advantage`` on average, as a trial is judged."""
    models, samples = member.forget.shape
    leak = np.clip(advantage + spread * rng.standard_normal((models, 1)), 0, 1 - NEVER)
    decision = rng.random((models, samples)) < np.where(member.forget, NEVER + leak, NEVER)
    phi = rng.standard_normal((models, samples))
    advantages = swap.advantages({("attack", "trained"): (decision * 1.0, decision)}, phi, member)["advantage"]
    side = distances.against("trial", "advantage", {"trial": {"advantage": advantages}})
    return distances.read(side, "advantage", margins=MARGINS, rng=rng, draws=100)


def campaign(world, seed):
    """(chosen options, the winner's distance where it was chosen, the same on fresh pairs), of one study."""
    advantage, spread = WORLDS[world]
    samples, forgotten = SIZES[world]
    designs = tuning.settings(STUDY, SPACE, 16, seed_of(seed, "design"))
    pairs = membership(generator(seed, "pairs"), pairs=PAIRS, models=MODELS, samples=samples, k=forgotten)
    numbers, trials, reads = list(range(len(designs))), [], {}
    for count, of in tuning.rounds(len(designs), PAIRS):
        numbers = tuning.survivors(trials, count) if trials else numbers
        models = np.flatnonzero(np.isin(pairs.block, np.unique(pairs.block)[:of]))
        trials = []
        for number in numbers:
            options = designs[number]
            rng = generator(seed, "trial", number)
            reads[number] = read(rng, pairs[models], advantage(options), spread(options))
            size = reads[number].numbers
            error = float(size.errors[reads[number].place])
            trials.append(Trial(number, options, of, abs(float(size.value[0])) / MARGIN, error / MARGIN, 0.0))
    winner = tuning.choice(trials)
    fresh = membership(generator(seed, "fresh"), pairs=AUDITED, models=MODELS, samples=samples, k=forgotten)
    audited = read(generator(seed, "audit"), fresh, advantage(winner.options), spread(winner.options))
    return winner.options, reads[winner.number], audited


def equivalent(judged):
    """Whether two one-sided tests show the distance within its margin."""
    return bool(decide.within(inner=judged.distance.inner, margin=judged.distance.margin))


def row(world, campaigns):
    """What so many campaigns of one world come to."""
    advantage = WORLDS[world][0]
    same, fresh, truth, counts = [], [], [], {"same": 0, "fresh": 0}
    for seed in range(campaigns):
        options, winner, audited = campaign(world, seed)
        same.append(float(winner.numbers.value[0]))
        fresh.append(float(audited.numbers.value[0]))
        truth.append(advantage(options))
        counts["same"] += equivalent(winner)
        counts["fresh"] += equivalent(audited)
    bias = {name: float(np.mean(np.array(values) - truth)) / MARGIN for name, values in (("s", same), ("f", fresh))}
    return {
        "world": world, "campaigns": campaigns, "equivalent_same": counts["same"], "equivalent_fresh": counts["fresh"],
        "bias_same": round(bias["s"], 3), "bias_fresh": round(bias["f"], 3),
        "share_within_a_margin": round(float(np.mean(np.array(truth) <= MARGIN)), 4),
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS), choices=list(WORLDS))
    command_line = parser.parse_args()
    writer = csv.DictWriter(sys.stdout, FIELDS, lineterminator="\n")
    writer.writeheader()
    for name in command_line.worlds:
        writer.writerow(row(name, command_line.campaigns))
        sys.stdout.flush()
