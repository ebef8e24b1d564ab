"""Files of signals: what models are evaluated for besides logits, as numbers, arrays or texts for each sample."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.stored import Stored
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.store.files import Check, read_arrays


@dataclass(frozen=True)
class Gradients(Stored):
    """``signals.npz`` of one batch: squared norms of gradients.

    Parameters
    ----------
    squared_norms
        float64 [models, forget rows] or [models, samples]: the squared norm of each sample's gradient, in the order of
        the data.
    mean_squared_norm
        float64 [models]: the squared norm of the mean gradient of the forget samples.
    """

    squared_norms: Annotated[np.ndarray, "f models rows"]
    mean_squared_norm: Annotated[np.ndarray, "f models"]


@dataclass(frozen=True)
class BySample(Stored):
    """``signals.npz`` of one batch: a signal with a value, or an array, for each sample.

    Parameters
    ----------
    signal
        The name of the signal.
    values
        float [models, rows, …]: NaN where there is no value.
    index
        int64 [rows]: the sample of each row in the data.
    """

    #: Fields that all models share.
    SHARED = ("signal", "index")
    GAPS = ("values",)

    signal: Annotated[str, "U"]
    values: Annotated[np.ndarray, "f models rows ..."]
    index: Annotated[np.ndarray, "iu rows"]


#: The largest numbers of samples of each model on which features are computed: `SIDE` forgotten and as many held-out
#: ones, and `RETAINED` retained ones.
SIDE, RETAINED = 1000, 2000


@dataclass(frozen=True)
class Features(Stored):
    """``signals.npz`` of one batch: the inputs of the models' last layers.

    Parameters
    ----------
    features
        float32 [models, rows, width]: the input of a model's last layer.
    index
        int64 [models, rows]: the sample of each row, −1 for none. Models are the defender's, in the order of the
        memberships.
    """

    DIVERGES = True

    features: Annotated[np.ndarray, "f models rows width"]
    index: Annotated[np.ndarray, "iu models rows"]


def samples_for_features(member: Membership) -> np.ndarray:
    """Return the samples for which features of each model are computed, int64 [models, rows], ascending, then filled
    with −1: up to `SIDE` forgotten, `SIDE` held-out and `RETAINED` retained samples, drawn by its seed alone."""
    roles = {"forget": (member.forget, SIDE), "heldout": (member.heldout, SIDE), "retain": (member.retain, RETAINED)}
    return draw(member, "features", roles)


@dataclass(frozen=True)
class Generations(Stored):
    """``signals.npz``: one generated answer per row.

    Parameters
    ----------
    tokens
        int32 [models, rows, new]: the generated tokens, −1 after the last one.
    index
        int64 [models, rows]: the sample that was continued, −1 for none. Models are the defender's, in the order of the
        memberships.
    """

    tokens: Annotated[np.ndarray, "iu models rows new"]
    index: Annotated[np.ndarray, "iu models rows"]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the fields, with as many columns of ``tokens`` as the longest answer has tokens, but at least one."""
        longest = int((self.tokens >= 0).sum(-1).max(initial=1))
        return {"tokens": self.tokens[..., :longest], "index": self.index}


class Sampled(Generations):
    """Several sampled answers per row.

    Parameters
    ----------
    tokens
        int32 [models, rows, answers, new]: the tokens of each answer, −1 after the last one.
    index
        int64 [models, rows]: the sample that was continued, −1 for none.
    """

    tokens: Annotated[np.ndarray, "iu models rows answers new"]


def continued_samples(member: Membership, part: np.ndarray, most: int) -> np.ndarray:
    """Return which samples each model continues, int64 [models, rows], ascending and then filled with −1.

    A model continues all forgotten and held-out samples, and up to ``most`` of the retained samples and of the test
    part (``part`` uint8 [samples]). Retained and test samples are drawn by the model's seed alone, so that a model and
    the one retrained in its place continue the same samples.
    """
    roles = {
        "forgotten_or_heldout": (member.forget | member.heldout, None),
        "retain": (member.retain, most),
        "test": (np.broadcast_to(part == 1, member.forget.shape), most),
    }
    return draw(member, "generate", roles)


