"""Expand a protocol with several requests: one scenario for the state after each request."""

from collections.abc import Iterator
from dataclasses import replace

from unlearning_audit.study.messages import StudyError
from unlearning_audit.study.schema import Scenario

#: Name of the axis that distinguishes the requests in the settings of scenarios.
AXIS = "request"

#: Methods for which it makes no difference whether requests come one after the other.
INDIFFERENT = ("none", "retrain")

#: End of the name of a method that is given all requests together.
TOGETHER = "_at_once"


def check(scenario: Scenario) -> None:
    """Raise StudyError for an axis or a recipe that a sequence of requests does not allow."""
    if _number_of_requests(scenario) == 1:
        return
    if AXIS in scenario.axes:
        raise StudyError(("vary", AXIS), "must have another name where the protocol has requests", joint=True)
    if scenario.recipe.record_updates:
        sentence = "must be false with several requests, because one sum of updates cannot be undone request by request"
        raise StudyError(("recipe", "record_updates"), sentence, joint=True)


def steps(scenario: Scenario) -> Iterator[Scenario]:
    """Yield one scenario for each request of a sequence, the state after that request; the scenario itself if there is
    only one.

    In a sequence, each method but none and retraining (`INDIFFERENT`) is present twice: under its name for one request
    after the other, and under a name that ends in `TOGETHER` for all requests so far at once.
    """
    if _number_of_requests(scenario) == 1:
        yield scenario
        return
    methods, together = {}, []
    for name, method in scenario.methods.items():
        methods[name] = method
        if method.name not in INDIFFERENT:
            together.append(name + TOGETHER)
            methods[name + TOGETHER] = method
    for request in range(1, _number_of_requests(scenario) + 1):
        axes = {**scenario.axes, AXIS: str(request)}
        setting = ";".join(f"{axis}={label}" for axis, label in axes.items())
        yield replace(scenario, axes=axes, setting=setting, methods=methods, request=request, at_once=tuple(together))


def _number_of_requests(scenario: Scenario) -> int:
    """Return the number of requests of a scenario's protocol, 1 without a sequence."""
    return int(scenario.protocol.options.get("requests", 1))
