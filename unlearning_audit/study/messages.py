"""Describe errors in a study, each in one plain sentence that starts with the path of the field.

YAML has types, so values are not converted: "3" is not a number, 3.7 is not a whole number, true is not 1. Only
equivalent forms are accepted: a list for a tuple, a whole number for a real one, a number as the key of a mapping.
"""

import json
import math
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml
from pydantic import ValidationError

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.plugins.suggest import unknown

Path = tuple[str | int, ...]

#: Pattern of pydantic's words, which suit JSON → words that suit YAML.
WORDS: dict[str, Any] = {
    r", unable to parse .*| after validation.*": "",
    r"^\w+ should ": "",
    r"\ba valid integer": "a whole number",
    r"\ba valid number": "a number",
    r"\ba valid boolean": "true or false",
    r"\ba valid string": "text",
    r"\ba valid array": "a list",
    r"\b(an object|a valid dictionary)": "a mapping",
    r"(greater|less) than or equal to": lambda match: {"greater": "at least", "less": "at most"}[match[1]],
}

#: Allowed names of scenarios, methods, tables and everything else that becomes part of a file's name.
NAME = r"^[a-z0-9][a-z0-9_]*$"

#: Allowed names of metrics, which may hold a rate as in tpr_at_0.1pct_fpr.
METRIC = r"^[a-z0-9][a-z0-9_.]*$"

#: Allowed names of printed tables: the paper's name, then the table, section or appendix in it.
PRINTED = r"^[a-z][a-z0-9_]*/[a-z0-9_]+$"

#: Pattern of a text field → description.
PATTERNS = {
    NAME: "lower-case letters, digits and underscores only",
    METRIC: "lower-case letters, digits, underscores and points only",
    PRINTED: "a paper and a table of it, such as swap/table_1",
}


class StudyError(ValueError):
    """A study that cannot be run: ``path`` of the field and the ``sentence`` about it.

    ``joint``: the error lies in a combination of fields, so that it is not attributed to a single override.
    """

    def __init__(self, path: Iterable[str | int], sentence: str, joint: bool = False) -> None:
        self.path, self.sentence, self.joint = tuple(path), sentence, joint
        super().__init__(": ".join(filter(None, [".".join(map(str, self.path)), sentence])))

    def __reduce__(self) -> tuple[Any, ...]:
        # The constructor's arguments: pickle would give it the text alone.
        return StudyError, (self.path, self.sentence, self.joint)

    def under(self, *prefix: str | int) -> "StudyError":
        """Return this error with ``prefix`` before its path."""
        return StudyError((*prefix, *self.path), self.sentence, self.joint)


def plain(value: Any, path: Path = ()) -> Any:
    """Return ``value`` as nested mappings with text keys, lists and scalars. Raises StudyError for other types.

    NaN is never accepted. Infinity is accepted only as a privacy budget, where it means no budget.
    """
    if isinstance(value, dict):
        return {_text(key): plain(item, (*path, _text(key))) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, (*path, i)) for i, item in enumerate(value)]
    infinite = isinstance(value, float) and not math.isfinite(value)
    if infinite and (math.isnan(value) or "dp.epsilon" not in ".".join(map(str, path))):
        raise StudyError(path, f"must be finite, found {as_yaml(value)}")
    if value is not None and not isinstance(value, (str, bool, int, float)):
        raise StudyError(path, f"YAML reads {value} as a {type(value).__name__}; put it in quotes if it is text")
    return value


