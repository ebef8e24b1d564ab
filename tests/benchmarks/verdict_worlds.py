"""How often verdicts are wrong in worlds that are not ours: logits of known truth through attacks and decision.

Run: OMP_NUM_THREADS=1 python tests/benchmarks/verdict_worlds.py [--audits N] [--only WORLD] [--to FOLDER]

Every audit is one of imported logits, scored and judged by the same functions as a study's; only files are left out.
Truth is known because the audited models are drawn exactly as the retrained ones are (*distinguishable* is
wrong), or keep what they were to forget (*equivalent* is wrong). What is done stays done: the next call goes on with
the seeds that are missing, a few of each world in turn, so remove the tables after a change of what they measure.
Forecasts and shares closed, which no verdict rests on, are left out.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from unlearning_audit.attacks import confidence, correctness, entropy, modified_entropy, population  # noqa: E402
from unlearning_audit.comparisons import distances, planning, verdicts  # noqa: E402
from unlearning_audit.evaluation.arrays import Membership  # noqa: E402
from unlearning_audit.evaluation.cohort import Group  # noqa: E402
from unlearning_audit.evaluation.evaluation import Evaluation  # noqa: E402
from unlearning_audit.evaluation.shadow import Shadow  # noqa: E402
from unlearning_audit.study.schema import Margins  # noqa: E402

from attack_cases import run  # noqa: E402
from common import command_line, markdown  # noqa: E402
from folder_cases import parts as effects  # noqa: E402
from held_answers import Held  # noqa: E402
from swap_games import layout  # noqa: E402

MARGINS = Margins().model_dump()
SETTINGS = {"metrics": {"competition": {"groups": 8}}}
SAMPLES, CLASSES = 240, 4
SIZE = ("world", "audited", "retrained", "audits")
#: What is counted in a cell, and under which head readers see it.
WORDS = ("distinguishable", "equivalent", "nothing_to_find", "no_yardstick", "none_found")
HEADS = {
    "called distinguishable": "distinguishable", "doing nothing found": "none_found",
    "called equivalent": "equivalent", "nothing to find": "nothing_to_find",
}  # fmt: skip
CHUNK = 25  # audits of a world between two writings
#: World → how its models answer; sizes are (audited, retrained).
WORLDS = {
    "class, shared difficulties": {"harder": 1.0, "shared": 1.0},
    "class, heavy tails": {"harder": 1.0, "shared": 0.5, "tails": 2.5},
    "class, models of unequal skill": {"harder": 0.5, "skill": 0.7},
    "coins, heavy tails": {"harder": 0.0, "tails": 2.0, "design": "random"},
    "coins, 10 to forget": {"harder": 0.0, "forgotten": 10, "design": "random"},
    "coins, ties": {"harder": 0.0, "rounded": True, "design": "random"},
    "class, 3 % remembered": {"harder": 0.5, "shared": 1.0, "remembered": 0.03},
    "class, nothing remembered": {"harder": 0.5, "shared": 1.0, "remembered": 0.0},
    "class, unequal classes": {"harder": 0.7, "shared": 0.5, "shares": (0.55, 0.25, 0.15, 0.05)},
    "class, few samples carry all": {"harder": 0.5, "shared": 1.0, "outlying": 0.05},
    "class, models know it unequally well": {"harder": 0.5, "shared": 0.5, "varying": 0.3},
}
FEW = (1, 3)
#: Sizes of two worlds; in the others a single audited model stands against three.
SIZES = (FEW, (1, 1), (3, 1), (1, 10), (3, 3), (8, 20))
SIZES_OF = {"class, shared difficulties": SIZES, "class, models know it unequally well": SIZES}
#: Worlds of swapped pairs, with attacks that learn from shadow models, and attacks beside them that toss coins.
PAIRED = {
    "pairs, one model a split": {"pairs": 2, "models": 1, "forgotten": 40},
    "pairs, 30 to forget, heavy tails": {"pairs": 4, "models": 2, "forgotten": 30, "tails": 2.5},
    "pairs, one attack": {"pairs": 4, "models": 2, "forgotten": 100, "attacks": 1, "margin": 0.15},
    "pairs, 5 attacks and 20 that see nothing": {
        "pairs": 4, "models": 2, "forgotten": 100, "coins": 20, "margin": 0.15
    },
    "pairs, the method keeps 3 %": {"pairs": 4, "models": 2, "forgotten": 100, "margin": 0.15, "kept": 0.03},
}  # fmt: skip
CELLS = [(name, *size) for name in WORLDS for size in SIZES_OF.get(name, (FEW,))]
CELLS += [(name, *[2 * how["pairs"] * how["models"]] * 2) for name, how in PAIRED.items()]
ATTACKS = (confidence, correctness, entropy, modified_entropy, population)


def answers(rng, models: int, y, *, easy, skill=0.0, tails=0.0, shift=0.0, varying=0.0, rounded=False) -> np.ndarray:
    """Logits float32 [models, samples, classes]: the true class leads by how ``easy`` a sample is, float64 [samples],
    by the model's own skill and by noise; forgotten samples that are remembered by ``shift`` [samples] more, and
    samples of which models know unequally much by ``varying`` [samples] times a number of the model's own."""
    shape = (models, len(y), CLASSES)
    noise = rng.standard_t(tails, shape) if tails else rng.standard_normal(shape)
    lead = easy + skill * rng.standard_normal((models, 1)) + shift
    if np.any(varying):
        lead = lead + rng.standard_normal((models, 1)) * varying
    logits = noise
    np.put_along_axis(
        logits, np.broadcast_to(y[:, None], (models, len(y), 1)), (lead + noise[..., 0])[..., None], axis=-1
    )
    return (np.round(logits) if rounded else logits).astype(np.float32)


