"""List what failed in a study, by the fields of the study that name it."""

from unlearning_audit.evaluation.rows import Failure, Record, Row


def lines(records: list[Record]) -> list[str]:
    """Return a line for each failure, as "scenarios.noisy.methods.mine: my_method.py line 12, in unlearn: IndexError:
    …".

    Only plug-ins that raised an error and methods whose models diverged are included, because all other failures follow
    from them. A line begins with the field of the study that names what failed. If several things that one field names
    failed with the same sentence, they share a line, which lists their names.
    """
    # (field of the study, sentence) → the names of what failed, each once, in order.
    failed: dict[tuple[str, str], dict[str, None]] = {}
    for record in records:
        row = record.row
        if isinstance(row, Failure) and (row.raised or row.kind == "diverged"):
            if row.kind == "model":  # a scenario has one model architecture, so this field has no names
                field, name = "model", ""
            else:
                field = "methods" if row.kind == "diverged" else f"{row.kind}s"
                name = row.name or record.method
            failed.setdefault((f"scenarios.{record.scenario}.{field}", row.sentence), {})[name] = None
    listed = []
    for (field, sentence), (name, *more) in failed.items():
        rest = f" (and {', '.join(more)})" if more else ""
        listed.append(f"{field}.{name}{rest}: {sentence}" if name else f"{field}: {sentence}")
    return listed


def plugin_raised(records: list[Record]) -> bool:
    """Return whether a plug-in raised an error. Models that diverge are a result, not an error."""
    return any(isinstance(record.row, Failure) and record.row.raised for record in records)


def doubted(records: list[Record]) -> list[str]:
    """Return a line for each doubt about a method's models, "scenarios.noisy.methods.mine: …", each once.

    ``records``: only those of the metric "doubt".
    """
    noted = ((record, record.row.note) for record in records if isinstance(record.row, Row))
    return list(dict.fromkeys(f"scenarios.{record.scenario}.methods.{record.method}: {note}" for record, note in noted))
