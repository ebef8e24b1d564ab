"""Turn the scores and logits of one method in one scenario into numbers with intervals, and a list of records."""

from pathlib import Path

from unlearning_audit.adversary.external_case import case_of
from unlearning_audit.adversary.measuring import measure, unchanged
from unlearning_audit.artifacts import contributions as added
from unlearning_audit.artifacts import records as lists
from unlearning_audit.artifacts.files import by_hand, read_json, record_of
from unlearning_audit.artifacts.rows import Row, write
from unlearning_audit.plugins import isolation


def metrics(
    metrics: str, contributions: str, records: str, settings: dict, place: dict, **files: str | list[str]
) -> dict:
    """A method that failed, or whose logits are not finite, gets one row that says so, and no number; so does every
    attack and every metric that fails, beside the numbers of the others.

    ``contributions``: where what models and samples add to the numbers that decide goes; ``records``: where the lines
    of records go; ``files``: the inputs, as `workflow.nodes.ROLES` names them; of models from elsewhere
    ``populations``, the three files of each, ``scores``, and ``reasons``, why attacks failed.
    """
    case = case_of(settings, **files)
    if "reasons" in files:
        case.missing = read_json(files["reasons"][0]).get("missing", {})
    numbers = measure(case, settings["metrics"], files=place["files"], terms=place.get("terms"))
    doubts = [*case.unread, *remarks(case.unlearned_files, files.get("scores", []))]
    said = [*(Row("doubt", note=text) for text in doubts), *unchanged(case.before_files, case.unlearned_files)]
    added.write(contributions, numbers.contributions)
    lists.write(records, numbers.records)
    write(metrics, [*numbers.rows, *said])
    return {"rows": len(numbers.rows) + len(said), "seconds_of": numbers.seconds}


def remarks(*groups: list[str]) -> list[str]:
    """Sentences about users' files, from the specs of the jobs that made these files and from this job, and about files
    that were put there by hand."""
    sentences = {}
    for path in (path for group in groups for path in group):
        if Path(path).with_name("spec.json").exists():
            sentences |= dict.fromkeys([*record_of(path).get("remarks", []), *filter(None, [by_hand(path)])])
    return [*sentences, *isolation.REMARKS]
