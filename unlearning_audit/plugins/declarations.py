"""Declarations in a plug-in's file: one record of a protocol, or one of each quantity that a metric computes.

Records are for planning and display. The digest of code ignores them, so that editing a record renames no artifact.
"""

from dataclasses import field, replace
from math import nan
from typing import Literal

from pydantic.dataclasses import dataclass

#: Names of constants that hold declarations.
DECLARATIONS = (
    "PROTOCOL", "QUANTITIES", "DRAWN_FROM", "DEFAULT", "LEARNS", "LIBRARIES", "AT_HAND", "PROTOCOL_MINIMUM",
    "READS_FOLDERS", "ATTACK_SETS", "PRINTED", "CLASSICAL", "READINGS", "SMALL",
)  # fmt: skip


#: What a protocol can offer to metrics and attacks → what this means.
OFFERS = {
    "forgotten": "models forget samples",
    "weights": "the models themselves, and not only their logits",
    "fair_draw": "a random draw decides which samples are forgotten and which are held out",
    "game": "attacks decide, in pairs of splits, whether a sample was forgotten or held out",
    "swapped_pairs": "the samples that one split of a pair forgets were never seen by the other",
    "coins": "forgotten and held-out samples come in pairs; a coin chose which of the two is forgotten",
    "canaries": "all that is forgotten are canaries that coins chose",
    "target_samples": "each sample is kept, forgotten or never seen, in target and in shadow models",
    "one_forget_set": "many models forget the same samples, and as many are retrained without them",
    "seeds": "models differ only in their seed",
    "confused_labels": "the labels of the forgotten samples were confused",
    "selection": "half of the models saw each sample, and no sample is forgotten",
    "requests": "samples are forgotten in several requests",
    "same_samples": "shadow models saw, or forgot, the same samples on which target models are attacked",
    "imported": "imported models in a folder, with whatever metrics can use of them",
    "published": "scores and values of each sample, instead of logits",
}


@dataclass(frozen=True)
class Protocol:
    """The declaration of a protocol.

    Every field has a default.

    Attributes
    ----------
    offers
        Names of `OFFERS` that metrics and attacks may need. They list their needs in ``NEEDS``. A metric's ``DEFAULT``
        names the offers with which it is computed without being named. Other metrics are computed where a scenario
        names them, and compare with retrained models unless their file has ``ALONE = True``. A metric's
        ``PROTOCOL_MINIMUM`` maps an option of the protocol to its smallest value: a number, an option of the metric, or
        such an option and how much more, as in ``("minimum", 1)``. A metric with the offer "imported" in ``DEFAULT``
        reports what a folder lacks in a row without a number.
    attacked
        A study of this protocol must name attacks, which score the models.
    own_rows
        A study of this protocol may name attacks, each of which learns from other samples of the audited model itself,
        so that shadow models are not needed.
    counts
        Options that state numbers of blocks. They do not change a block, so adding blocks keeps the names of results.
    references
        Methods whose logits the metrics compare with, retrain and an independent retrain.
    forgets
        False if nothing is unlearned.
    selects
        The metric whose ``select(evaluation, options)`` returns which samples the models memorise.
    system
        The evaluation system to which the protocol belongs, if it is not one by itself.
    figures
        Kinds of figures that are drawn for a study that names none.
    targets
        The option that names what is forgotten.
    shadows
        The option that counts the adversary's models, and how many models it counts as one. Settings in papers' tables
        print both.
    """

    offers: tuple[str, ...] = ("forgotten",)
    attacked: bool = False
    own_rows: bool = False
    counts: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    forgets: bool = True
    selects: str = ""
    system: str = ""
    figures: tuple[str, ...] = ()
    targets: str = ""
    shadows: tuple[str, int] | tuple[()] = ()


@dataclass(frozen=True)
class Column:
    """A column of the headline table: its ``place`` from the left, its ``head`` and ``group``, the ``role`` of the rows
    that it shows, and whether it shows their ``interval``.

    Attributes
    ----------
    besides
        Whether the column is left out for swapped pairs that have a Q. Its quantity then belongs to another system,
        which has tables of its own.
    """

    place: int
    head: str = ""
    role: str = ""
    group: str = ""
    interval: bool = True
    besides: bool = False


