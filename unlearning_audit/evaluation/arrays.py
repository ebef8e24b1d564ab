"""Array files between stages: data, memberships, selections and logits, written atomically and checked when read."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np

from unlearning_audit.evaluation import views
from unlearning_audit.evaluation.logits import Logits
from unlearning_audit.evaluation.stored import Stored
from unlearning_audit.randomness.keyed import seed_of
from unlearning_audit.store.files import ArtifactError, Check, NoAnswerError, NotFiniteError

__all__ = ["ArtifactError", "Data", "Logits", "Membership", "NoAnswerError", "NotFiniteError"]


@dataclass(frozen=True)
class Data(Stored):
    """``data.npz``: samples in canonical order.

    Parameters
    ----------
    x
        uint8 or float32 [samples, …], tokens int32: the inputs of the models.
    y
        int64 [samples]: the observed labels.
    part
        uint8 [samples]: 0 train, 1 test, 2 view.
    y_clean
        int64 [samples]: the labels before label noise.
    index
        int64 [samples]: the row in the source.
    classes
        The number of classes.
    public
        int32 [rows, length]: passages of text that a base model learns and that are never forgotten.
    compressed
        int64 [samples]: bytes of each sample's text after zlib.
    tokenizer
        uint8 [bytes]: the content of ``tokenizer.json``.
    parent
        int64 [samples]: the sample of which a view (part 2) is a variant, −1 for others.
    view
        uint8 [samples]: the kind of a view, one of `evaluation.views.VIEWS`, 0 for others.
    group
        uint8 [samples]: the set from which a sample of the test part comes, if there are several, 0 for others.
    subject
        int64 [samples]: the person to whom each sample belongs.
    """

    x: Annotated[np.ndarray, "uif samples ..."]
    y: Annotated[np.ndarray, "iu samples"]
    part: Annotated[np.ndarray, "iu samples"]
    y_clean: Annotated[np.ndarray, "iu samples"]
    index: Annotated[np.ndarray, "iu samples"]
    classes: Annotated[int, "iu"]
    public: Annotated[np.ndarray | None, "iu public length"] = None
    compressed: Annotated[np.ndarray | None, "iu samples"] = None
    tokenizer: Annotated[np.ndarray | None, "iu bytes"] = None
    parent: Annotated[np.ndarray | None, "iu samples"] = None
    view: Annotated[np.ndarray | None, "iu samples"] = None
    group: Annotated[np.ndarray | None, "iu samples"] = None
    subject: Annotated[np.ndarray | None, "iu samples"] = None

    def views(self, kind: str) -> np.ndarray:
        """Return the rows that are views of one ``kind``, a name in `views.VIEWS`, of each sample: int64 [samples, most
        views of any sample], ascending, then filled with −1. There are no columns if no sample has such a view."""
        if self.parent is None:
            return np.full((len(self.y), 0), -1)
        rows = np.flatnonzero(self.view == views.VIEWS[kind])
        rows = rows[np.argsort(self.parent[rows], kind="stable")]  # sample by sample
        count = np.bincount(self.parent[rows], minlength=len(self.y))
        table = np.full((len(self.y), int(count.max(initial=0))), -1)
        table[np.arange(table.shape[1]) < count[:, None]] = rows
        return table


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

    #: Fields that all models share.
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
        even if it was not made yet. The samples of this request that a model was trained on are ``forget``, its further
        samples are ``heldout``. Canaries that are in this request for no model are in no pair."""
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
        of its original among these, int64 [models]. Without copies, every model is its own original. With copies, the
        first model of each seed is trained, in ascending order of seeds."""
        if self.replicate is None:
            models = np.arange(len(self.seed))
            return models, models
        _, trained, copies = np.unique(self.seed, return_index=True, return_inverse=True)  # copies share a seed
        return trained, copies

    @property
    def copied(self) -> np.ndarray | None:
        """Return a number that all models of one original, and no others, have in common, int64 [models], if there are
        several originals and several models of one of them. Such models are not independent of each other. None if each
        model has an original of its own, or if all have the same one."""
        trained, copies = self.originals()
        return copies if 1 < len(trained) < len(copies) else None

    def unlearning_seeds(self) -> list[int]:
        """Return the seed of each model's unlearning. It is the model's own seed, with two exceptions: where models are
        copies, the number of the copy changes it; and from the second request of a sequence on, the request does."""
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
            originals, of_model = self.originals()  # the models that are trained; which of them each model is a copy of
            if not np.array_equal(self.train, self.train[originals][of_model]):
                check.fail("replicate", "calls models copies that were trained on different samples")
        if self.pair is not None and (problem := pairs_problem(self.pair, self.forget, self.heldout)):
            check.fail("pair", problem)
        if self.request is not None and (without := int((self.request[self.forget] < 1).sum())):
            check.fail("forget", f"has {without} entries that are part of no request")
        super().write(path)


def pairs_problem(pair: np.ndarray, forget: np.ndarray, heldout: np.ndarray) -> str:
    """Return what is wrong with pairs of canaries, or "".

    Of each pair, a model must have forgotten one sample, and the other must be held out.

    Parameters
    ----------
    pair
        int64 [samples]: the number of the pair, −1 for samples that are not canaries.
    forget, heldout
        bool [models, samples].
    """
    number, count = np.unique(pair[pair >= 0], return_counts=True)
    if not len(number):
        return "names no pair; give both samples of a pair the same number from 0 on, all others -1"
    if (count != 2).any():
        first = int((count != 2).argmax())
        return f"gives the number {number[first]} to {count[first]} samples; a pair is two"
    # The two samples of each pair, [pairs, 2]. Sorted by number, samples that are not canaries (−1) come first.
    samples = np.argsort(pair, kind="stable")[-2 * len(number) :].reshape(-1, 2)
    for verb, mask in (("forgot", forget), ("held out", heldout)):
        counts = mask[:, samples].sum(axis=2)  # [models, pairs]
        if (counts != 1).any():
            model, wrong = (int(i) for i in np.argwhere(counts != 1)[0])
            found = counts[model, wrong]
            return f"has pair {number[wrong]}, of which model {model} {verb} {found} samples in place of one"
    return ""


@dataclass(frozen=True)
class Selection(Stored):
    """``selection.npz``: how strongly models memorise each sample of the data.

    Parameters
    ----------
    vulnerable
        bool [samples]: an attack recognises the sample in most models that saw it.
    protected
        bool [samples]: in most of them it cannot. No sample is both.
    ratio
        float64 [samples]: mean over the models that saw the sample of log p(in) − log p(out), 0 for samples that no
        model saw.
    """

    vulnerable: Annotated[np.ndarray, "b samples"]
    protected: Annotated[np.ndarray, "b samples"]
    ratio: Annotated[np.ndarray, "f samples"]
