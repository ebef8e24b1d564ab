"""Another value for a field, found from its type, so that a new plug-in needs no line in a test."""

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from unlearning_audit.plugins.settings import Settings


def other_value(options: type[Settings], base: dict[str, Any], field: str) -> Any:
    """A value that ``options`` accepts for ``field`` beside ``base`` and that differs from its present one.

    Raises LookupError if none is found.
    """
    present = options.model_validate(base).model_dump(mode="json")
    for value in _candidates(options.model_fields[field].annotation, present[field]):
        try:
            accepted = options.model_validate({**base, field: value}).model_dump(mode="json")
        except ValidationError:
            continue
        if accepted[field] != present[field]:
            return value
    raise LookupError(f"no other value is known for {field}: {options.model_fields[field].annotation}")


def _candidates(annotation: Any, value: Any) -> Iterator[Any]:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _candidates(args[0], value)
    elif origin is Literal:
        yield from args
    elif origin in (Union, types.UnionType):
        for member in args:
            yield from _candidates(member, value)
    elif annotation is bool:
        yield not value
    elif annotation is int:
        number = value if isinstance(value, int) else 0
        yield from (number + 1, number + 6, number // 2, 3)
    elif annotation is float:
        number = value if isinstance(value, (int, float)) else 0.25
        yield from (number / 2, number + 0.25, 0.25)
    elif annotation is str:
        yield f"{value}x"
    elif origin is tuple:
        first = next(_candidates(args[0], value[0] if value else None))
        yield (*(value or ())[:-1], first)
        yield (first, *(value or ())[1:])
        yield (*(value or ()), first)
    elif origin is list:
        yield [*(value or ()), next(_candidates(args[0], None))]
    elif origin is dict:
        yield {next(_candidates(args[0], None)): next(_candidates(args[1], None))}
    elif isinstance(annotation, type) and issubclass(annotation, Settings):
        field = next(iter(value))
        yield {**value, field: other_value(annotation, value, field)}
    else:
        yield from _valid(annotation)


def _valid(annotation: Any) -> Iterator[Any]:
    for value in (None, True, False, 1, 0.5, "x"):
        try:
            yield TypeAdapter(annotation).validate_python(value)
        except ValidationError:
            continue