@dataclass(frozen=True)
class Comparison:
    """How the meta-evaluation uses a quantity: under which ``name``, and at which ``place`` of its table.

    Attributes
    ----------
    attack
        The attack whose rows are read ("": any).
    ideal
        The value under perfect unlearning, NaN if unknown.
    two_sided
        Only the distance from ``ideal`` counts; otherwise ``falling`` tells whether lower or higher values are better.
    per_model
        The name of the quantity with one value per seed, if it differs.
    role
        The role of the rows.
    retrained
        Whether the quantity needs retrained models.
    shadows
        Protocols whose shadow models it needs too.
    """

    name: str
    place: int = 100
    attack: str = ""
    ideal: float = nan
    two_sided: bool = False
    falling: bool = False
    per_model: str = ""
    role: str = ""
    retrained: bool = False
    shadows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Quantity:
    """One number that a metric computes, in the rows whose metric is ``name`` (with * for any text).

    Attributes
    ----------
    label
        The printed name of the quantity (empty: the name with spaces); a * in it stands for the text in the name.
    better
        "higher", "lower", or "" if neither.
    reading
        One sentence on what the extremes mean.
    ideal
        The value of retrained models in theory, NaN if unknown.
    logarithmic
        Values span orders of magnitude and are compared by ratios.
    primary
        Sentences state this number for its system.
    system
        The name of that system, if others evaluate the same models.
    attacks
        Names in the column attack of this metric's rows, besides the study's attacks.
    columns
        The columns of the headline table that show the quantity.
    comparisons
        How the meta-evaluation uses the quantity.
    printed
        The name of the quantity in papers' tables, if it differs, with {role}, {protocol} and {on_target} ("_on_" and
        the target).
    unsigned
        Papers' tables print its absolute value.
    setting
        A further setting in such tables, as in "a=b".
    """

    name: str
    label: str = ""
    better: Literal["higher", "lower", ""] = ""
    reading: str = ""
    ideal: float = nan
    logarithmic: bool = False
    primary: bool = False
    system: str = ""
    attacks: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    comparisons: tuple[Comparison, ...] = field(default=())
    printed: str = ""
    unsigned: bool = False
    setting: str = ""

    @property
    def display_name(self) -> str:
        """The label, or the name with spaces if there is no label."""
        return self.label or self.name.replace("_", " ")


def name_in_study(quantity: str, key: str, file: str) -> str:
    """Return the name of a ``quantity`` in a study's tables, for a metric in ``file`` (its stem) that the study calls
    ``key``.

    ``quantity`` "" is the metric itself. A metric with another name than its file may be used twice with different
    options; then its name precedes those of its quantities, "key.quantity".
    """
    of_quantity = quantity if key == file else f"{key}.{quantity}"
    return of_quantity if quantity else key


def renamed(quantity: Quantity, key: str, file: str) -> Quantity:
    """Return the declaration of a ``quantity`` under its name in the study's tables (`name_in_study`).

    If the quantity's name there differs from its own, its label, its heads of columns and its names of comparisons also
    state ``key``, so that two metrics of one file can be distinguished, and ``printed`` is left out. A quantity without
    a name, of a metric that is called as its file, only gets that name.

    Parameters
    ----------
    key
        The study's name of the metric.
    file
        The stem of the metric's file.
    """
    name = name_in_study(quantity.name, key, file)
    if name == quantity.name or (not quantity.name and key == file):
        return replace(quantity, name=name)
    mark = f" ({key.replace('_', ' ')})"
    columns = tuple(
        replace(column, head=f"{column.head or quantity.display_name}{mark}") for column in quantity.columns
    )
    # ``per_model`` names another quantity of the same file, or is "".
    comparisons = tuple(
        replace(use, name=use.name + mark, per_model=use.per_model and name_in_study(use.per_model, key, file))
        for use in quantity.comparisons
    )
    label = f"{quantity.label}{mark}" if quantity.label else ""
    return replace(quantity, name=name, label=label, columns=columns, comparisons=comparisons, printed="")
