"""Other people's results: a file for each format, which says what is its own and reads it.

A reader defines ``files(place)``, the result files of its format at or below a path, which it tells by what they hold,
``class Options(Settings)`` and ``read(files, options, root)``, a list of `Model`, and of `Unread` for files that cannot
be audited. Where files tell what they are only together, ``joined(models)`` completes the models and returns what is
`Unread` after all. A user's own reader is a file with the same parts. `imported` asks all of them and puts comparable
models together.
"""

from unlearning_audit.readers._arrays import load
from unlearning_audit.readers._gather import Imported, imported, models
from unlearning_audit.readers._groups import Group
from unlearning_audit.readers._model import FORGET, HELDOUT, OTHER, RETAIN, Agreement, Model, Reading, Unread
from unlearning_audit.readers._roles import COLUMNS as ROLE_COLUMNS
from unlearning_audit.readers._roles import table as roles
from unlearning_audit.readers._write import agreement_rows, write, yardstick

__all__ = [
    "FORGET", "HELDOUT", "OTHER", "RETAIN", "ROLE_COLUMNS", "Agreement", "Group", "Imported", "Model", "Reading",
    "Unread", "agreement_rows", "imported", "load", "models", "roles", "write", "yardstick",
]  # fmt: skip
