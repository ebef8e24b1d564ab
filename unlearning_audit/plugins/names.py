"""Limits on names in a study, and on the names of rows of a user's metric."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, readable

#: The largest number of characters in a name.
LONGEST = 40

#: Names of rows that hold text instead of a number.
TEXT_ROWS = ("failed", "doubt", "remark", "unchanged")


def check_names(metrics: Iterable[str], key: str, file: str) -> None:
    """Raise PluginError if rows of a user's metric have names that its file does not declare, or names of the library's
    own rows: those of its metrics and `TEXT_ROWS`.

    Tables and verdicts would mistake a row with a library's name for the library's number.

    Parameters
    ----------
    metrics
        The names of the rows.
    key
        The study's name of the metric in ``file``.
    """
    declared_names = [quantity.name for quantity in registry.quantities(key, file, key=key)]
    reserved = [quantity.name for name in registry.names("metrics") for quantity in registry.quantities(name)]
    for metric in dict.fromkeys(metrics):
        if metric in TEXT_ROWS or any(fnmatchcase(metric, name) for name in reserved):
            problem = f"rows may not be called {metric!r}, a name of the library's own rows"
            raise PluginError(f"{readable(file)}: {problem}; rename them")
        if not any(fnmatchcase(metric, name) for name in declared_names):
            declared = ", ".join(declared_names)
            raise PluginError(f"{readable(file)}: QUANTITIES must declare {metric!r}, a row's name; it has {declared}")
