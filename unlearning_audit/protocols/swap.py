"""SWAP test: pairs s = (R, F, T) and s′ = (R, T, F) of one data set 𝒟, shadow models on the other half.

Tu, Hu & Ma 2024, §3.1 and §3.3. Half of the training part is the data set 𝒟 of the game, the other half belongs to the
adversary. A block is one pair: the target models of s and s′, and shadow models of a pair of splits that are drawn in
the same way from the adversary's half.
"""

from typing import Any

import numpy as np
from pydantic import Field

from unlearning_audit.protocols import Data, Membership, Protocol, Selection, _candidates, generator, members, seed_of

PROTOCOL = Protocol(
    offers=("game", "forgotten", "weights", "fair_draw", "swapped_pairs", "coins"),
    attacked=True, counts=("pairs",), figures=("quality", "pairs", "roc"),
)  # fmt: skip


class Options(_candidates.Candidates):
    """``alpha`` = |F| / |R ∪ F|; ``pairs``: the number of pairs; ``models_per_split`` and ``shadow_models_per_split``:
    target and shadow models of each split.

    ``requests``: the number of requests of equal size in which F is forgotten, one after the other, with a part of T
    each. ``sensitivity`` weights the samples that the oracle draws (𝒫 of Definition 3.2): class → relative weight, 1
    for classes that are not named; empty = uniform. ``classes`` and ``memorised`` restrict F and T. To let a model
    forget a whole class, choose it and a large ``alpha``: half of its samples are F, the other half T, and R has none
    of them.
    """

    alpha: float = Field(0.1, gt=0, le=0.5)
    pairs: int = Field(4, ge=1)
    models_per_split: int = Field(3, ge=1)
    shadow_models_per_split: int = Field(1, ge=0)
    requests: int = Field(1, ge=1, le=1_000)
    sensitivity: dict[int, float] = Field(default_factory=dict)


selects_from = _candidates.selects_from


def blocks(options: Options) -> dict[str, int]:
    """Return the number of blocks of the only population, which are pairs."""
    return {"pairs": options.pairs}


def models(options: Options) -> int:
    """Return the number of models of a block: those of two splits of either half."""
    return 2 * (options.models_per_split + options.shadow_models_per_split)


def draw(
    block: int, population: str, data: Data, options: Options, seed: int, selection: Selection | None = None
) -> Membership:
    """Return the memberships of one pair of swapped splits, and of the adversary's shadow models.

    Half of the training part is the game's, the other half the adversary's, for all pairs. From each half, samples R, F
    and T are drawn for this pair. All models of a half retain R. The models of one split forget F and never see T, the
    models of the other split forget T and never see F.

    Parameters
    ----------
    block
        The pair's number.
    population
        Not used, as there is only one.
    seed
        The seed of all draws, from which the models' seeds are derived, too.
    selection
        How strongly samples are memorised, if ``options.memorised`` needs it.

    Raises
    ------
    ValueError
        If the data are too few for one sample to forget.
    """
    swapped = []  # of the game's and of the adversary's half: a split (R, F, T), and the same with F and T exchanged
    for owner, half in halves(data, options, seed):
        r, f, t = split_set(half, data, options, selection, seed, "pair", block, owner)
        swapped.append([(r, f, t), (r, t, f)])
    return assemble(block, swapped, data, options, seed)


def halves(data: Data, options: Options, seed: int) -> list[tuple[str, np.ndarray]]:
    """Return the two halves of the training part as pairs of a name and sample numbers: ("game", …) for the audited
    models, ("shadow", …) for the adversary's.

    Both halves have equally many samples, and are the same for every block. Each has half of the candidates, the
    samples that may be forgotten, so that all models forget and keep equally many samples.
    """
    train = generator(seed, "halves").permutation(np.flatnonzero(data.part == 0))
    allowed = _candidates.candidates(train, data, options)
    game, shadow = [], []
    # Candidates and other samples are divided separately; an odd one is left out.
    for rows in (allowed, train[~np.isin(train, allowed)]):
        half = len(rows) // 2
        game.append(rows[:half])
        shadow.append(rows[half : 2 * half])
    return [("game", np.concatenate(game)), ("shadow", np.concatenate(shadow))]


