"""Messages about errors in a study: one plain sentence that starts with the path of the field.

YAML has types, so values are not converted: "3" is no number, 3.7 no whole number, true no 1. Only equivalent forms
are accepted: a list for a tuple, a whole number for a real one, a number as the key of a mapping.
"""

import json
import math
import re
import typing
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.plugins.suggest import unknown

Path = tuple[str | int, ...]

#: pydantic's error type → what the value must be.
EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping of fields",
    "literal_error": "{expected}",
    "greater_than": "greater than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "string_too_short": "at least {min_length} characters long",
    "string_too_long": "at most {max_length} characters long",
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


#: A number as people write it; YAML reads one with an exponent as text unless it has a dot and a sign.
NUMBER = re.compile(r"([+-]?\d+)(\.\d*)?(?:[eE]([+-]?)(\d+))?")

#: Whole numbers are written out below this, and where they are no longer as text.
LARGEST, LONGEST = 10**15, 18


class StudyError(ValueError):
    """A study that cannot be run: ``path`` of the field and the ``sentence`` about it.

    ``joint``: the error lies in a combination of fields, so that no single override is named.
    """

    def __init__(self, path: Iterable[str | int], sentence: str, *, joint: bool = False) -> None:
        self.path, self.sentence, self.joint = tuple(path), sentence, joint
        text = ": ".join(filter(None, [".".join(map(str, self.path)), sentence]))
        # One line, whatever keys are made of.
        super().__init__("".join(c if c.isprintable() else repr(c)[1:-1] for c in text))

    def under(self, *prefix: str | int) -> "StudyError":
        """The same error with its path extended upwards."""
        return StudyError((*prefix, *self.path), self.sentence, joint=self.joint)


def plain(value: Any, path: Path = ()) -> Any:
    """``value`` as mappings with text keys, lists and scalars, nothing else. Raises StudyError.

    NaN is refused everywhere, infinity everywhere but for a privacy budget, where it means none.
    """
    if len(path) > 30:
        raise StudyError(path[:3], "is nested more than 30 levels deep")
    if isinstance(value, dict):
        mapping = {}
        for key, item in value.items():
            name = _key(key, path)
            if name in mapping:
                raise StudyError((*path, name), "is given twice; keep one of the two")
            mapping[name] = plain(item, (*path, name))
        return mapping
    if isinstance(value, (list, tuple)):
        return [plain(item, (*path, i)) for i, item in enumerate(value)]
    infinite = isinstance(value, float) and not math.isfinite(value)
    if infinite and (math.isnan(value) or "dp.epsilon" not in ".".join(map(str, path))):
        raise StudyError(path, f"must be finite, found {as_yaml(value)}")
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        raise StudyError(path, f"holds half a character, {value!a}; write the character itself")
    if value is not None and not isinstance(value, (str, bool, int, float)):
        raise StudyError(path, f"YAML reads {value} as a {type(value).__name__}; put it in quotes if it is text")
    return value


def validated(model: type[Settings], raw: Any, *, also: Iterable[str] = (), partial: bool = False) -> Any:
    """``raw`` (see `plain`) as ``model``. Raises StudyError about the first error.

    ``also``: other fields that may stand beside those of the model, for suggestions. ``partial``: more fields
    follow, so missing or inconsistent fields are no error yet; None is returned then.
    """
    try:
        # Strict JSON rules are those of YAML: real types, but lists for tuples and text for keys.
        return model.model_validate_json(json.dumps(raw), strict=True)
    except ValidationError as error:
        errors = [(_path(e, raw), e) for e in error.errors() if not (partial and (_is_missing(e) or not e["loc"]))]
    if not errors:
        return None
    path = errors[0][0]
    raise StudyError(path, _sentence([e for p, e in errors if p == path], _allowed(model, path, also)))


def contains(mapping: Any, path: Path) -> bool:
    """Whether the nested ``mapping`` has something at ``path``; a list of names has these names."""
    for part in path:
        if isinstance(mapping, dict) and part in mapping:
            mapping = mapping[part]
        elif isinstance(mapping, list) and part in mapping:
            mapping = None
        elif isinstance(mapping, list) and isinstance(part, int) and part < len(mapping):
            mapping = mapping[part]
        else:
            return False
    return True


def as_yaml(value: Any) -> str:
    """A value as a reader knows it from YAML, shortened."""
    if value is None:
        return "nothing"
    if isinstance(value, dict) and value:
        return "a mapping"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value:+}".replace("+", "").replace("inf", ".inf").replace("nan", ".nan")
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---------------------------------------------------------------- helpers