def world(rng, audited: int, retrained: int, *, harder=0.0, shared=0.0, remembered=1.0, forgotten=0, design="given",
          shares=None, outlying=0.0, varying=0.0, **how) -> dict[str, Evaluation]:  # fmt: skip
    """One audit: the models of ``mine`` are drawn as those of ``retrain`` are, ``none`` remembers a share of the forget
    set. ``shares``: of classes; ``outlying``: of samples that are twenty times as hard or easy as others; ``varying``:
    standard deviation over models of how well they know what is to be forgotten."""
    y, count = rng.choice(CLASSES, SAMPLES, p=shares), forgotten or 60
    forget = np.zeros(SAMPLES, bool)
    forget[rng.permutation(120)[:count]] = True
    heldout = (np.arange(SAMPLES) < 120) & ~forget
    spread = shared * np.where(rng.random(SAMPLES) < outlying, 20.0, 1.0)
    easy = 1.0 + spread * rng.standard_normal(SAMPLES) - harder * forget + 2.0 * (~forget & ~heldout)
    memory = np.zeros(SAMPLES)
    memory[rng.permutation(np.flatnonzero(forget))[: round(remembered * count)]] = 6.0
    cases = {}
    for name, models, shift in (
        ("mine", audited, 0.0), ("none", audited, memory), ("retrain", retrained, 0.0),
        ("retrain_control", retrained, 0.0),
    ):  # fmt: skip
        logits = answers(rng, models, y, easy=easy, shift=shift, varying=varying * forget, **how)
        cases[name] = evaluation(logits, y, forget, heldout, design)
    return with_peers(cases)


def with_peers(cases: dict[str, Evaluation]) -> dict[str, Evaluation]:
    """The same cases, each with the retrained population that it is compared with."""
    for name, entry in cases.items():
        peers = {"retrain": "retrain_control"} if name == "retrain" else {"retrain": "retrain"}
        entry.__dict__["others"] = {part: Group(cases[peer], ["own"]) for part, peer in peers.items()}
    return cases


def evaluation(logits: np.ndarray, y: np.ndarray, forget: np.ndarray, heldout: np.ndarray, design: str) -> Evaluation:
    """A population in memory."""
    models = len(logits)
    masks = [np.tile(mask, (models, 1)) for mask in (~heldout, forget, heldout)]
    nothing = np.zeros(models, np.int64)
    member = Membership(*masks, np.arange(models), nothing, nothing, nothing > 0)
    external = Evaluation("", [], [], ["own"], imported=True)
    external.__dict__.update(
        data=SimpleNamespace(y=y, part=np.zeros(len(y), np.uint8), y_clean=y, x=np.zeros((len(y), 0))), design=design,
        membership=member, unlearned=logits, scores={}, failed_attacks={}, selection=None, seed=0, published=None,
        outputs=lambda files: Held(logits),
    )  # fmt: skip
    return external


