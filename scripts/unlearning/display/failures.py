"""What failed in a study, by the fields of the study that name it."""


def lines(rows: list[dict]) -> list[str]:
    """ "scenarios.noisy.methods.mine: my_method.py line 12, in unlearn: IndexError: …", each once, in the order of
    ``rows`` (columns of ``tables.UNION_COLUMNS``)."""
    found = {}
    for row in rows:
        part = next((part[7:] for part in row["setting"].split(";") if part.startswith("raised=")), "")
        if row["metric"] == "failed" and part:
            field = {
                "model": "model",
                "method": f"methods.{row['method']}",
                "attack": f"attacks.{row['attack']}",
                "metric": f"metrics.{row['setting'].rpartition('metric=')[2]}",
            }[part]
            found[f"scenarios.{row['scenario']}.{field}: {row['note']}"] = None
    return list(found)
