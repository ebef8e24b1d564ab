"""Readers of other people's results: one file for each format, which recognises its files and reads them.

A reader defines two functions: ``files(place)``, which returns the result files of its format at or below a path and
recognises them by their content; and ``read(files, options, root)``, which returns a list of `Model`, and of `Unread`
for files that cannot be audited. One that has options defines ``class Options(Settings)``. If models of a format can be
understood only together, ``joined(models)`` completes them and returns those that are `Unread` after all. A user's own
reader is a file with the same parts. Arguments are given by the names of these parameters: ``place`` is the file or
folder that the user named, ``root`` that folder or the folder of that file. `imported` runs all readers and groups
comparable models.
"""

from unlearning_audit.readers._arrays import load
from unlearning_audit.readers._gather import Imported, imported, models
from unlearning_audit.readers._groups import Group
from unlearning_audit.readers._model import Agreement, Model, Reading, Unread
from unlearning_audit.readers._roles import COLUMNS as ROLE_COLUMNS
from unlearning_audit.readers._roles import table as roles
from unlearning_audit.readers._write import agreement_rows, notes_on_retrained, write

__all__ = [
    "ROLE_COLUMNS",
    "Agreement",
    "Group",
    "Imported",
    "Model",
    "Reading",
    "Unread",
    "agreement_rows",
    "imported",
    "load",
    "models",
    "notes_on_retrained",
    "roles",
    "write",
]