def paired_world(rng, *, pairs: int, models: int, forgotten: int, attacks=None, coins=0, kept=0.0, **how):
    """One audit of swapped pairs, of which ``none`` remembers what it was to forget and ``mine`` the share ``kept``;
    attacks learn their thresholds from shadow models that do."""
    size = 3 * forgotten
    game, shadow = (
        layout(rng, samples=size, pairs=count, k=forgotten, models=models_each)
        for count, models_each in ((pairs, models), (1, 2))
    )
    count, easy = len(game["split"]), 1.0 + 0.7 * rng.standard_normal(size)
    y = rng.integers(CLASSES, size=size)
    masks = ~game["heldout"], game["forget"], game["heldout"]
    member = Membership(*masks, np.arange(count), game["split"], game["block"], np.zeros(count, bool))
    learned = answers(rng, len(shadow["split"]), y, easy=easy, shift=3.0 * shadow["forget"], **how)
    shadow, cases = Shadow(learned, y, shadow["forget"], shadow["heldout"]), {}
    for name in ("mine", "none", "retrain", "retrain_control"):
        shift = 3.0 * game["forget"] * (name == "none")
        if name == "mine" and kept:
            memorable = rng.permutation(size)[: round(kept * size)]
            shift[:, memorable] = 6.0 * game["forget"][:, memorable]
        logits = answers(rng, count, y, easy=easy, shift=shift, **how)
        scores = {
            (module.__name__.rpartition(".")[2], "trained"): run(module, logits, y, shadow)
            for module in ATTACKS[:attacks]
        }
        tosses = rng.random((coins, *game["forget"].shape))
        scores |= {(f"coin{k}", "trained"): (toss, toss > 0.5) for k, toss in enumerate(tosses)}
        external = evaluation(logits, y, game["forget"][0], game["heldout"][0], "")
        external.__dict__.update(membership=member, scores=scores, updates={}, scores_file="scores")
        cases[name] = external
    return with_peers(cases)


def audit(name: str, audited: int, retrained: int, seed: int) -> dict[str, dict]:
    """Method → its line of verdicts of one simulated audit."""
    rng, margins = np.random.default_rng([seed, audited, retrained, sum(map(ord, name))]), MARGINS
    if name in PAIRED:
        how = dict(PAIRED[name])
        margins = MARGINS | dict.fromkeys(("advantage", "accuracy"), how.pop("margin", 0.05))
        cases = paired_world(rng, **how)
    else:
        cases = world(rng, audited, retrained, **WORLDS[name])
    parts = {method: effects(entry, SETTINGS) for method, entry in cases.items()}
    lines = verdicts.compare(parts, {}, margins=margins, draws=300, seed=seed).verdicts
    return {line["method"]: line for line in lines}


def read(path: Path) -> dict[tuple, dict]:
    """World and sizes → the counts that were made so far."""
    if not path.exists():
        return {}
    return {
        (line["world"], line["audited"], line["retrained"]):
            {"audits": line["audits"], **{word: round(line[word] * line["audits"]) for word in WORDS}}
        for line in pd.read_csv(path).to_dict("records")
    }  # fmt: skip


def write(path: Path, lines: dict[tuple, dict]) -> None:
    """Both tables: shares for programs, and the same for readers."""
    counted = [(*cell, *lines[cell].values()) for cell in CELLS if cell in lines]
    table = pd.DataFrame(counted, columns=[*SIZE, *WORDS])
    table[[*WORDS]] = (table[[*WORDS]].T / table["audits"]).T.round(4)
    table.to_csv(path, index=False)
    shown = table[[*SIZE, *HEADS.values()]].astype(object).to_numpy()
    markdown(path.with_suffix(".md"), [*SIZE, *HEADS], shown)


def counts(name: str, audited: int, retrained: int, seed: int) -> dict[str, int]:
    """What one audit adds to its cell."""
    rows = audit(name, audited, retrained, seed)
    verdict = rows["mine"]["verdict"]
    # A method that does nothing must not be equivalent where it keeps little.
    alike = rows["none"]["verdict"] if WORLDS.get(name, {}).get("remembered", 1.0) < 1 else verdict
    return {
        "distinguishable": int(rows["mine"]["p_holm"] <= 0.05), "equivalent": int(alike == "equivalent"),
        "nothing_to_find": int(verdict == "nothing_to_find"), "no_yardstick": int(verdict == "no_yardstick"),
        "none_found": int(rows["none"]["p_holm"] <= 0.05),
    }  # fmt: skip


def main() -> None:
    options = command_line(__doc__, audits=2000, only="", to=ROOT / "resources" / "measured" / "verdicts")
    for name in ("requirements", "resolution_rows"):
        setattr(planning, name, lambda *_: [])
    distances.beside_none = lambda *_: None
    path = options.to / "worlds.csv"
    lines, cells = read(path), [cell for cell in CELLS if options.only in cell[0]]
    while cells := [cell for cell in cells if lines.get(cell, {"audits": 0})["audits"] < options.audits]:
        for cell in cells:
            line = lines.setdefault(cell, {"audits": 0, **dict.fromkeys(WORDS, 0)})
            for _ in range(min(CHUNK, options.audits - line["audits"])):
                for word, number in counts(*cell, seed=line["audits"]).items():
                    line[word] += number
                line["audits"] += 1
            write(path, lines)
    for cell, line in lines.items():
        print(cell, line, flush=True)


if __name__ == "__main__":
    main()
