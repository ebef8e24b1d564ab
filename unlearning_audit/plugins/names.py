"""How long names are in a study, and which ones the rows of a user's metric may have."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, readable

#: Characters of a name at most.
LONGEST = 40

#: Names of rows that say something in words.
WORDS = ("failed", "doubt", "remark", "unchanged")


def check_names(metrics: Iterable[str], key: str, file: str) -> None:
    """Raise PluginError unless numbers of the metric in a user's ``file``, which the study calls ``key``, are called as
    it declares, and not as those of the library's own metrics are, which tables and verdicts would take for these."""
    declared_names = [quantity.name for quantity in registry.quantities(key, file, key)]
    reserved = [quantity.name for name in registry.names("metrics") for quantity in registry.quantities(name)]
    for metric in dict.fromkeys(metrics):
        if metric in WORDS or any(fnmatchcase(metric, name) for name in reserved):
            raise PluginError(
                f"{readable(file)}: rows may not be called {metric!r}, which the library's own are; rename them"
            )
        if not any(fnmatchcase(metric, name) for name in declared_names):
            declared = ", ".join(declared_names) or "nothing"
            raise PluginError(f"{readable(file)}: rows may not be called {metric!r}; QUANTITIES declares {declared}")
