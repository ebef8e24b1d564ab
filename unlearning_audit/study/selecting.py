"""Scenarios that select their samples by the models of another scenario."""

from collections.abc import Iterable

from unlearning_audit.plugins import registry
from unlearning_audit.plugins.declarations import Protocol
from unlearning_audit.study.messages import StudyError
from unlearning_audit.study.schema import Scenario


def check(every: Iterable[Scenario]) -> None:
    """Raise StudyError for a scenario whose source has no selection, or that has methods but forgets nothing."""
    every = list(every)
    for one in every:
        source(one, every)
        other = next((name for name, method in one.methods.items() if method.name != "none"), None)
        if other is not None and not _record(one).forgets:
            raise StudyError(
                ("scenarios", one.name, "methods", other),
                f"must be left out for the protocol {one.protocol.name!r}, which forgets nothing",
                joint=True,
            )


def source(one: Scenario, every: Iterable[Scenario]) -> Scenario | None:
    """The scenario by whose models ``one`` selects its samples, None if it needs none.

    Where both vary along an axis, that of the same value. Raises StudyError if ``one`` needs a scenario and there is
    none that trains on the same data and has a protocol that selects.
    """
    protocol = _protocol(one)
    asks = getattr(protocol, "selects_from", None)
    name = asks(protocol.Options(**one.protocol.options)) if asks else None
    if name is None:
        return None
    where, every = ("scenarios", one.name, "protocol", "select_from"), list(every)
    able = [other for other in every if _record(other).selects]
    names = list(dict.fromkeys(other.name for other in able))
    if name not in names:
        how = f"name {', '.join(names)}" if names else "add a scenario with the protocol lira_selection and name it"
        why = f"names {name!r}, which selects nothing" if name in [s.name for s in every] else f"names no {name!r} here"
        raise StudyError(where, f"{why if name else 'is missing'}; {how}", joint=True)
    found = [s for s in able if s.name == name and all(one.axes.get(axis, at) == at for axis, at in s.axes.items())]
    found = [s for s in found if (s.data, s.use) == (one.data, one.use)]
    if len(found) != 1:
        count = "no variant has" if not found else f"{len(found)} variants have"
        raise StudyError(
            where, f"names {name!r}, of which {count} the same data; give both the same data and axes", joint=True
        )
    return found[0]


def _record(one: Scenario) -> Protocol:
    return registry.protocol(one.protocol.name, one.protocol.file)


def _protocol(one: Scenario):
    return registry.load("protocols", one.protocol.name, one.protocol.file)