@dataclass(frozen=True)
class Relearned(Stored):
    """``signals.npz``: answers of models after some numbers of steps of relearning, and with rounded weights.

    Parameters
    ----------
    steps
        int64 [points]: the numbers of steps of relearning, the first of them 0.
    phi
        float32 [models, points, rows]: φ = log(p/(1 − p)) of the label that a model was trained with.
    right
        bool [models, points, rows]: whether the model predicts that label.
    taught
        bool [models, rows]: the samples that a model relearned.
    index
        int64 [rows]: the sample of each row in the data. Models are the defender's, in the order of the memberships.
    bits
        int64 [bits]: the numbers of bits to which weights were rounded, before the models relearn anything. Empty if a
        study does not evaluate rounded models.
    phi_rounded
        float32 [models, bits, rows]: φ of the rounded models.
    right_rounded
        bool [models, bits, rows]: whether the rounded models predict the label.
    """

    #: Fields that all models share.
    SHARED = ("steps", "index", "bits")

    steps: Annotated[np.ndarray, "iu points"]
    phi: Annotated[np.ndarray, "f models points rows"]
    right: Annotated[np.ndarray, "b models points rows"]
    taught: Annotated[np.ndarray, "b models rows"]
    index: Annotated[np.ndarray, "iu rows"]
    bits: Annotated[np.ndarray, "iu bits"] = field(default_factory=lambda: np.zeros(0, np.int64))
    # The axes m and n are those of models and of rows, and 0 long without bits.
    phi_rounded: Annotated[np.ndarray, "f m bits n"] = field(default_factory=lambda: np.zeros((0, 0, 0), np.float32))
    right_rounded: Annotated[np.ndarray, "b m bits n"] = field(default_factory=lambda: np.zeros((0, 0, 0), bool))

    @classmethod
    def empty(cls, steps: np.ndarray, index: np.ndarray, bits: np.ndarray) -> "Relearned":
        """Return the record of a batch without a defender's model, such as one of shadow models alone.

        Parameters
        ----------
        steps
            int64 [points]: the numbers of steps of relearning.
        index
            int64 [rows]: the sample of each row in the data.
        bits
            int64 [bits]: the numbers of bits to which weights were rounded.
        """
        curves = (0, len(steps), len(index))
        rounded = (0, len(bits), len(index)) if len(bits) else (0, 0, 0)
        return cls(
            steps=steps, phi=np.zeros(curves, np.float32), right=np.zeros(curves, bool), index=index, bits=bits,
            taught=np.zeros((0, len(index)), bool),
            phi_rounded=np.zeros(rounded, np.float32), right_rounded=np.zeros(rounded, bool),
        )  # fmt: skip


def draw(member: Membership, purpose: str, roles: Mapping[str, tuple[np.ndarray, int | None]]) -> np.ndarray:
    """Return the sample numbers of each model in ascending order, int64 [models, rows], filled with −1.

    The draw depends on the model's seed, the role's name and the ``purpose`` alone. So a model and the one retrained in
    its place get the same samples.

    Parameters
    ----------
    roles
        Name → which samples have this role, bool [models, samples], and how many are drawn at most (None: all).
    """
    sampled = []
    for number, seed in enumerate(member.seed.tolist()):
        samples = []
        for name, (mask, most) in roles.items():
            rows = np.flatnonzero(mask[number])
            samples.append(rows if most is None else generator(purpose, name, seed).permutation(rows)[:most])
        sampled.append(np.sort(np.concatenate(samples)))
    width = max(map(len, sampled), default=0)
    padded = [np.pad(samples, (0, width - len(samples)), constant_values=-1) for samples in sampled]
    return np.array(padded, np.int64).reshape(len(sampled), width)


def read(path: str | Path, models: int) -> Gradients | BySample:
    """Read a file of signals: one with a field ``values`` is `BySample`, any other `Gradients`.

    ``models`` is the number of models that the file must hold. Raises ArtifactError for a wrong file, and FailedError
    if there are no models.
    """
    check = Check(path, read_arrays(path))
    kind = BySample if "values" in check.arrays else Gradients
    return kind(**kind.checked(check, models=models))
