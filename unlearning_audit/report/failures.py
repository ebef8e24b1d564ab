"""What failed in a study, by the fields of the study that name it."""

from unlearning_audit.evaluation.rows import Failure, Record, Row


def lines(records: list[Record]) -> list[str]:
    """ "scenarios.noisy.methods.mine: my_method.py line 12, in unlearn: IndexError: …", each once, in the order of
    ``records``; what merely follows from another failure is left out. A method whose models diverged is among them."""
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
    """ ".mine", or ".mine (and others)" where several share a sentence."""
    rest = f" (and {', '.join(names[1:])})" if len(names) > 1 else ""
    return f".{names[0]}{rest}" if names[0] else ""


def broken(records: list[Record]) -> bool:
    """Whether a plug-in is at fault; that models diverge is a result."""
    return any(isinstance(record.row, Failure) and record.row.raised for record in records)


def doubted(records: list[Record]) -> list[str]:
    """ "scenarios.noisy.methods.mine: …" for what is hard to believe of a method's models, each once."""
    noted = ((record, record.row.note) for record in records if isinstance(record.row, Row))
    return list(dict.fromkeys(f"scenarios.{record.scenario}.methods.{record.method}: {note}" for record, note in noted))
