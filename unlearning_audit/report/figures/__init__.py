"""One file for each kind of figure: ``draw(numbers, order)`` returns a matplotlib figure.

What figures are written with is imported from here.
"""

from unlearning_audit.report import lookup, naming, style, words
from unlearning_audit.report.lookup import Cell, Numbers, missing

__all__ = ["Cell", "Numbers", "lookup", "missing", "naming", "style", "words"]
