"""RULI: every target sample is kept, forgotten or never seen, in shadow models and in those that are audited.

Naderloui et al. 2025, §5. A block is three models: each target sample has its three roles in turn, so that after N
models it had each of them N/3 times. Each model is also trained on other samples of the training part, which are drawn
for it alone.
"""

from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from unlearning_audit.protocols import Data, Membership, Protocol, Selection, Settings, generator, members, seed_of

PROTOCOL = Protocol(
    offers=("target_samples", "forgotten", "weights", "fair_draw"), references=("retrain", "retrain_control"),
    counts=("target_blocks", "shadow_blocks"), targets="target_set", shadows=("shadow_blocks", 3),
)  # fmt: skip

#: The roles of a target sample: retained, forgotten, or held out. The roles that it has in the three models of a block,
#: and those of canaries, for each quarter of them.
RETAINED, FORGOTTEN, OUT = range(3)
THIRDS = (RETAINED, FORGOTTEN, OUT)
QUARTERS = (THIRDS, THIRDS, (FORGOTTEN, FORGOTTEN, OUT), (OUT, OUT, FORGOTTEN))

#: Target set → the kinds of its samples; all kinds but "any" and "class" are found by a selection.
KINDS = {
    "random": ("any",),
    "class": ("class",),
    "vulnerable": ("vulnerable",),
    "protected": ("protected",),
    "vulnerable_and_protected": ("vulnerable", "protected"),
    "canary": ("vulnerable",),
}


class Options(Settings):
    """``target_size`` samples of each kind in ``target_set``, those of ``class`` from ``target_class``.

    Vulnerable and protected samples are those of the scenario ``select_from``. ``attack_size`` other samples join each
    model's training (default: half of the remaining samples, as in the paper). ``target_blocks`` and ``shadow_blocks``
    of three models: the audited ones, and the adversary's (paper: 1 and 30). A canary is kept, forgotten and left out
    in 1/6, 5/12 and 5/12 of the models, balanced over four blocks (600: 100, 250 and 250). A model forgets its canaries
    together with other samples, so many that ``canary_rate`` of its forget set are canaries.
    """

    target_set: Literal["random", "class", "vulnerable", "protected", "vulnerable_and_protected", "canary"] = "random"
    target_size: int = Field(600, ge=3, multiple_of=3)
    target_class: int = Field(0, ge=0)
    canary_rate: float = Field(0.55, gt=0, le=1)
    attack_size: int | None = Field(None, ge=0)
    target_blocks: int = Field(1, ge=1)
    shadow_blocks: int = Field(30, ge=1)
    select_from: str | None = None

    @model_validator(mode="after")
    def _quarters_of_thirds(self) -> "Options":
        """Return the options. Raise ValueError unless canaries can be divided into quarters, and each quarter into
        thirds."""
        if self.target_set == "canary" and self.target_size % 12:
            raise ValueError("target_size must be a multiple of 12 for target_set canary")
        return self


def blocks(options: Options) -> dict[str, int]:
    """Return the number of blocks of the audited models and of the adversary's."""
    return {"targets": options.target_blocks, "shadows": options.shadow_blocks}


def models(options: Options) -> int:
    """Return the number of models of a block."""
    return 3


def selects_from(options: Options) -> str | None:
    """Return the scenario whose selection of samples is needed; "" if a selection is needed but no scenario is named;
    None if no selection is needed."""
    needed = {"vulnerable", "protected"} & set(KINDS[options.target_set])
    return (options.select_from or "") if needed else None


def draw(
    block: int, population: str, data: Data, options: Options, seed: int, selection: Selection | None = None
) -> Membership:
    """Return the memberships of the three models of one block.

    In each model, a target sample is retained, forgotten or held out: once each in the three models, if it is no canary
    (`roles`). Each model is also trained on other samples, which are drawn for it alone. If the target samples are
    canaries, it also forgets some of its other samples (`_fillers`).

    ``weight`` of the memberships is 1 on target samples, the only ones that attacks score.

    Parameters
    ----------
    block
        The block's number.
    population
        "targets" or "shadows".
    seed
        The seed of all draws, from which the models' seeds are derived, too.
    selection
        Which samples are vulnerable or protected, if ``options.target_set`` needs it.

    Raises
    ------
    ValueError
        If there are too few samples of a kind, or too few training samples besides the targets.
    """
    kinds = target_samples(data, options, seed, selection)
    audited = np.concatenate(kinds)
    remainder = np.setdiff1d(np.flatnonzero(data.part == 0), audited)
    size = len(remainder) // 2 if options.attack_size is None else options.attack_size
    if size > len(remainder):
        raise ValueError(
            f"attack_size={size} is more than the {len(remainder)} training samples that {len(audited)} targets leave; "
            "lower one of the two"
        )
    # The role of each target sample in each of the three models.
    of_kinds = [roles(len(kind), block, population, options, seed, number) for number, kind in enumerate(kinds)]
    role = np.concatenate(of_kinds, axis=1)
    train, forget, heldout = (np.zeros((3, len(data.y)), bool) for _ in range(3))
    train[:, audited], forget[:, audited], heldout[:, audited] = role != OUT, role == FORGOTTEN, role == OUT
    for model in range(3):
        joined = generator(seed, "ruli", "attack", population, block, model).permutation(remainder)[:size]
        train[model, joined] = True
        if options.target_set == "canary" and selection is not None:  # `target_samples` raises an error without one
            forget[model, _fillers(joined, int(forget[model].sum()), options, selection)] = True
    weight = np.zeros(len(data.y))
    weight[audited] = 1.0
    seeds = (seed_of(seed, "ruli", "model", population, block, model) for model in range(3))
    shadow = np.full(3, population == "shadows")
    return members(block, seeds, train, forget, heldout=heldout, weight=weight, split=np.arange(3), shadow=shadow)


