"""The table of roles: the role of every model and the reason for it. If a user edits the table, it is binding."""

import csv
from collections.abc import Sequence
from pathlib import Path

from unlearning_audit.readers._groups import Group, must_share, shared
from unlearning_audit.readers._model import NONE, RETRAIN, ROLES, UNKNOWN, UNLEARNED, Model, Unread

COLUMNS = ("file", "entry", "models", "role", "method", "replicate", "scenario", "why")


def table(groups: Sequence[Group], unread: Sequence[Unread]) -> list[dict[str, str]]:
    """Return the rows of ``roles.csv``, which shows a user which role was given to each file, or to each model in a
    file, and why.

    The columns are `COLUMNS`. "entry" is the name of a model in a file of several. "models" counts the models that one
    row stands for: models of one file and entry, with the same role, method, replicate and scenario (the group's name).

    Parameters
    ----------
    unread
        Files that were left out, each with the reason; each has a row.
    """
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for group in groups:
        roles = [(NONE, "", group.none), (RETRAIN, "", group.retrain), (RETRAIN, "control", group.control)]
        roles += [(UNLEARNED, name, models) for name, models in group.methods.items()]
        for role, method, models in roles:
            for model in models:
                key = str(model.file), model.entry, role, method, model.replicate, group.name
                why = model.decided or "the file says so"
                # The order is that of `COLUMNS`, with a count of "0" as the third, "models".
                row = rows.setdefault(key, dict(zip(COLUMNS, (*key[:2], "0", *key[2:], why), strict=True)))
                row["models"] = str(int(row["models"]) + 1)
    blank = dict.fromkeys(COLUMNS, "") | {"role": "left out"}
    return [*rows.values(), *(blank | {"file": str(each.file), "why": each.sentence} for each in unread)]


def read(path: Path) -> list[dict[str, str]]:
    """Read a table of roles: its rows, each column → text. Raises ValueError if the file cannot be read, if a needed
    column is missing, or if a row has a wrong role."""
    try:
        with open(path, newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: this table of roles cannot be read ({error})") from None
    for number, row in enumerate(rows, start=2):  # line 1 is the header
        if missing := [name for name in ("file", "role", "scenario") if row.get(name) is None]:
            raise ValueError(f"{path}: the column {missing[0]!r} is missing; audit read writes such a table, roles.csv")
        if row["role"] not in (*ROLES, "left out"):
            choice = "none, retrain, unlearned or left out"
            raise ValueError(f"{path} line {number}: the role is {row['role']!r}; it must be {choice}")
    return rows


def grouped(models: Sequence[Model], rows: Sequence[dict[str, str]], path: Path) -> list[Group]:
    """Return the groups of models that a table of roles describes, one for each of its scenarios.

    Retrained models of the method "control" become the group's control. Models that the table leaves out, or whose role
    is "", are in no group.

    Parameters
    ----------
    rows
        The lines of the table: file, role and scenario of each model, and "entry", "method" and "replicate", which may
        be missing.
    path
        The file of the table, for messages.

    Raises
    ------
    ValueError
        For a row whose model was not read, for a model that has two rows in one scenario, and for a model that shares
        too few samples with the first retrained model of its scenario or, if none is retrained, with the first model.
    """
    groups: dict[str, Group] = {}
    seen = set()  # the file, the entry and the scenario of each row
    for row in rows:
        if row["role"] in (UNKNOWN, "left out"):
            continue
        key = row["file"], row.get("entry") or "", row["scenario"]
        named = " ".join(key[:2]).strip()
        if not (meant := [model for model in models if (str(model.file), model.entry) == key[:2]]):
            raise ValueError(f"{path}: {named}: no such model was read")
        if key in seen:
            raise ValueError(f"{path}: {named} has two rows in the scenario {key[2]}; leave out one of them")
        seen.add(key)
        group = groups.setdefault(row["scenario"], Group(row["scenario"], frozenset(meant[0].words), frozenset()))
        method = row.get("method") or ""
        if row["role"] == UNLEARNED:
            group.methods.setdefault(method or "unlearned", []).extend(meant)
        elif row["role"] == NONE:
            group.none += meant
        else:
            (group.control if method == "control" else group.retrain).extend(meant)
        for model in meant:
            model.role, model.method, model.replicate = row["role"], method, row.get("replicate") or ""
            model.decided = path.name
    for group in groups.values():
        reference, *_ = [*group.retrain, *group.models]
        group.samples = must_share(reference)
        for model in group.models:
            if not shared(model, group.samples):
                both = f"{model.file} and {reference.file}"
                raise ValueError(f"{path}: {both} of the scenario {group.name} share too few samples")
    return list(groups.values())
