"""Turn the scores and logits of one method in one scenario into numbers with intervals."""

import time

from job import script
from unlearning.adversary.case import Case
from unlearning.adversary.external_case import ExternalCase
from unlearning.artifacts import contributions as added
from unlearning.artifacts import tables
from unlearning.artifacts.arrays import NotFiniteError
from unlearning.artifacts.files import read_json
from unlearning.plugins import registry


@script
def metrics(
    metrics: str,
    contributions: str,
    settings: dict,
    place: dict,
    data: str = "",
    splits: list[str] = (),
    originals: list[str] = (),
    unlearned: list[str] = (),
    scores: list[str] | None = None,
    retrained: list[str] | None = None,
    control: list[str] | None = None,
    selection: list[str] | None = None,
    populations: list[str] = (),
    reasons: list[str] = (),
) -> dict:
    """A method whose logits are not finite gets one row that says so, and no number.

    ``contributions``: where what models and samples add to the numbers that decide goes.

    ``populations``: of models that came from elsewhere, the three files of each, with the ``reasons`` why attacks on
    them could not be asked.
    """
    seconds = {}
    single = [files[0] if files else None for files in (scores, selection)]
    case = Case(data, splits, originals, unlearned, single[0], retrained, control, single[1])
    if populations:
        case = ExternalCase.of(settings["populations"], populations, single[0])
        case.missing = read_json(reasons[0])["missing"] if reasons else {}
    try:
        _ = case.unlearned
        rows, found = [], {}
        for name in settings["metrics"]:
            started = time.perf_counter()
            module = registry.load("metrics", name, place["files"].get(name))
            rows += module.rows(case, settings)
            found |= module.contributions(case, settings) if hasattr(module, "contributions") else {}
            seconds[name] = round(time.perf_counter() - started, 3)
    except NotFiniteError as error:
        rows, found = [{"metric": "failed", "value": float("nan"), "n": 0, "note": str(error)}], {}
    added.write(contributions, found)
    tables.write_rows(metrics, rows)
    return {"rows": len(rows), "seconds_of": seconds}
