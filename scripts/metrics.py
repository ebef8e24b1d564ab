"""Turn the scores and logits of one method in one scenario into numbers with intervals."""

import time

from job import script
from unlearning.adversary import plausibility
from unlearning.adversary.case import Case
from unlearning.adversary.external_case import ExternalCase
from unlearning.artifacts import contributions as added
from unlearning.artifacts import tables
from unlearning.artifacts.files import ArtifactError, FailedError, NoAnswerError, NotFiniteError, read_json
from unlearning.artifacts.logits import content
from unlearning.plugins import registry
from unlearning.plugins.guard import PluginError, guard, said, shown
from unlearning.plugins.isolation import isolated


def evaluated(
    name: str, file: str | None, case: Case, settings: dict
) -> tuple[list[dict], dict[str, added.Contribution]]:
    """The rows of one metric, and what its deciding numbers rest on; a single row that says why if it fails, or if
    other models that it needs have failed.

    A user's own metric is called in a process of its own, and decides on nothing.
    """
    parts: dict[str, added.Contribution] = {}

    def rows() -> dict:
        try:
            module = registry.load("metrics", name, file)
            with guard(module.__file__, but=ArtifactError):
                found = module.rows(case, settings)
                if file is None and hasattr(module, "contributions"):
                    parts.update(module.contributions(case, settings))
                return {"rows": told(found, file) if file else found}
        except NoAnswerError as error:
            return {"rows": [failure("", error, setting=f"metric={name}")]}

    try:
        return (rows() if file is None else isolated(rows, file))["rows"], parts
    except PluginError as error:
        return [failure(f"metric;metric={name}", error)], {}


def told(rows: object, file: str) -> list[dict]:
    """What a metric returned, in numbers of Python's own. Raises PluginError unless it is a list of tidy rows."""
    if not isinstance(rows, list) or not all(isinstance(one, dict) and "metric" in one for one in rows):
        wanted = "a list of mappings with metric, value and what else metrics.row gives"
        raise PluginError(f"{shown(file)}: rows must return {wanted}, it returned {said(rows)}")
    kinds = {"value": float, "ci_low": float, "ci_high": float, "n": int}
    return [{k: kinds.get(k, str)(v) for k, v in one.items() if v is not None} for one in rows]


def failure(part: str, error: object, attack: str = "", setting: str = "") -> dict:
    """The row that says that there are no numbers, and why. ``part`` is what raised; "" if nothing did."""
    return note("failed", str(error), attack=attack, setting=f"raised={part}" if part else setting)


def unchanged(originals: list[str], unlearned: list[str]) -> list[dict]:
    """The row that says that the logits of some batches are those before unlearning: their share, and of how many.

    Nothing is said of models that were only handed on, or, of models from elsewhere, whose originals are not known.
    """
    if originals == unlearned or len(originals) != len(unlearned):
        return []
    pairs = [(content(before), content(after)) for before, after in zip(originals, unlearned, strict=True)]
    same = sum(before == after and "logits.npy" in after for before, after in pairs)
    text = f"logits of {same} of {len(pairs)} batches are identical to those before unlearning"
    return [note("unchanged", text, value=same / len(pairs), n=len(pairs))] if same else []


def doubt(text: str) -> dict:
    """The row that says what is hard to believe of logits from elsewhere."""
    return note("doubt", text)


def note(
    metric: str, text: str, *, value: float = float("nan"), n: int = 0, attack: str = "", setting: str = ""
) -> dict:
    """A row that says something in words."""
    return {"attack": attack, "metric": metric, "setting": setting, "value": value, "n": n, "note": text}


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
    relearned: list[str] | None = None,
    compared_relearned: list[str] | None = None,
    generated: list[str] | None = None,
    compared_generated: list[str] | None = None,
    populations: list[str] = (),
    reasons: list[str] = (),
) -> dict:
    """A method that failed, or whose logits are not finite, gets one row that says so, and no number; so does every
    attack and every metric that fails, beside the numbers of the others.

    ``contributions``: where what models and samples add to the numbers that decide goes.

    ``populations``: of models that came from elsewhere, the three files of each, with the ``reasons`` why attacks on
    them could not be asked.
    """
    seconds, found = {}, {}
    single = [files[0] if files else None for files in (scores, selection)]
    again = relearned, compared_relearned, generated, compared_generated
    case = Case(data, splits, originals, unlearned, single[0], retrained, control, single[1], *again)
    if populations:
        case = ExternalCase.of(settings["populations"], populations, single[0])
        _, _, *originals = case.files.get("original", ["", ""])  # data, membership and logits, if it is there
        unlearned = case.unlearned_files
        case.missing = read_json(reasons[0])["missing"] if reasons else {}
    try:
        _ = case.answers(case.unlearned_files), case.originals and case.answers(case.originals)
        rows = [failure("attack", error, attack=name) for name, error in case.failed_attacks.items()]
    except FailedError as error:
        rows = [failure(error.part, error)]
    except NotFiniteError as error:
        rows = [failure("", error)]
    else:
        refused = plausibility.refusal(case) if populations else ""
        if refused:
            rows = [failure("method", refused)]
        rows += [doubt(text) for text in plausibility.doubts(case)] if populations else []
        for name in settings["metrics"] if not refused else ():
            started = time.perf_counter()
            own, parts = evaluated(name, place["files"].get(name), case, settings)
            rows, found = rows + own, found | parts
            seconds[name] = round(time.perf_counter() - started, 3)
    rows += unchanged(originals, unlearned)
    added.write(contributions, found)
    tables.write_rows(metrics, rows)
    return {"rows": len(rows), "seconds_of": seconds}
