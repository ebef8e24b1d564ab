"""How much every model and sample contributes to a method's numbers: the basis of differences between methods."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from unlearning_audit.evaluation.stored import Stored
from unlearning_audit.stats import Estimate, paired
from unlearning_audit.stats.crossed import PerModel, averaging
from unlearning_audit.store.files import Check, read_arrays, replacing

#: How the distance of a number from retraining is measured: as a difference, as a ratio to 1, or as a difference of
#: logarithms.
SCALES = ("difference", "ratio", "log")

#: How much a number would vary if the method were retraining. "samples": only by the draw of forgotten and held-out
#: samples, whatever the models are. "retrained": as much as two groups of retrained models differ. "itself": as much as
#: the number itself does, and that of the models with which it is compared.
OF_SAMPLES, OF_RETRAINED, OF_ITSELF = CHANCES = ("samples", "retrained", "itself")

#: The dtypes of fields of an `Effect` in files.
_DTYPES: dict[str, Any] = {"names": str, "influence": np.float32}
_DTYPES |= dict.fromkeys(("value", "imagined", "p", "latent"), np.float64)
_DTYPES |= dict.fromkeys(("unit", "split", "index"), np.int64)


@dataclass(frozen=True)
class DecisionRule:
    """How a number is compared with retraining.

    Parameters
    ----------
    direction
        +1 if models that forgot nothing have a larger number than retrained ones, −1 if a smaller one.
    margin
        The field of a study's margins that says which distance still counts as retrained, or that number as text.
    ideal
        The value that theory predicts for retraining; NaN if only retrained models can tell.
    scale
        The scale of margins, one of `SCALES`.
    deciding
        Whether a verdict rests on the number; else it is a measure of utility that a method must keep.
    two_sided
        Whether a number beyond retraining means that models know the samples less than if they had never seen them.
    units
        The name of the units that are independent of each other, except for common samples.
    narrows
        Whether more units or models make the interval narrower.
    chance
        What the number varies by if the method is retraining, one of `CHANCES`.
    lowest, highest
        The smallest and the largest possible value.
    coarse
        Whether ``coarse_margin`` replaces the margin if retraining itself is not shown to be within the margin. If
        ``coarse_margin`` is infinite, the metric then decides only whether the method is distinguishable.
    coarse_margin
        The wider margin for ``coarse``.
    draw
        Whether ``ideal`` requires that forgotten and held-out samples are a random draw, as it does wherever ``chance``
        is "samples". False if retraining has this value whichever samples are forgotten.
    """

    direction: int
    margin: str
    ideal: float = np.nan
    scale: str = "difference"
    deciding: bool = True
    two_sided: bool = True
    units: str = "blocks"
    narrows: bool = True
    chance: str = OF_ITSELF
    lowest: float = -np.inf
    highest: float = np.inf
    coarse: bool = False
    coarse_margin: float = np.inf
    draw: bool = True

    def __post_init__(self) -> None:
        """Raise ValueError for a direction, scale or chance that does not exist."""
        for name, allowed in {"direction": (1, -1), "scale": SCALES, "chance": CHANCES}.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(map(str, allowed))}")

    def without_draw(self) -> "DecisionRule":
        """Return the decision rule for samples that are not a random draw.

        A rule that depends on the draw (``draw`` or ``chance`` "samples") loses its ``ideal``, so that retrained models
        replace it, and its ``chance`` becomes "itself", because the number no longer varies by the draw only. Any other
        rule is unchanged.
        """
        return replace(self, ideal=np.nan, chance=OF_ITSELF) if self.draw or self.chance == OF_SAMPLES else self


@dataclass(frozen=True)
class Effect(Stored):
    """K numbers of one metric on the same models and samples, as `unlearning_audit.stats.paired` reads them.

    Parameters
    ----------
    names
        str [K]: the attack of each number, "" without one.
    value
        float64 [K, models]: each number of each model.
    influence
        float [K, models, rows]: the influence of each sample on a value; 0 where a model has no value for the sample.
    imagined
        float64 [K, models, k]: the influence of imaginary samples on a value. Imaginary samples give an interval a
        width even if all samples are alike.
    unit
        int64 [models]: the unit of each model. Models of different units share nothing but samples.
    split
        int64 [models]: the split of each model. Models of one unit and one split are repetitions.
    index
        int64 [rows]: the samples.
    rule
        How the numbers are compared with retraining.
    p
        float64 [K]: p-values of an exact test of ``rule.ideal``, valid for the largest of all K; None: no such test.
    latent
        float64 [models]: for a bounded number, the quality of each model on an unbounded scale, or None.
    partners
        Whether repetitions, taken in order, come from the same originals as those of other methods, so that differences
        are computed in pairs.
    """

    names: Annotated[tuple[str, ...], "U numbers"]
    value: Annotated[np.ndarray, "f numbers models"]
    influence: Annotated[np.ndarray, "f numbers models rows"]
    imagined: Annotated[np.ndarray, "f numbers models imagined"]
    unit: Annotated[np.ndarray, "i models"]
    split: Annotated[np.ndarray, "i models"]
    index: Annotated[np.ndarray, "i rows"]
    rule: Annotated[DecisionRule, "U"]
    p: Annotated[np.ndarray | None, "f numbers"] = None
    latent: Annotated[np.ndarray | None, "f models"] = None
    partners: Annotated[bool, "b"] = True

    def arrays(self) -> dict[str, np.ndarray]:
        """Return name → array for all fields that are not None: influences as float32, and the rule as JSON."""
        rule = json.dumps(asdict(self.rule), default=lambda number: number.item())
        values = {**super().arrays(), "rule": rule}
        return {name: np.asarray(value, _DTYPES.get(name)) for name, value in values.items()}

    @classmethod
    def checked(cls, check: Check, **sizes: int | None) -> dict[str, Any]:
        """Return name → value of each field, with names as a tuple, influences as float64 and a `DecisionRule`. Raises
        ArtifactError that names the field that is wrong."""
        values = super().checked(check, **sizes)
        if not values["value"].size:
            check.fail("value", f"has shape {values['value'].shape}, but needs a number and a model at least")
        names, influence = tuple(values["names"].tolist()), values["influence"].astype(np.float64)
        return {**values, "names": names, "influence": influence, "rule": DecisionRule(**json.loads(values["rule"]))}

    def over_copies(self, original: np.ndarray) -> "Effect":
        """Return the effect of originals in place of models: means over the copies of each.

        ``original`` int [models]: a number that copies of one model have in common.
        """
        average, first = averaging(original)  # weights of a mean, [originals, models]; the first copy of each original
        means = {name: average @ getattr(self, name) for name in ("influence", "imagined")}
        latent = None if self.latent is None else average @ self.latent
        value, unit, split = self.value @ average.T, self.unit[first], self.split[first]
        return replace(self, **means, value=value, unit=unit, split=split, latent=latent)

    @property
    def varies(self) -> bool:
        """Return whether there are several models, or influences of real or imaginary samples, to show how the numbers
        vary."""
        return len(self.unit) > 1 or bool(self.influence.any() or self.imagined.any())

    @property
    def repeats(self) -> bool:
        """Return whether a split has more than one model."""
        # The columns of [2, models] are (unit, split); repetitions have equal ones.
        return len(np.unique(np.stack([self.unit, self.split]), axis=1).T) < len(self.unit)

    def estimate(self) -> Estimate:
        """Return the first number as a mean over units, with a 95 % interval that covers samples, models and units. The
        limits are NaN if neither models nor samples show how the number varies; ``n`` counts models."""
        numbers = paired.distances(
            value=self.value, influence=self.influence, unit=self.unit, split=self.split, imagined=self.imagined
        )
        mean = replace(numbers.estimates()[0], n=len(self.unit))  # [0]: of the first number
        return mean if self.varies else replace(mean, low=np.nan, high=np.nan)

    def alike(self, reference: "Effect") -> bool:
        """Return whether both effects have the same attacks, models and samples in the same order."""
        equal = [np.array_equal(getattr(self, name), getattr(reference, name)) for name in ("unit", "split", "index")]
        return self.names == reference.names and all(equal)


def single(
    *,
    value: np.ndarray,
    influence: np.ndarray | None = None,
    unit: np.ndarray,
    rule: DecisionRule,
    split: np.ndarray | None = None,
    index: np.ndarray | None = None,
    imagined: np.ndarray | None = None,
    latent: np.ndarray | None = None,
) -> Effect:
    """Return an effect with one number per model.

    Parameters
    ----------
    value
        float64 [models].
    influence
        float64 [models, rows]: the influence of each sample on the value; None: no samples.
    unit
        int64 [models]: models of different units share nothing but samples.
    rule
        How the number is compared with retraining.
    split
        int64 [models]: models of one unit and one split are repetitions; None: all belong to split 0.
    index
        int64 [rows]: the numbers of the samples; None: 0, 1, 2 …
    imagined
        float64 [models, k]: the influence of imaginary samples; None: none.
    latent
        float64 [models]: for a bounded number, the quality of each model on an unbounded scale.
    """
    models = len(value)
    influence = np.zeros((models, 0)) if influence is None else influence
    # The first axis counts numbers: with one number it is 1 long, which [None] adds.
    return Effect(
        names=("",), value=value[None], influence=influence[None], unit=np.asarray(unit), rule=rule, latent=latent,
        imagined=np.zeros((1, models, 0)) if imagined is None else imagined[None],
        split=np.zeros(models, np.int64) if split is None else np.asarray(split),
        index=np.arange(influence.shape[1]) if index is None else np.asarray(index),
    )  # fmt: skip


def several(
    names: Sequence[str],
    parts: Sequence[PerModel],
    *,
    unit: np.ndarray,
    split: np.ndarray,
    rule: DecisionRule,
    index: np.ndarray | None = None,
) -> Effect:
    """Return an effect with one number per model for each of several attacks.

    Parameters
    ----------
    names
        [K]: the attacks.
    parts
        [K]: for each attack, the values of the models, and the influence of real and of imaginary samples on them. All
        have equal shapes.
    unit, split
        int64 [models]: models of different units share only samples, models of one unit and one split are repetitions.
    rule
        How the numbers are compared with retraining.
    index
        int64 [rows]: the samples (None: 0, 1, 2 …).
    """
    fields = ("value", "influence", "imagined")
    arrays: dict[str, Any] = {name: np.stack([getattr(part, name) for part in parts]) for name in fields}
    index = np.arange(arrays["influence"].shape[2]) if index is None else index
    return Effect(names=tuple(names), **arrays, unit=unit, split=split, index=index, rule=rule)


def write(path: str | Path, effects: dict[str, Effect]) -> None:
    """Write ``effects.npz`` atomically: each field of an effect as an array "name.field".

    Parameters
    ----------
    effects
        Name of a number → effect.
    """
    arrays: dict[str, Any] = {"metrics": np.array(list(effects), "U")}
    for name, effect in effects.items():
        arrays |= {f"{name}.{field}": value for field, value in effect.arrays().items()}
    # Most values are zeros and few differ: compression makes the file ten times smaller.
    with replacing(path) as part_file, part_file.open("wb") as file:
        np.savez_compressed(file, **arrays)


def read(path: str | Path) -> dict[str, Effect]:
    """Read and check ``effects.npz``: name of a number → effect. Raises ArtifactError that names the file and the
    field."""
    check = Check(path, read_arrays(path))
    effects = {}
    for name in check.field("metrics", "U", (None,)).tolist():
        fields = {field.removeprefix(f"{name}."): value for field, value in check.arrays.items()}
        effects[name] = Effect(**Effect.checked(Check(f"{path}: {name}", fields)))
    return effects
