"""NeurIPS 2023 competition: many models that all forget the same few samples, against as many retrained ones.

Triantafillou et al. 2024, §3. With ``originals: one`` every unlearned model starts from the same original, as in the
competition. With ``many``, each starts from an original of its own, or ``copies`` of them from one.
"""

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from unlearning_audit.protocols import Data, Membership, Protocol, Settings, generator, members, seed_of

PROTOCOL = Protocol(
    offers=("one_forget_set", "forgotten", "weights"), references=("retrain", "retrain_control"), counts=("blocks",)
)


class Options(Settings):
    """``share`` of the training part to be forgotten, if ``classes`` is not empty only samples of these; ``blocks`` of
    ``models_per_block`` models (512 in all in the competition); ``copies``: with many originals, the number of models
    that are unlearned from each, which distinguishes training seeds from unlearning seeds (metric ``seed_spread``).
    ``by_subject``: whole people are forgotten, drawn until no more fit into the share, by the data's field ``subject``;
    nobody's samples are divided between forgotten and retained ones."""

    share: float = Field(0.02, gt=0, lt=1)
    originals: Literal["one", "many"] = "one"
    copies: int = Field(1, ge=1)
    blocks: int = Field(4, ge=1)
    models_per_block: int = Field(16, ge=1)
    classes: tuple[int, ...] = ()
    by_subject: bool = False

    @model_validator(mode="after")
    def _whole_originals(self) -> Self:
        """Return the options. Raise ValueError unless every original has equally many copies, and for a number of
        copies of a single original."""
        models = self.blocks * self.models_per_block
        if self.originals == "one" and self.copies > 1:
            raise ValueError(
                f"copies ({self.copies}) need originals: many; with one original, all {models} models are copies of it"
            )
        if self.originals == "many" and models % self.copies:
            raise ValueError(f"copies must divide the number of models, {models}, but {self.copies} does not")
        return self


def blocks(options: Options) -> dict[str, int]:
    """Return the number of blocks of the only population."""
    return {"models": options.blocks}


def models(options: Options) -> int:
    """Return the number of models of a block."""
    return options.models_per_block


def draw(block: int, population: str, data: Data, options: Options, seed: int) -> Membership:
    """Return the memberships of one block of models.

    All models of all blocks are trained on the whole training part and forget the same samples: ``options.share`` of
    this part, rounded down, drawn by ``seed`` from ``options.classes`` (empty: all); with ``by_subject``, the samples
    of random people, at most so many.

    If all models are copies of one original, or several models copy each original, ``replicate`` numbers the models of
    all blocks from 0; else it is None. Copies of one original share its seed.

    Parameters
    ----------
    block
        The block's number.
    population
        Not used, as there is only one.

    Raises
    ------
    ValueError
        If the share is less than one sample, or more samples than the classes have, and with ``by_subject`` if no
        person fits or the data do not name people.
    """
    samples = np.flatnonzero(data.part == 0)
    k = int(options.share * len(samples) + 1e-9)  # rounded down, but not because of a rounding error
    if k < 1:
        problem = f"share={options.share} of {len(samples)} samples is less than one; use more data or a larger share"
        raise ValueError(problem)
    candidates = samples[np.isin(data.y[samples], options.classes)] if options.classes else samples
    if k > len(candidates):
        raise ValueError(
            f"share={options.share} of {len(samples)} samples is {k}, more than the {len(candidates)} of the classes "
            f"{[*options.classes]}; use a smaller share or more classes"
        )
    rng = generator(seed, "forget")
    forgotten = _people(candidates, samples, data, k, rng) if options.by_subject else rng.permutation(candidates)[:k]
    train = np.tile(data.part == 0, (options.models_per_block, 1))
    forget = np.zeros(train.shape, bool)
    forget[:, forgotten] = True
    numbers = range(block * options.models_per_block, (block + 1) * options.models_per_block)  # of all blocks' models
    one_original = options.originals == "one"
    originals = [0 if one_original else number // options.copies for number in numbers]  # of which it is a copy
    seeds = (seed_of(seed, "model", original) for original in originals)
    replicate = np.array(numbers) if one_original or options.copies > 1 else None
    return members(block, seeds, train, forget, replicate=replicate)


def _people(candidates: np.ndarray, samples: np.ndarray, data: Data, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return all samples, int [n], of people who are drawn at random by ``rng``: at most ``k`` samples in all.

    People are drawn one after the other; a person with more samples than are left of ``k`` is passed over. People who
    also have samples that are not candidates are left out.

    Parameters
    ----------
    candidates
        The samples that may be forgotten.
    samples
        All training samples.

    Raises
    ------
    ValueError
        If no person fits, or if the data do not say whose samples are.
    """
    if data.subject is None:
        raise ValueError("by_subject needs data that name the person of each sample; add the field subject to the file")
    allowed = np.setdiff1d(data.subject[candidates], data.subject[np.setdiff1d(samples, candidates)])
    people, left = [], k  # the samples of each person that is drawn, and how many samples may follow
    for person in rng.permutation(allowed):
        rows = candidates[data.subject[candidates] == person]
        if len(rows) <= left:
            people.append(rows)
            left -= len(rows)
    if not people:
        raise ValueError(f"by_subject: no person has at most {k} samples, all of the classes to be forgotten")
    return np.concatenate(people)
