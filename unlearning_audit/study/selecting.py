"""Check and find the scenarios by whose models other scenarios select their samples."""

from collections.abc import Iterable

from unlearning_audit.plugins import registry
from unlearning_audit.study.messages import StudyError
from unlearning_audit.study.schema import Scenario


def check(scenarios: Iterable[Scenario]) -> None:
    """Raise StudyError for a scenario that names a wrong source for its selection of samples (see `source`), or that
    has methods other than none though its protocol forgets nothing."""
    scenarios = list(scenarios)
    for scenario in scenarios:
        source(scenario, scenarios)  # only because it raises for a wrong source
        method_name = next((name for name, method in scenario.methods.items() if method.name != "none"), None)
        if method_name is not None and not scenario.record.forgets:
            path = ("scenarios", scenario.name, "methods", method_name)
            problem = f"must be left out for the protocol {scenario.protocol.name!r}, which forgets nothing"
            raise StudyError(path, problem, joint=True)


def source(scenario: Scenario, scenarios: Iterable[Scenario]) -> Scenario | None:
    """Return the scenario by whose models ``scenario`` selects its samples; None if it does not select by models.

    Where both scenarios vary along an axis, the source has the same value. Raises StudyError if there is not exactly
    one source with the same data, the same values and a protocol that selects.
    """
    protocol = scenario.protocol.module
    # From the options, a protocol's function tells the source's name, "" if it is missing, None if there is no source.
    selects_from = getattr(protocol, "selects_from", None)
    name = selects_from(protocol.Options(**scenario.protocol.options)) if selects_from else None
    if name is None:
        return None
    where, scenarios = ("scenarios", scenario.name, "protocol", "select_from"), list(scenarios)
    candidates = [candidate for candidate in scenarios if candidate.record.selects]
    names = list(dict.fromkeys(candidate.name for candidate in candidates))
    if name not in names:
        add = f"add a scenario with the protocol {registry.offering('selection')} and name it"
        how = f"name {', '.join(names)}" if names else add
        why = f"names {name!r}, which selects nothing" if name else "is missing"
        raise StudyError(where, f"{why}; {how}", joint=True)
    same_data = [s for s in candidates if s.name == name and (s.data, s.use) == (scenario.data, scenario.use)]
    # An axis that only the source has excludes none of its variants; if several variants are left, an error follows.
    matches = [s for s in same_data if all(scenario.axes.get(axis, label) == label for axis, label in s.axes.items())]
    if len(matches) != 1:
        count = "no variant has" if not matches else f"{len(matches)} variants have"
        advice = "give both the same data and axes"
        raise StudyError(where, f"names {name!r}, of which {count} the same data; {advice}", joint=True)
    return matches[0]
