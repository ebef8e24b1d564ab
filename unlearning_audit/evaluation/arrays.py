"""Array files between stages: data, memberships and logits, written whole and checked when read."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unlearning_audit.evaluation.canaries import unpaired
from unlearning_audit.evaluation.logits import Logits
from unlearning_audit.evaluation.samples import Data
from unlearning_audit.randomness.keyed import seed_of
from unlearning_audit.store.files import (
    Arrays,
    ArtifactError,
    Check,
    NoAnswerError,
    NotFiniteError,
    read_arrays,
)

__all__ = ["ArtifactError", "Data", "Logits", "Membership", "NoAnswerError", "NotFiniteError"]


@dataclass(frozen=True)
class Membership(Arrays):
    """``<population>.npz``: which model saw which sample, and which it is asked to forget.

    ``train``, ``forget``, ``heldout`` bool [models, samples]: seen in training; asked to be unlearned
    (within train); never seen though it could have been. ``seed`` int64 [models]; ``split`` int64 [models]
    (0 = s, 1 = s′; a running number for splits that are not swapped); ``block`` int64 [models], the set of
    models that was drawn together; ``shadow`` bool [models], true for the adversary's models. ``weight``
    float64 [samples], the sensitivity distribution, or None for uniform. ``labels`` int64 [models, samples],
    what a model was trained to say where that differs from the data's labels, or None. ``replicate`` int64
    [models] or None: models of one seed are copies of one original, and their numbers tell them apart. ``pair`` int64
    [samples] or None: samples of one number (−1: none) are two canaries, of which each model forgot one by a fair coin
    and never saw the other. ``request`` int64 [models, samples] or None: the number, from 1 on, of the request that a
    sample is a part of, seen or held out, and 0 for all others; ``forget`` and ``heldout`` are those of the requests
    that were made so far. ``memorised`` float64 [samples]: how much other models memorised each sample, the ratio of
    `Selection`, or None where none chose the samples.
    """

    SHARED = ("weight", "pair", "memorised")

    train: np.ndarray
    forget: np.ndarray
    heldout: np.ndarray
    seed: np.ndarray
    split: np.ndarray
    block: np.ndarray
    shadow: np.ndarray
    weight: np.ndarray | None = None
    labels: np.ndarray | None = None
    replicate: np.ndarray | None = None
    pair: np.ndarray | None = None
    request: np.ndarray | None = None
    memorised: np.ndarray | None = None

    @property
    def request_count(self) -> int:
        """How many requests were made so far; 1 where there is no sequence of them."""
        return 1 if self.request is None else int(self.request[self.forget].max(initial=0))

    @property
    def newest(self) -> np.ndarray:
        """What the last request is about: bool [models, samples]; all of ``forget`` where there is no sequence."""
        return self.forget if self.request is None else self.forget & (self.request == self.request_count)

    @property
    def queries(self) -> np.ndarray:
        """What attacks are asked about: forgotten, held out, or a part of a request that is yet to come; bool."""
        queried = self.forget | self.heldout
        return queried if self.request is None else queried | (self.request > 0)

    def until(self, request: int) -> "Membership":
        """The same after so many requests: later ones are not forgotten yet, and their canaries no pairs yet."""
        past = self.request <= request
        later = (self.request > request).any(axis=0)
        return replace(
            self, forget=self.forget & past, heldout=self.heldout & past,
            pair=None if self.pair is None else np.where(later, -1, self.pair),
        )  # fmt: skip

    def part(self, request: int) -> "Membership":
        """One request by itself, made or yet to come: what models were trained on of it is ``forget``, the rest of it
        ``heldout``; canaries of others are no pairs."""
        requested = self.request == request
        return replace(
            self, forget=requested & self.train, heldout=requested & ~self.train, request=None,
            pair=None if self.pair is None else np.where(requested.any(axis=0), self.pair, -1),
        )  # fmt: skip

    @property
    def retain(self) -> np.ndarray:
        """train and not forget: bool [models, samples]."""
        return self.train & ~self.forget

    def trained_labels(self, y: np.ndarray) -> np.ndarray:
        """Labels as the models saw them: [samples], or [models, samples] if the protocol changed some."""
        return y if self.labels is None else self.labels

    def originals(self) -> tuple[np.ndarray, np.ndarray]:
        """Which models have to be trained, int64 [originals], and which of these each model copies, int64 [models]."""
        if self.replicate is None:
            models = np.arange(len(self.seed))
            return models, models
        _, first, copies = np.unique(self.seed, return_index=True, return_inverse=True)
        return first, copies

    def unlearning_seeds(self) -> list[int]:
        """One seed per model; copies of one original get different ones, and so do requests of a sequence."""
        seeds = self.seed.tolist()
        if self.replicate is not None:
            seeds = [seed_of(seed, "replicate", number) for seed, number in zip(seeds, self.replicate, strict=True)]
        return seeds if self.request_count < 2 else [seed_of(seed, "request", self.request_count) for seed in seeds]

    def __getitem__(self, models: np.ndarray | slice) -> "Membership":
        """The memberships of some of the models."""
        return Membership(
            **{name: value if name in self.SHARED else value[models] for name, value in self.arrays().items()}
        )

    def write(self, path: str | Path) -> None:
        """Check the invariants, then write atomically."""
        self._check(Check(path, self.arrays()))
        super().write(path)

    @classmethod
    def read(cls, path: str | Path, samples: int | None = None) -> "Membership":
        """Read and check; ``samples`` is the size of the data it must fit. Raises ArtifactError."""
        check = Check(path, read_arrays(path))
        return cls._check(check, samples)

    @classmethod
    def _check(cls, check: Check, samples: int | None = None) -> "Membership":
        train = check.field("train", "b", (None, samples))
        models, samples = train.shape
        forget = check.field("forget", "b", (models, samples))
        heldout = check.field("heldout", "b", (models, samples))
        if (forget & ~train).any():
            check.fail("forget", f"has {int((forget & ~train).sum())} entries that are not in train")
        if (heldout & train).any():
            check.fail("heldout", f"has {int((heldout & train).sum())} entries that are in train")
        per_model = {name: check.field(name, "iu", (models,)) for name in ("seed", "split", "block")}
        shadow = check.field("shadow", "b", (models,))
        weight = check.optional("weight", "f", (samples,))
        if weight is not None and ((weight < 0).any() or not weight.any()):
            check.fail("weight", "must be non-negative and not all zero")
        labels = check.optional("labels", "iu", (models, samples))
        replicate = check.optional("replicate", "iu", (models,))
        if replicate is not None:
            _, first, copies = np.unique(per_model["seed"], return_index=True, return_inverse=True)
            if not np.array_equal(train, train[first][copies]):
                check.fail("replicate", "calls models copies that were trained on different samples")
        pair = check.optional("pair", "iu", (samples,))
        if pair is not None and (problem := unpaired(pair, forget, heldout)):
            check.fail("pair", problem)
        request = check.optional("request", "iu", (models, samples))
        if request is not None and (request[forget] < 1).any():
            check.fail("forget", f"has {int((request[forget] < 1).sum())} entries that are part of no request")
        memorised = check.optional("memorised", "f", (samples,))
        if not models:
            check.fail("train", "holds no model")
        return cls(
            train, forget, heldout, **per_model, shadow=shadow, weight=weight, labels=labels, replicate=replicate,
            pair=pair, request=request, memorised=memorised,
        )  # fmt: skip
