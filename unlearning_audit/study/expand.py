"""Expand defaults, overrides and axes to single scenarios; remember the layer that set each field."""

import copy
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from unlearning_audit.plugins.suggest import unknown
from unlearning_audit.study.messages import Path, StudyError, as_yaml, contains

#: Fields that map names to options, or just list names; a scenario's own replace the defaults' as a whole. Its metrics,
#: which map names to options too, are added to those of the defaults.
PLUGIN_FIELDS = ("methods", "attacks")


@dataclass(frozen=True)
class Step:
    """One value of an axis, and what it changes.

    Parameters
    ----------
    label
        The value in words.
    where
        The path in the study's file at which the value stands.
    overrides
        The fields that the value sets.
    inside
        The overrides set single fields of methods or attacks and keep their other fields.
    """

    axis: str
    label: str
    where: Path
    overrides: dict[str, Any]
    inside: bool = False


@dataclass(frozen=True)
class Variant:
    """A scenario at one point of its axes.

    Parameters
    ----------
    axes
        Axis → label of its value at this point.
    fields
        The merged fields.
    layers
        The mappings of fields that were merged, each with its path in the study. A later one takes precedence.
    """

    name: str
    axes: dict[str, str]
    fields: dict[str, Any]
    layers: list[tuple[Path, dict[str, Any]]]

    @property
    def setting(self) -> str:
        """Return the labels of all axes, such as "epsilon=8;size=500"; "" without axes."""
        return ";".join(f"{axis}={label}" for axis, label in self.axes.items())

    def blame(self, error: StudyError) -> StudyError:
        """Return ``error`` with the path of the layer to blame before its own.

        For an error in a combination of fields (``joint``), this is the scenario's path. For an error in one field, it
        is the path of the last layer that sets the field. If none sets it, for example because it is missing, the layer
        with most of the field's path is blamed, or the scenario if no layer has any of it.
        """
        if error.joint:
            at = f" (at {self.setting})" if self.axes else ""
            return StudyError(("scenarios", self.name, *error.path), error.sentence + at)
        for depth in range(len(error.path), 0, -1):
            for path, mapping in reversed(self.layers):
                if contains(mapping, error.path[:depth]):
                    return error.under(*path)
        return error.under("scenarios", self.name)


def variants(name: str, defaults: dict[str, Any], overrides: dict[str, Any]) -> Iterator[Variant]:
    """Yield one variant of a scenario for each combination of the values along the axes of its ``vary``; the scenario
    alone if it has no axes.

    Parameters
    ----------
    defaults
        The fields that all scenarios share.
    overrides
        The fields that this scenario states.

    Raises
    ------
    StudyError
        For fields that are not valid.
    """
    root: Path = ("scenarios", name)
    layer: Path = ("defaults",)
    layers = [(layer, defaults), (root, overrides)]
    try:  # ``layer`` is where an error comes from; it becomes ``root`` only if the defaults raised none
        base, layer = override({}, defaults), root
        base = override(base, overrides)
        axes = base.pop("vary", None) or {}
        path_of_axes = (*(root if "vary" in overrides else ("defaults",)), "vary")
        for combination in itertools.product(*_steps_of_axes(axes, base, path_of_axes)):
            fields = base
            for step in combination:
                fields = override(fields, step.overrides, inside=step.inside)
            further = [(step.where, step.overrides) for step in combination]
            labels = {step.axis: step.label for step in combination}
            yield Variant(name, labels, copy.deepcopy(fields), layers + further)
    except StudyError as error:
        # Errors of axes have the whole path already.
        raise (error if error.path[:1] in (("scenarios",), ("defaults",)) else error.under(*layer)) from None


def override(base: dict[str, Any], overrides: dict[str, Any], *, inside: bool = False) -> dict[str, Any]:
    """Return the fields of a scenario, ``base``, in which the fields of ``overrides`` replace fields of the same name.
    Nested mappings are merged (`_merged`), except that ``vary`` is replaced as a whole.

    Methods and attacks are replaced as a whole, too, with two exceptions. A list of names keeps the old options of the
    plug-ins that it names. With ``inside``, which an axis of single options such as methods.ga.lr sets, the new options
    are merged into the old ones. Raises StudyError for methods or attacks that are neither a list of names nor a
    mapping.
    """
    merged = dict(base)
    for key, value in overrides.items():
        if key in PLUGIN_FIELDS:
            merged[key] = _plugins_over(key, merged.get(key), value, inside)
        else:
            merged[key] = value if key == "vary" else _merged(merged.get(key), value)
    return merged


def label(value: Any) -> str:
    """Return a value of an axis as the text that names it in tables: "inf" for infinity, "none" for None."""
    if isinstance(value, float):
        return "inf" if math.isinf(value) else f"{value:g}"
    return "none" if value is None else str(value)


