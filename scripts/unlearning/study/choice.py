"""A study's choice of plug-ins: a name of the library, or a user's own file under a name of its own, and options."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from unlearning.plugins import registry
from unlearning.plugins.settings import Settings
from unlearning.study import messages
from unlearning.study.messages import StudyError

#: One of each kind of plug-in.
NOUNS = {"data": "data source", "models": "model", "protocols": "protocol", "methods": "method", "attacks": "attack",
         "metrics": "metric"}  # fmt: skip


@dataclass(frozen=True)
class Plugin:
    """A chosen plug-in: its ``name`` in the library, a user's ``file`` or None, its options in full."""

    name: str
    file: str | None
    options: dict[str, Any]


def several(kind: str, raw: dict[str, dict[str, Any] | None], *, partial: bool = False) -> dict[str, Plugin]:
    """Methods, attacks or metrics, by the names that the study gives them. Raises StudyError."""
    found = {}
    for name, options in raw.items():
        options = {"name": name, **(options or {})}
        if name in registry.names(kind) and options["name"] != name:
            raise StudyError((kind, name), f"is the library's own {NOUNS[kind]}; give the other one another name")
        found[name] = one(kind, options, kind, name, partial=partial)
    return found


def one(
    kind: str, raw: dict[str, Any], *where: str, beside: Iterable[str] = (), partial: bool = False
) -> Plugin | None:
    """The plug-in that the mapping ``raw`` at ``where`` chooses; fields ``beside`` its options are ignored here.

    None if ``partial`` and required options are missing. Raises StudyError.
    """
    options = {key: value for key, value in raw.items() if key not in beside}
    name, known = options.pop("name", None), registry.names(kind)
    if name is None:
        raise StudyError((*where, "name"), f"is missing; choose one of {', '.join(known)}")
    if not isinstance(name, str):
        raise StudyError((*where, "name"), f"must be text, found {messages.shown(name)}")
    at = where if name == where[-1] else (*where, "name")
    # An option of that name comes first: the method classic has one.
    takes_file = name in known and "file" in registry.options(kind, name).model_fields
    file = None
    if "file" in options and not takes_file:
        file = options.pop("file")
        _check_file(kind, name, file, where, at)
    elif name not in known:
        raise StudyError(at, messages.unknown(name, known, f"{NOUNS[kind]} {name!r}"))
    form = registry.options(kind, name, file)
    also = ["name", *([] if takes_file else ["file"]), *beside]
    found = validated(form, options, *where, also=also, partial=partial)
    return found and Plugin(name, file, found.model_dump(mode="json"))


def validated(model: type[Settings], raw: dict[str, Any], *where: str, **how: Any) -> Any:
    """As `messages.validated`, for the mapping at ``where``."""
    try:
        return messages.validated(model, raw, **how)
    except StudyError as error:
        raise error.under(*where) from None


def _check_file(kind: str, name: str, file: Any, where: tuple[str, ...], at: tuple[str, ...]) -> None:
    """A user's own file, under a name of its own, has all the parts of its kind."""
    if not isinstance(file, str):
        raise StudyError((*where, "file"), f"must be the path of a Python file, found {messages.shown(file)}")
    if name in registry.names(kind):
        raise StudyError(at, f"is the library's own {NOUNS[kind]}; give your file another name than {name!r}")
    if not re.fullmatch(messages.NAME, name):
        raise StudyError(at, f"must be {messages.PATTERNS[messages.NAME]}, found {name!r}")
    try:
        registry.options(kind, name, file)
        if kind == "protocols":
            registry.protocol(name, file)
    except ValueError as error:
        raise StudyError((*where, "file"), str(error)) from None
