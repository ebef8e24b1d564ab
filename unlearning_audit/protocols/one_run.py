"""One-run audit: pairs of canaries, of which a fair coin says which one the model sees and then has to forget.

Steinke, Nasr & Jagielski 2023 and, for pairs, Mahloujifar, Melis & Chaudhuri 2024. A block is one model. It is trained
on the training part except one canary of each pair, and unlearns the other canary. One model is enough; further models
have the same pairs and new coins. No model is retrained, and no shadow model is needed.
"""

import numpy as np
from pydantic import Field, model_validator

from unlearning_audit.protocols import Data, Membership, Protocol, Selection, _candidates, generator, members, seed_of

PROTOCOL = Protocol(offers=("canaries", "forgotten", "weights", "fair_draw", "coins"), counts=("models",))


class Options(_candidates.Candidates):
    """``canaries``: the number of pairs; ``models``: the number of models; ``requests``: the number of requests of
    equal size in which canaries are forgotten.

    ``classes`` and ``memorised`` restrict the canaries.
    """

    canaries: int = Field(100, ge=1)
    models: int = Field(1, ge=1)
    requests: int = Field(1, ge=1, le=1_000)

    @model_validator(mode="after")
    def _parts(self) -> "Options":
        """Return the options. Raise ValueError unless the canaries can be divided into requests of equal size."""
        if self.canaries % self.requests:
            raise ValueError(f"canaries ({self.canaries}) must be a multiple of requests ({self.requests})")
        return self


selects_from = _candidates.selects_from


def blocks(options: Options) -> dict[str, int]:
    """Return the number of blocks of the only population."""
    return {"models": options.models}


def models(options: Options) -> int:
    """Return the number of models of a block."""
    return 1


def draw(
    block: int, population: str, data: Data, options: Options, seed: int, selection: Selection | None = None
) -> Membership:
    """Return the memberships of one model.

    Canaries are training samples, drawn in pairs, the same in every block. Of each pair, a fair coin decides which
    canary the model is trained on and forgets; the other is held out. All other training samples are retained.

    ``pair`` of the memberships is the number of a canary's pair, −1 for other samples. If there are several requests,
    the first pairs belong to the first request, and so on.

    Parameters
    ----------
    block
        The model's number.
    population
        Not used, as there is only one.
    seed
        The seed of all draws, from which the models' seeds are derived, too.
    selection
        How strongly samples are memorised, if ``options.memorised`` needs it.

    Raises
    ------
    ValueError
        If the data have too few samples for the canaries.
    """
    samples, count = np.flatnonzero(data.part == 0), 2 * options.canaries
    allowed = _candidates.candidates(samples, data, options)
    if count > len(allowed) or count >= len(samples):
        of_classes = f" of the classes {[*options.classes]}" if options.classes else ""
        raise ValueError(
            f"canaries={options.canaries} pairs take {count} of {len(allowed)} training samples{of_classes} and "
            "leave none to keep; use more data or fewer canaries"
        )
    canaries = _candidates.by_memorisation(allowed, count, options, selection)
    samples_of_pair = generator(seed, "canaries").permutation(canaries)[:count].reshape(-1, 2)
    coins = generator(seed, "coins", block).integers(0, 2, size=len(samples_of_pair))  # which of a pair is forgotten
    pair = np.full(len(data.y), -1, np.int64)
    pair[samples_of_pair] = np.arange(len(samples_of_pair))[:, None]
    # Requests count from 1; 0 stands for samples that are no canaries.
    request = np.where(pair < 0, 0, 1 + pair * options.requests // options.canaries)[None]
    train, forget, heldout = (np.zeros((1, len(data.y)), bool) for _ in range(3))
    train[0, samples] = True
    forget[0, np.take_along_axis(samples_of_pair, coins[:, None], axis=1)] = True
    heldout[0, np.take_along_axis(samples_of_pair, 1 - coins[:, None], axis=1)] = True
    more = {"heldout": heldout, "pair": pair, "request": request if options.requests > 1 else None}
    return members(block, [seed_of(seed, "model", block)], train & ~heldout, forget, **more)
