"""Tables of a study, and the formats in which they are written.

What tables are written with is imported from here.
"""

from unlearning_audit.report import lookup, naming, words
from unlearning_audit.report.lookup import Cell, Numbers, missing
from unlearning_audit.report.tables.typeset import Entry, Head, Line, Sheet, decimals, entry, interval, number

__all__ = [
    "Cell", "Entry", "Head", "Line", "Numbers", "Sheet", "decimals", "entry", "interval", "lookup", "missing", "naming",
    "number", "words",
]  # fmt: skip