def _merged(old: Any, new: Any) -> Any:
    """Return ``new`` merged into ``old`` at any depth if both are mappings, unless each has a "name" and the names
    differ. In any other case return ``new`` alone: the options of one plug-in are not those of another."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    if "name" in new and old.get("name") not in (None, new["name"]):
        return new
    return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}


def _plugins_over(key: str, old: Any, new: Any, inside: bool) -> dict[str, Any]:
    """Return the methods or attacks of a scenario after an override: name → options.

    If ``new`` is a list of names, their options are taken from ``old``, None for a name that is not in ``old``. A
    mapping replaces ``old``, except with ``inside``: an axis that sets single options, such as methods.ga.lr, is merged
    into ``old``.

    Parameters
    ----------
    key
        "methods" or "attacks".
    old
        What the scenario had.
    new
        The override.
    inside
        Whether ``new`` comes from an axis that sets single options.

    Raises
    ------
    StudyError
        If ``new`` is neither a list of names nor a mapping.
    """
    old = old or {}
    if isinstance(new, list):
        for i, name in enumerate(new):
            if not isinstance(name, str):
                raise StudyError((key, i), f"must be a name, found {as_yaml(name)}; use a mapping to give options")
        return {name: old.get(name) for name in new}
    if not isinstance(new, dict):
        raise StudyError((key,), f"must list names or map names to options, found {as_yaml(new)}")
    return {**old, **{name: _merged(old.get(name), value) for name, value in new.items()}} if inside else new


# ---------------------------------------------------------------- axes


def _steps_of_axes(axes: Any, base: dict[str, Any], where: Path) -> list[list[Step]]:
    """Return the steps of each axis of ``vary``, one step for each value.

    Parameters
    ----------
    axes
        The content of ``vary``.
    base
        The scenario's fields.
    where
        The path of ``vary`` in the study.

    Raises
    ------
    StudyError
        For axes or labels that are not valid or occur twice.
    """
    if not isinstance(axes, dict):
        raise StudyError(where, f"must map axes to their values, found {as_yaml(axes)}")
    steps: list[list[Step]] = []
    for axis, values in axes.items():
        of_axis = _steps_of_axis(axis, values, base, where)
        name, labels = of_axis[0].axis, [step.label for step in of_axis]  # an axis "recipe.lr" has the name lr
        if name in [earlier[0].axis for earlier in steps]:  # all steps of an axis have the axis's name
            advice = "map labels to fields under another name"
            raise StudyError((*where, axis), f"is a second axis called {name!r}; {advice}")
        for i, text in enumerate(labels):
            if not re.fullmatch(r"[^;=\s][^;=\n]*", text):
                raise StudyError((*where, axis), f"cannot have the label {text!r}; use text without ; and =")
            if text in labels[:i]:
                raise StudyError((*where, axis), f"has two values with the label {text!r}; keep one of the two")
        steps.append(of_axis)
    return steps


def _steps_of_axis(axis: str, values: Any, base: dict[str, Any], where: Path) -> list[Step]:
    """Return one step for each value of an axis: its label and the fields that it sets.

    A list holds values of the field that the axis is named after, such as recipe.lr. A mapping maps labels to the
    fields that they set.

    Parameters
    ----------
    base
        The scenario's fields.
    where
        The path of ``vary`` in the study.

    Raises
    ------
    StudyError
        For ``values`` that are neither a list of values nor such a mapping, and for a field of a method or attack that
        the scenario does not have.
    """
    path = (*where, axis)
    if isinstance(values, list) and values:
        if any(isinstance(value, dict) for value in values):
            raise StudyError(path, "lists a mapping; map a label to it instead, as in {small: {model: {name: linear}}}")
        keys = axis.split(".")
        if keys[0] in PLUGIN_FIELDS and len(keys) > 1 and keys[1] not in base.get(keys[0], {}):
            raise StudyError(path, unknown(keys[1], base.get(keys[0], {}), f"{keys[1]!r} among the {keys[0]}"))
        return [Step(keys[-1], label(value), where, nested(keys, value), inside=True) for value in values]
    if isinstance(values, dict) and values and all(isinstance(value, dict) for value in values.values()):
        return [Step(axis, text, (*path, text), overrides) for text, overrides in values.items()]
    found = "a value that is not a mapping" if isinstance(values, dict) else as_yaml(values)
    expected = "must list values of the field, or map each value's label to the fields it sets"
    raise StudyError(path, f"{expected}, found {found}")


def nested(path: list[str], value: Any) -> dict[str, Any]:
    """Return nested mappings in which ``path`` leads to ``value``."""
    return {path[0]: value if len(path) == 1 else nested(path[1:], value)}
