"""All numbers of a study in one tidy table."""

from unlearning.artifacts import tables


def rows(study: str, cases: list[dict]) -> list[dict]:
    """Rows with ``tables.UNION_COLUMNS``, in the order of ``cases`` (see `workflow.parameters.collect`).

    A case's axis setting stands before the row's own. That nothing was changed is no news of doing nothing.
    """
    found = []
    for case in cases:
        who = {"study": study, **{name: case[name] for name in ("scenario", "protocol", "method")}}
        own = tables.read_rows(case["metrics"])
        told = [row for row in own if row["metric"] != "unchanged" or case["plugin"] != "none"]
        found += [{**row, **who, "setting": _join(case["setting"], row["setting"])} for row in told]
    return found


def _join(*settings: str) -> str:
    return ";".join(filter(None, settings))
