"""Write docs/fields.md: every field of a study, from the schema.

uv run python scripts/fields.py
"""

import inspect
import re
import sys
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import library  # noqa: F401 (the library is found by it)

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from unlearning_audit.bank.recipe import Privacy, Recipe
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.study import schema

PAGE = Path(__file__).resolve().parents[1] / "docs" / "fields.md"

TOP = """# Fields of a study

A study is a YAML file. `defaults` holds what its scenarios share, every entry of `scenarios` overrides some of it, and
`vary` in a scenario multiplies it along an axis. Every field is checked before anything runs; what is wrong is said in
one sentence that starts with the field's path. This page is written by `uv run python scripts/fields.py`.

`--config 'field=value'` on the command line overrides a field of the file. Data, models, protocols, methods, attacks
and metrics are chosen by name, with options of their own beside the name; `file: my_file.py` beside it chooses a file
of yours in place of one of the library's.
"""

#: Title and text of each part of the schema.
PARTS = (
    ("The top level", schema.StudyFile),
    ("`margins`", schema.Margins),
    ("A scenario, and `defaults`", schema.ScenarioFile),
    ("`data`, beside the options of the source", schema.DataChoice),
    ("`recipe`", Recipe),
    ("`recipe.dp`", Privacy),
    ("`tables`", schema.Table),
    ("`figures`", schema.Figure),
)

KINDS = {
    "data": "Options of `data`, by source (`data: {name: …}`)",
    "models": "Options of `model` (`model: {name: …}`)",
    "protocols": "Options of `protocol` (`protocol: {name: …}`)",
    "methods": "Options of `methods` (`methods: {name: {…}}`)",
    "attacks": "Options of `attacks` (`attacks: {name: {…}}`)",
    "metrics": "Options of `metrics` (`metrics: {name: {…}}`)",
}

WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", type(None): "null", Any: "anything"}

BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "min_length": "at least", "max_length": "at most"}


def page() -> str:
    """The whole page as Markdown."""
    parts = [TOP.rstrip()]
    for title, model in PARTS:
        parts.append(f"## {title}\n\n{text(model)}\n\n{table(model)}")
    for kind, title in KINDS.items():
        parts.append(f"## {title}")
        for name in registry.names(kind):
            first = inspect.cleandoc(docstring(kind, name)).splitlines()[0]
            form = registry.options(kind, name)
            parts.append(f"### {name}\n\n{marked(first)}")
            if form.model_fields:
                parts.append(f"{text(form)}\n\n{table(form)}")
    return "\n\n".join(parts).rstrip() + "\n"


def docstring(kind: str, name: str) -> str:
    """What a plug-in's file says of itself."""
    import ast

    return ast.get_docstring(ast.parse(registry.source_file(kind, name).read_text(encoding="utf-8"))) or ""


def text(model: type[Settings]) -> str:
    """A class's docstring as Markdown."""
    return marked(inspect.cleandoc(model.__doc__ or ""))


def marked(text: str) -> str:
    """Double back quotes as single ones; references between modules as code."""
    return re.sub(r"``(.+?)``", r"`\1`", text).replace("|", "\\|")


def table(model: type[Settings]) -> str:
    """One row for each field."""
    fields = model.model_fields.items()
    rows = [[f"`{name}`", kind(field.annotation, field.metadata), default(field)] for name, field in fields]
    head = ["field", "value", "default"]
    if any(field.description for _, field in fields):
        head.append("meaning")
        rows = [[*row, field.description or ""] for row, (_, field) in zip(rows, fields, strict=True)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def kind(annotation: Any, metadata: list[Any] = ()) -> str:
    """A type in words, with the limits that ``metadata`` sets."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return kind(inside[0], list(inside[1:]))
    if origin is Literal:
        words = ", ".join(f"`{printed(value)}`" for value in inside)
    elif origin in (Union, types.UnionType):
        words = " or ".join(dict.fromkeys(kind(option) for option in inside))
    elif origin in (list, tuple):
        words = f"list of {kind(inside[0])}" if inside else "list"
    elif origin is dict:
        words = f"mapping from {kind(inside[0])} to {kind(inside[1])}"
    elif inspect.isclass(annotation) and issubclass(annotation, Settings):
        words = f"mapping of `{'`, `'.join(annotation.model_fields)}`"
    else:
        words = WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))
    bounds = [f"{sign} {value}".strip() for option in metadata for name, sign in BOUNDS.items()
              if (value := getattr(option, name, None)) is not None]  # fmt: skip
    unit = " long" if bounds and words == "text" else ""
    bounds = [bound + unit for bound in bounds]
    return f"{words} ({', '.join(bounds)})" if bounds else words


def default(field: FieldInfo) -> str:
    """The default as YAML has it; "required" if there is none."""
    if field.is_required():
        return "required"
    value = field.default if field.default is not PydanticUndefined else field.default_factory()
    if isinstance(value, Settings):
        return "its own defaults"
    return f"`{printed(value)}`"


def printed(value: Any) -> str:
    """A value as YAML has it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(printed(element) for element in value)}]"
    return {"": '""'}.get(str(value), str(value))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE}", file=sys.stderr)
