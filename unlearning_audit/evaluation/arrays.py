"""Array files between stages: data, memberships and logits, written atomically and checked when read."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np

from unlearning_audit.evaluation.canaries import pairs_problem
from unlearning_audit.evaluation.logits import Logits
from unlearning_audit.evaluation.samples import Data
from unlearning_audit.evaluation.stored import Stored
from unlearning_audit.randomness.keyed import seed_of
from unlearning_audit.store.files import ArtifactError, Check, NoAnswerError, NotFiniteError

__all__ = ["ArtifactError", "Data", "Logits", "Membership", "NoAnswerError", "NotFiniteError"]


@dataclass(frozen=True)
class Membership(Stored):
    """``<population>.npz``: which model saw which sample, and which samples it has to forget.

    Parameters
    ----------
    train
        bool [models, samples]: seen in training.
    forget
        bool [models, samples]: to be forgotten, a subset of ``train``.
    heldout
        bool [models, samples]: never seen, though drawn from the same candidates.
    seed
        int64 [models]: the seed of each model.
    split
        int64 [models]: 0 = s and 1 = s′ of a swapped pair; a running number for splits that are not swapped.
    block
        int64 [models]: the number of the set of models that was drawn together.
    shadow
        bool [models]: whether a model belongs to the adversary.
    weight
        float64 [samples]: the sensitivity distribution; None: uniform.
    labels
        int64 [models, samples]: the labels that models were trained with, if they differ from the data's labels.
    replicate
        int64 [models]: the number of a copy; models with one seed are copies of one original. None: no copies.
    pair
        int64 [samples]: the number of a pair of canaries, −1 for other samples. A random draw chose which one of the
        pair a model forgets; it never saw the other.
    request
        int64 [models, samples]: the number, from 1 on, of the unlearning request that a forgotten or held-out sample
        belongs to; 0 for all others. ``forget`` and ``heldout`` contain the requests made so far. None: one request.
    memorised
        float64 [samples]: how much other models memorised each sample (the ratio of `Selection`); None if samples were
        not selected by it.
    """

    SHARED = ("weight", "pair", "memorised")

    train: Annotated[np.ndarray, "b models samples"]
    forget: Annotated[np.ndarray, "b models samples"]
    heldout: Annotated[np.ndarray, "b models samples"]
    seed: Annotated[np.ndarray, "iu models"]
    split: Annotated[np.ndarray, "iu models"]
    block: Annotated[np.ndarray, "iu models"]
    shadow: Annotated[np.ndarray, "b models"]
    weight: Annotated[np.ndarray | None, "f samples"] = None
    labels: Annotated[np.ndarray | None, "iu models samples"] = None
    replicate: Annotated[np.ndarray | None, "iu models"] = None
    pair: Annotated[np.ndarray | None, "iu samples"] = None
    request: Annotated[np.ndarray | None, "iu models samples"] = None
    memorised: Annotated[np.ndarray | None, "f samples"] = None

    @property
    def request_count(self) -> int:
        """Return how many requests were made so far; 1 without a sequence of requests."""
        return 1 if self.request is None else int(self.request[self.forget].max(initial=0))

    @property
    def newest(self) -> np.ndarray:
        """Return the samples that the last request asks to forget, bool [models, samples]; ``forget`` without a
        sequence."""
        return self.forget if self.request is None else self.forget & (self.request == self.request_count)

    @property
    def queries(self) -> np.ndarray:
        """Return the samples that attacks score, bool [models, samples]: forgotten, held out, or part of a request
        that was not made yet."""
        queried = self.forget | self.heldout
        return np.asarray(queried if self.request is None else queried | (self.request > 0))

    def until(self, request: int) -> "Membership":
        """Return the memberships after the first ``request`` requests of a sequence. Samples of later requests are
        neither forgotten nor held out yet, and their canaries are in no pair yet."""
        past = np.asarray(self.request) <= request
        later = (~past).any(axis=0)
        return replace(
            self, forget=self.forget & past, heldout=self.heldout & past,
            pair=None if self.pair is None else np.where(later, -1, self.pair),  # −1: in no pair
        )  # fmt: skip

    def of_request(self, request: int) -> "Membership":
        """Return the memberships as if, of a sequence of requests, only the one with the number ``request`` existed,
        even if it was not made yet. Of its samples, those that a model was trained on are ``forget``, and the others
        are ``heldout``. Canaries that are not among its samples are in no pair."""
        requested = np.asarray(self.request == request)
        return replace(
            self, forget=requested & self.train, heldout=requested & ~self.train, request=None,
            pair=None if self.pair is None else np.where(requested.any(axis=0), self.pair, -1),  # −1: in no pair
        )  # fmt: skip

    @property
    def retain(self) -> np.ndarray:
        """Return the samples that models keep, bool [models, samples]: in train and not in forget."""
        return np.asarray(self.train & ~self.forget)

    def trained_labels(self, y: np.ndarray) -> np.ndarray:
        """Return the labels that models were trained with: ``y`` [samples], or [models, samples] if the protocol
        changed some."""
        return y if self.labels is None else self.labels

    def originals(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the models that have to be trained, int64 [originals], and for each model the position
        of its original among these, int64 [models]. Without copies, every model is its own original."""
        if self.replicate is None:
            models = np.arange(len(self.seed))
            return models, models
        _, trained, copies = np.unique(self.seed, return_index=True, return_inverse=True)  # copies share a seed
        return trained, copies

    def unlearning_seeds(self) -> list[int]:
        """Return one seed per model. It is the model's own seed, but copies of one original get different ones, and so
        do the second and later requests of a sequence."""
        seeds = self.seed.tolist()
        if self.replicate is not None:
            seeds = [seed_of(seed, "replicate", number) for seed, number in zip(seeds, self.replicate, strict=True)]
        return seeds if self.request_count < 2 else [seed_of(seed, "request", self.request_count) for seed in seeds]

    def __getitem__(self, models: np.ndarray | slice) -> "Membership":
        """Return the memberships of some of the models. Fields that all models share stay as they are."""
        fields = {name: value if name in self.SHARED else value[models] for name, value in self.arrays().items()}
        return Membership(**fields)

    def write(self, path: str | Path) -> None:
        """Write atomically. Raises ArtifactError if there is no model, if the fields have other dtypes or shapes, or if
        they contradict each other."""
        check = Check(path, self.arrays())
        self.checked(check)
        if not len(self.train):
            check.fail("train", "holds no model")
        outside, inside = self.forget & ~self.train, self.heldout & self.train
        for name, wrong, where in (("forget", outside, "not in train"), ("heldout", inside, "in train")):
            if wrong.any():
                check.fail(name, f"has {int(wrong.sum())} entries that are {where}")
        if self.weight is not None and ((self.weight < 0).any() or not self.weight.any()):
            check.fail("weight", "must be non-negative and not all zero")
        if self.replicate is not None:
            trained, copies = self.originals()
            if not np.array_equal(self.train, self.train[trained][copies]):
                check.fail("replicate", "calls models copies that were trained on different samples")
        if self.pair is not None and (problem := pairs_problem(self.pair, self.forget, self.heldout)):
            check.fail("pair", problem)
        if self.request is not None and (without := int((self.request[self.forget] < 1).sum())):
            check.fail("forget", f"has {without} entries that are part of no request")
        super().write(path)