def target_samples(data: Data, options: Options, seed: int, selection: Selection | None = None) -> list[np.ndarray]:
    """Return the target samples, int64 [target_size] for each kind in the target set. All blocks of all populations
    have the same target samples.

    `KINDS` says of which kinds a target set consists: "any" training sample, "class" (a sample of
    ``options.target_class``), or "vulnerable" and "protected" (both by the ``selection``). Raises ValueError if a
    selection is needed and None, or if there are too few samples of a kind.
    """
    if selection is None and selects_from(options) is not None:
        raise ValueError(f"target_set {options.target_set!r} needs a selection; name its scenario in select_from")
    pool = data.part == 0
    kinds = {"any": pool, "class": pool & (data.y == options.target_class)}
    if selection is not None:
        kinds |= {"vulnerable": pool & selection.vulnerable, "protected": pool & selection.protected}
    drawn_rows = []
    for kind in KINDS[options.target_set]:
        candidates = np.flatnonzero(kinds[kind])
        if len(candidates) < options.target_size:
            count = f"{len(candidates)} training samples of kind {kind!r}"
            raise ValueError(f"target_size={options.target_size} is more than the {count}; lower it")
        drawn_rows.append(generator(seed, "ruli", "targets", kind).permutation(candidates)[: options.target_size])
    return drawn_rows


def roles(n: int, block: int, population: str, options: Options, seed: int, kind: int) -> np.ndarray:
    """Return the roles (`RETAINED`, `FORGOTTEN` or `OUT`, held out) of ``n`` samples of one kind in the three models of
    a block, int64 [3, n].

    A pattern is three roles. In the first model a sample has a random one of the roles of its pattern, and in each
    further model the next role, the first after the last. Equally many samples begin at each role, so that all models
    have equally many samples in a role. The pattern is `THIRDS`, each role once. Only canaries have other patterns:
    canaries are drawn into quarters, and a quarter follows one of the patterns `QUARTERS` in a block, and the next
    pattern in the next block.

    Parameters
    ----------
    kind
        The kind's number in the target set, by which the draws for different kinds differ.
    """
    canary = options.target_set == "canary"
    size = n // 4 if canary else n
    model = np.arange(3)[:, None]
    role = np.empty((3, n), np.int64)
    # The quarters are drawn anew every four blocks, when every canary has had all patterns.
    quarters = generator(seed, "ruli", "quarters", population, block // 4).permutation(n)
    for number, quarter in enumerate(quarters.reshape(-1, size)):  # without canaries, one row of all samples
        pattern = np.array(QUARTERS[(number + block) % 4] if canary else THIRDS)
        start = generator(seed, "ruli", "roles", population, block, kind, number).permutation(np.arange(size) % 3)
        role[:, quarter] = pattern[(start + model) % 3]
    return role


def _fillers(joined: np.ndarray, canaries: int, options: Options, selection: Selection) -> np.ndarray:
    """Return the samples that a model forgets besides its canaries, so many that the canaries are the share
    ``options.canary_rate`` of all that it forgets.

    Parameters
    ----------
    joined
        The numbers of the model's training samples besides the canaries. The first ones that are not vulnerable are
        taken.
    canaries
        How many canaries the model forgets.
    selection
        Which samples are vulnerable.

    Raises
    ------
    ValueError
        If there are too few.
    """
    count = round(canaries / options.canary_rate) - canaries
    fillers = joined[~selection.vulnerable[joined]][:count]
    if len(fillers) < count:
        raise ValueError(
            f"canary_rate={options.canary_rate} means that {count} other samples are forgotten with {canaries} "
            f"canaries, but a model has {len(fillers)}; raise the rate or attack_size"
        )
    return np.asarray(fillers)
