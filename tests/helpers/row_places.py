"""Rows by what they are about."""

from unlearning_audit.evaluation.rows import Row

ORDER = ("rule", "models", "request", "pair", "role", "target", "model", "rate", "step", "confidence")


def about(row: Row) -> str:
    """What a row is about in one text, "pair=0;role=forget": a key for dictionaries of expected rows."""
    fields = dict(row.place)
    return ";".join(f"{name}={fields[name]:g}" if isinstance(fields[name], float) else f"{name}={fields[name]}"
                    for name in ORDER if name in fields)  # fmt: skip


def only(rows: list[Row], metric: str, setting: str = "", attack: str = "") -> Row:
    """The only row of a metric, of this attack and about this ``setting``."""
    (row,) = [row for row in rows if (row.metric, row.attack, about(row)) == (metric, attack, setting)]
    return row
