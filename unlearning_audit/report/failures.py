"""List what failed in a study, by the fields of the study that name it."""

from unlearning_audit.evaluation.rows import Failure, Record, Row


def lines(records: list[Record]) -> list[str]:
    """Return a line for each failure, as "scenarios.noisy.methods.mine: my_method.py line 12, in unlearn: IndexError:
    …".

    The same sentence in one scenario gives one line, which lists the names. Failures that only follow from another are
    left out. Methods whose models diverged are included.
    """
    methods: dict[tuple[str, str], list[str]] = {}
    for record in records:
        row = record.row
        if isinstance(row, Failure) and (row.raised or row.kind == "diverged"):
            kind = "method" if row.kind == "diverged" else row.kind
            field = "model" if kind == "model" else f"{kind}s"
            names = methods.setdefault((f"scenarios.{record.scenario}.{field}", row.sentence), [])
            name = "" if kind == "model" else row.name or record.method
            names += [] if name in names else [name]
    return [f"{field}{_of_names(names)}: {sentence}" for (field, sentence), names in methods.items()]


def _of_names(names: list[str]) -> str:
    """Return ".mine", or ".mine (and others)" if several names share a sentence."""
    rest = f" (and {', '.join(names[1:])})" if len(names) > 1 else ""
    return f".{names[0]}{rest}" if names[0] else ""


def broken(records: list[Record]) -> bool:
    """Return whether a plug-in raised an error. Models that diverge are a result, not an error."""
    return any(isinstance(record.row, Failure) and record.row.raised for record in records)


def doubted(records: list[Record]) -> list[str]:
    """Return a line for each doubt about a method's models, "scenarios.noisy.methods.mine: …", each once."""
    noted = ((record, record.row.note) for record in records if isinstance(record.row, Row))
    return list(dict.fromkeys(f"scenarios.{record.scenario}.methods.{record.method}: {note}" for record, note in noted))