def split_set(
    samples: np.ndarray, data: Data, options: Options, selection: Selection | None, *key: int | str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw R, F, T: the numbers of retained, forgotten and held-out samples.

    F and T are k samples each, drawn from the candidates, which are those ``samples`` that may be forgotten or held
    out. R is the rest of ``samples``. With n samples and α = ``options.alpha``, k is ⌊α n / (1 + α)⌋, so that
    |F| / |R ∪ F| = α. If there are at most 2 k candidates, k is half of their number, and R has no candidates. Finally,
    k is rounded down to a multiple of ``options.requests``.

    Parameters
    ----------
    samples
        Numbers of samples, int [n].
    selection
        How strongly samples are memorised, if ``options.memorised`` needs it.
    key
        The seed, and what distinguishes this draw from others.

    Raises
    ------
    ValueError
        If k is 0.
    """
    alpha, allowed = options.alpha, _candidates.candidates(samples, data, options)
    size = int(alpha * len(samples) / (1 + alpha) + 1e-9)  # rounded down, but not because of a rounding error
    k = min(size, len(allowed) // 2)
    all_are_used = 2 * size >= len(allowed)
    k -= k % options.requests
    if k < 1:
        reason = "nothing to forget" if options.requests == 1 else f"less than a sample for each of {options.requests}"
        of_classes = f" of the classes {[*options.classes]}" if options.classes else ""
        raise ValueError(
            f"alpha={alpha} leaves {reason} among {len(allowed)} samples{of_classes}; use more data or a larger alpha"
        )
    order = generator(*key, "split").permutation(_candidates.by_memorisation(allowed, 2 * k, options, selection))
    f, t = order[:k], order[k : 2 * k]
    # If all candidates are used, a left-over one is not retained either: it may be of the class that is forgotten.
    not_retained = allowed if all_are_used else order[: 2 * k]
    return np.setdiff1d(samples, not_retained), f, t


def assemble(block: int, splits: list[list[tuple[Any, ...]]], data: Data, options: Options, seed: int) -> Membership:
    """Return the memberships of all models of a block.

    If there are several requests, the first samples of F and of T belong to the first request, and so on.

    Parameters
    ----------
    block
        The block's number.
    splits
        First the splits of the game's models, then the splits of shadow models. Each split is (R, F, T): the numbers of
        retained, forgotten and held-out samples.
    """
    # For each model: its owner (0: the defender, 1: the adversary), the number of its split, (R, F, T), and its number
    # in the split.
    plan: list[tuple[int, int, tuple[Any, ...], int]] = []
    for owner, count in enumerate((options.models_per_split, options.shadow_models_per_split)):
        for number, sets in enumerate(splits[owner]):
            plan += [(owner, number, sets, replicate) for replicate in range(count)]
    shape = (len(plan), len(data.y))
    train, forget, heldout = (np.zeros(shape, bool) for _ in range(3))
    request = np.zeros(shape, np.int64)  # counted from 1; 0 for samples that are not requested
    for model, (_, _, (r, f, t), _) in enumerate(plan):
        train[model, r] = train[model, f] = forget[model, f] = heldout[model, t] = True
        request[model, f] = request[model, t] = 1 + np.arange(len(f)) * options.requests // len(f)
    weight = None
    if options.sensitivity:
        weight = np.array([options.sensitivity.get(int(label), 1.0) for label in data.y], np.float64)
    return members(
        block, (seed_of(seed, "model", block, owner, number, replicate) for owner, number, _, replicate in plan),
        train, forget,
        heldout=heldout, weight=weight, request=request if options.requests > 1 else None,
        split=np.array([number for _, number, _, _ in plan], np.int64),
        shadow=np.array([owner == 1 for owner, _, _, _ in plan]),
    )  # fmt: skip