def validated(model: type[Settings], raw: Any, *where: str, also: Iterable[str] = ()) -> Any:
    """Check ``raw``, plain values as `plain` returns them, against the fields of ``model``, and return an instance of
    ``model``.

    Raises StudyError about one field: the first unknown one, or else the first with an error.

    Parameters
    ----------
    where
        The path of ``raw`` in the study.
    also
        Names of other fields that may stand beside those of the model, for suggestions.
    """
    try:
        # Strict rules for JSON suit YAML: no conversion of types, but lists for tuples and text for keys.
        return model.model_validate_json(json.dumps(raw), strict=True)
    except ValidationError as error:
        # A misspelled field comes before the one that is missing because of it.
        unknown_first = sorted(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        errors = [(_path(e, raw), e) for e in unknown_first]
    [(path, _error), *_] = errors  # the first error tells the field, which may have one for each type that it accepts
    raise StudyError((*where, *path), _sentence([e for p, e in errors if p == path], _allowed(model, path, also)))


def contains(mapping: Any, path: Path) -> bool:
    """Return whether the nested ``mapping`` has an entry at ``path``. A list of names has its names as entries."""
    for part in path:
        if isinstance(mapping, dict) and part in mapping:
            mapping = mapping[part]
        elif isinstance(mapping, list) and part in mapping:  # a name in a list of names
            mapping = None
        elif isinstance(mapping, list) and isinstance(part, int) and part < len(mapping):
            mapping = mapping[part]
        else:
            return False
    return True


def as_yaml(value: Any) -> str:
    """Return a short text that shows a value as YAML writes it, at most 60 characters."""
    if value is None:
        return "nothing"
    if isinstance(value, dict) and value:
        return "a mapping"
    if isinstance(value, float):
        return str(yaml.safe_dump(value).split()[0])
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---------------------------------------------------------------- helpers


def _text(key: str | float) -> str:
    """Return the key of a mapping as text: 0.5 as "0.5", 1.0 as "1"."""
    return f"{key:g}" if isinstance(key, float) else str(key)


def _path(error: Mapping[str, Any], raw: Any) -> Path:
    """Return the path in ``raw`` of the field that a pydantic error is about, without the names that pydantic adds for
    unions and keys."""
    path = []
    for part in error["loc"]:
        if isinstance(raw, dict) and (part in raw or error["type"] == "missing"):
            path.append(part)
            raw = raw.get(part)
        elif isinstance(raw, list) and isinstance(part, int) and part < len(raw):
            path.append(part)
            raw = raw[part]
        elif not (isinstance(raw, dict) and part == 0):  # skip the 0 of a single mapping where a list may stand
            break  # the rest are names of pydantic
    return tuple(path)


def _allowed(model: type[Settings], path: Path, also: Iterable[str]) -> set[str]:
    """Return the names of fields that are allowed beside the field at ``path``, for suggestions: the fields of the
    settings that contain it and, if these settings are the ``model`` itself, ``also``."""
    names = {*model.model_fields, *also}
    for part in path[:-1]:
        field = model.model_fields.get(str(part))
        # Settings in the field's type. A part that is no such field, such as a name or an index, changes nothing.
        inner = [] if field is None else [t for t in _types(field.annotation) if issubclass(t, Settings)]
        if inner:
            model, names = inner[0], set(inner[0].model_fields)
    return names


def _types(annotation: Any) -> list[type]:
    """Return all classes in an annotation such as ``dict[str, Privacy | None]``."""
    inner = [kind for part in typing.get_args(annotation) for kind in _types(part)]
    return [annotation, *inner] if isinstance(annotation, type) and not inner else inner


def _sentence(errors: Sequence[Mapping[str, Any]], names: set[str]) -> str:
    """Return the end of a sentence about the pydantic errors of one field, such as "must be a number, found text". A
    field that accepts several types may have an error for each; all are named.

    ``names``: the fields that are allowed in its place, for suggestions.
    """
    first, value = errors[0], errors[0]["input"]
    if first["type"] == "extra_forbidden":
        return unknown(str(first["loc"][-1]), names)
    if first["type"] == "missing" and isinstance(value, dict):
        return "is missing; add it"
    if first["type"] in ("value_error", "assertion_error"):
        sentence = first["msg"].split(", ", 1)[1]  # pydantic begins with "Value error, "
        return sentence if isinstance(value, dict) else f"{sentence}, found {as_yaml(value)}"
    expected = list(dict.fromkeys(map(_expected, errors)))
    if "be a number" in expected and "be a whole number" in expected:
        expected.remove("be a whole number")
    choice = " or ".join([expected[0], *(text.removeprefix("be ") for text in expected[1:])])
    subject = "the key must" if first["loc"][-1] == "[key]" else "must"
    return f"{subject} {choice}, found {as_yaml(value)}{_hint(choice, value)}"


def _expected(error: Mapping[str, Any]) -> str:
    """Return what pydantic expected, to follow "must": such as "be a whole number" or "have at least 1 item". Words
    that suit JSON are replaced (`WORDS`)."""
    if error["type"] == "missing":  # an item of a tuple
        return "be a longer list"
    if error["type"] == "string_pattern_mismatch":
        pattern = error["ctx"]["pattern"]
        return f"be {PATTERNS.get(pattern, f'of the form {pattern}')}"
    text: str = error["msg"]
    for pattern, word in WORDS.items():
        text = re.sub(pattern, word, text)
    return text


def _hint(expected: str, value: Any) -> str:
    """Return words to append to a message on a number that is written wrongly: how to write it and, where YAML takes it
    for text, that this is so. Return "" if no number is expected, for a value that is neither a float nor a text
    that reads as a number, and for a fraction where a whole number is expected.

    ``expected``: what the field must be, such as "be a whole number".
    """
    if "number" not in expected or not isinstance(value, (str, float)):
        return ""
    try:
        number = float(value)
    except ValueError:
        return ""
    if number.is_integer() and abs(number) < 1e15:  # beyond, not every whole number is a float
        number = int(number)
    elif "a number" not in expected:
        return ""
    text = ", which YAML takes for text" if isinstance(value, str) else ""
    return f"{text}; write {as_yaml(number)}"
