"""What a plug-in's file says about itself: one record of a protocol, one of each quantity that a metric computes.

Records are for planning and display. They are no part of the digest of code, so editing one renames no artifact.
"""

from dataclasses import field, replace
from math import nan
from typing import Literal

from pydantic.dataclasses import dataclass

#: Names at the top level of a file that hold such records.
RECORDS = (
    "PROTOCOL", "QUANTITIES", "DRAWN_FROM", "DEFAULT", "LEARNS", "LIBRARIES", "AT_HAND", "PROTOCOL_MINIMUM",
    "READS_FOLDERS", "ATTACK_SETS", "PRINTED", "CLASSICAL", "READINGS", "SHOWS",
    "SMALL",
)  # fmt: skip


#: What protocols offer to metrics.
OFFERS = {
    "forgotten": "models forget samples",
    "weights": "the models themselves, and not only what they answered",
    "fair_draw": "which samples are forgotten and which held out was drawn",
    "game": "attacks are asked which of the two a sample is, in pairs of splits",
    "swapped_pairs": "what one split of a pair forgets the other never saw",
    "coins": "forgotten and held-out samples come in pairs, of which a coin chose",
    "canaries": "all that is forgotten are canaries that coins chose",
    "target_samples": "each is kept, forgotten or never seen, in target and in shadow models",
    "one_forget_set": "many models forget the same samples, and as many are retrained without them",
    "seeds": "models differ in nothing but their seed",
    "confused_labels": "the labels of what is forgotten were confused",
    "selection": "every sample was seen by half of the models, and none is forgotten",
    "requests": "what is forgotten comes as several requests",
    "same_samples": "shadow models saw, or forgot, the very samples that target models are asked about",
    "imported": "what a folder holds of models that were made elsewhere, and whatever metrics find in it",
    "published": "scores and readings of each sample, in the place of logits",
}


@dataclass(frozen=True)
class Protocol:
    """What a protocol is; every field has a default.

    ``offers``: what metrics and attacks may ask for, names of `OFFERS`. They say in ``NEEDS`` what, and a metric in
    ``DEFAULT`` by which offer it is computed without being named; the others are computed where a scenario names them,
    and compare with retrained models, unless their file says ``ALONE = True``. ``PROTOCOL_MINIMUM`` maps an option of
    the protocol to the least that it may be: a number, an option of the metric, or that option and how many more, as
    in ``("minimum", 1)``. One that names the offer "imported" in
    ``DEFAULT`` says in a row without number what a folder lacks of what it needs. ``attacked``: attacks
    score the models first. ``own_rows``: attacks may be named although there are no shadow models; each learns from
    rows of the audited model itself. ``counts``: options that count blocks and change none of them, so that more blocks
    rename nothing. ``references``: methods
    whose logits the metrics compare with, retrain and an independent retrain. ``forgets``: False if nothing is
    unlearned. ``selects``: the metric whose ``select(case, options)`` tells which samples the models memorise.
    ``system``: the system of evaluation that it is a part of, if it is not one by itself. ``figures``: kinds of figures
    that a study without any draws of its scenarios. Papers' settings name what is forgotten and how many models the
    adversary has: ``targets`` is the option that says the former, and ``shadows`` the one that counts the latter, and
    how many models it counts as one.
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
    """A column of the headline: its ``place`` from the left, its ``head`` and ``group``, the ``role`` of the rows
    that it shows and whether with their ``interval``. ``besides``: left out for swapped pairs that have a Q, where the
    quantity belongs to another system and has tables of its own."""

    place: int
    head: str = ""
    role: str = ""
    group: str = ""
    interval: bool = True
    besides: bool = False


@dataclass(frozen=True)
class Comparison:
    """How the meta-evaluation reads a quantity: under which ``name``, at which ``place`` of its table.

    ``attack``: that of the rows to read ("" = any one). ``ideal``: what perfect unlearning scores, NaN if unknown;
    ``two_sided``: only the distance from that counts; else ``falling``: less is better, or more is. ``per_model``: the
    quantity that is given for every seed, where it has another name. ``role``: that of the rows.
    ``retrained``: it reads retrained models. ``shadows``: protocols whose shadow models it reads as well.
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
    """One number that a metric's file computes, in the rows whose metric is ``name`` (with * for any text).

    ``label`` on paper (empty: the name with spaces); a * in it stands for the text in the name. ``better``: "higher",
    "lower", or "" where neither is. ``reading``: one sentence on what the extremes mean. ``ideal``: what retrained
    models score by theory, NaN if theory does not say. ``logarithmic``: values span orders of magnitude and are
    compared by ratios. ``primary``: it speaks for its system in sentences; ``system``: what people call that system,
    where others judge the same models. ``attacks``: names in the column attack
    that this metric gives rows of, besides the study's attacks. ``columns``: its places in the headline.
    ``comparisons``: how the meta-evaluation reads it. ``printed``: what it is called in papers' tables, if otherwise,
    with {role}, {protocol} and {on_target} ("_on_" and the target) of the number; ``unsigned``: printed as a size;
    ``setting``: what such tables say of it besides, as in "a=b"; ``private``: there is one of private training alone.
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
    private: bool = False

    @property
    def display_name(self) -> str:
        """Its label, or its name with spaces."""
        return self.label or self.name.replace("_", " ")


def name_in_study(quantity: str, key: str, file: str) -> str:
    """What a quantity is called in the tables of a study that calls the metric in ``file`` (its stem) ``key``.

    "" stands for the metric itself. A metric that is called otherwise than its file may stand beside it with other
    options: then its name stands before those of all its quantities, "key.quantity".
    """
    return key if not quantity else quantity if key == file else f"{key}.{quantity}"


def renamed(quantity: Quantity, key: str, file: str) -> Quantity:
    """The record of a quantity by the name of `name_in_study`, which then stands in all its labels as well."""
    name = name_in_study(quantity.name, key, file)
    if name == quantity.name or (not quantity.name and key == file):
        return replace(quantity, name=name)
    mark = f" ({key.replace('_', ' ')})"
    columns = tuple(replace(column, head=f"{column.head or quantity.label}{mark}") for column in quantity.columns)
    comparisons = tuple(
        replace(how, name=how.name + mark, per_model=how.per_model and name_in_study(how.per_model, key, file))
        for how in quantity.comparisons
    )
    label = f"{quantity.label}{mark}" if quantity.label else ""
    return replace(quantity, name=name, label=label, columns=columns, comparisons=comparisons, printed="")
