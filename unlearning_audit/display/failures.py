"""What failed in a study, by the fields of the study that name it."""

from unlearning_audit.artifacts.rows import Failure, Record


def lines(records: list[Record]) -> list[str]:
    """ "scenarios.noisy.methods.mine: my_method.py line 12, in unlearn: IndexError: …", each once, in the order of
    ``records``; what merely follows from another failure is left out."""
    reasons = {}
    for record in records:
        row = record.row
        if isinstance(row, Failure) and row.raised:
            name = row.name or record.method
            field = row.kind if row.kind == "model" else f"{row.kind}s.{name}"
            reasons[f"scenarios.{record.scenario}.{field}: {row.sentence}"] = None
    return list(reasons)


def doubted(records: list[Record]) -> list[str]:
    """ "scenarios.noisy.methods.mine: …" for what is hard to believe of a method's models, each once."""
    return list(
        dict.fromkeys(f"scenarios.{record.scenario}.methods.{record.method}: {record.row.note}" for record in records)
    )