def _key(key: Any, path: Path) -> str:
    if isinstance(key, bool) or not isinstance(key, (str, int, float)) or key != key:
        why = "YAML reads yes, no, on and off so; put it in quotes" if isinstance(key, bool) else "use text"
        raise StudyError(path, f"the key {as_yaml(key) if key is not None else 'null'} is not text ({why})")
    if isinstance(key, str) and any("\ud800" <= c <= "\udfff" for c in key):
        raise StudyError(path, f"the key {key!a} holds half a character; write the character itself")
    return key if isinstance(key, str) else f"{key:g}" if isinstance(key, float) else str(key)


def _is_missing(error: dict[str, Any]) -> bool:
    return error["type"] == "missing" and isinstance(error["input"], dict)


def _path(error: dict[str, Any], raw: Any) -> Path:
    """The part of the error's location that exists in ``raw``, or is missing there: no tags of unions or keys."""
    path = []
    for part in error["loc"]:
        if isinstance(raw, dict) and (part in raw or error["type"] == "missing"):
            path.append(part)
            raw = raw.get(part)
        elif isinstance(raw, list) and isinstance(part, int) and part < len(raw):
            path.append(part)
            raw = raw[part]
        elif not (isinstance(raw, dict) and part == 0):  # a mapping where a list of them may stand
            break
    return tuple(path)


def _allowed(model: type[Settings], path: Path, also: Iterable[str]) -> set[str]:
    """The names that may stand where the last part of ``path`` stands."""
    names = {*model.model_fields, *also}
    for part in path[:-1]:
        field = model.model_fields.get(part)
        inner = [] if field is None else [t for t in _types(field.annotation) if issubclass(t, Settings)]
        if inner:
            model, names = inner[0], set(inner[0].model_fields)
    return names


def _types(annotation: Any) -> list[type]:
    """All classes in an annotation such as ``dict[str, Privacy | None]``."""
    inner = [kind for part in typing.get_args(annotation) for kind in _types(part)]
    return [annotation, *inner] if isinstance(annotation, type) and not inner else inner


def _sentence(errors: list[dict[str, Any]], names: set[str]) -> str:
    """One sentence about the errors of one field (several: the branches of a union)."""
    first, value = errors[0], errors[0]["input"]
    if first["type"] == "extra_forbidden":
        return unknown(str(first["loc"][-1]), names)
    if _is_missing(first):
        return "is missing; add it"
    if first["type"] in ("value_error", "assertion_error"):
        sentence = first["msg"].split(", ", 1)[1]
        return sentence if isinstance(value, dict) else f"{sentence}, found {as_yaml(value)}"
    expected = list(dict.fromkeys(_expected(error) for error in errors))
    if "a number" in expected and "a whole number" in expected:
        expected.remove("a whole number")
    subject = "the key must be" if first["loc"][-1] == "[key]" else "must be"
    return f"{subject} {' or '.join(expected)}, found {as_yaml(value)}{_hint(' or '.join(expected), value)}"


def _expected(error: dict[str, Any]) -> str:
    kind, limits = error["type"], error.get("ctx", {})
    if kind == "missing":
        return "a longer list"
    if kind == "string_pattern_mismatch":
        return PATTERNS.get(limits["pattern"], f"of the form {limits['pattern']}")
    if kind in ("too_short", "too_long"):
        low = kind == "too_short"
        n = limits["min_length" if low else "max_length"]
        container = "a mapping" if limits["field_type"] == "Dictionary" else "a list"
        return f"{container} of at {'least' if low else 'most'} {n} entr{'y' if n == 1 else 'ies'}"
    if kind in EXPECTED:
        return EXPECTED[kind].format(**limits)
    return error["msg"].removeprefix("Input should be ")


def _hint(expected: str, value: Any) -> str:
    """Why YAML read another type than was meant."""
    if isinstance(value, bool):
        return "" if expected == "true or false" else " (YAML reads yes, on and true alike, and no, off and false)"
    if "text" in expected and isinstance(value, (int, float)):
        return "; put it in quotes"
    only_whole = "a whole number" in expected and "a number" not in expected
    if isinstance(value, float) and only_whole:
        return _whole(str(value))
    number = NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if number is None or "number" not in expected:
        return ""
    whole, fraction, sign, exponent = number.groups()
    if exponent is None and not (fraction and only_whole):
        return ", which is text; write it without quotes"
    reason = ", which YAML takes for text" if exponent else ", which is text"
    # A whole number will do wherever a number does.
    form = "" if only_whole else f"; write {whole}{fraction or '.0'}e{sign or '+'}{exponent}"
    return reason + (_whole(value.strip()) or form)


def _whole(text: str) -> str:
    """ "; write 1000" for 1e3 and 1000.0; "" for what is no whole number, or a long one."""
    if len(text) > LONGEST or not abs(number := Decimal(text)) < LARGEST:
        return ""
    return f"; write {int(number)}" if number == number.to_integral_value() else ""
