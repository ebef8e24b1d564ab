"""Describe tables independently of a format: heads on two levels, sections of lines, cells with footnotes."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from unlearning_audit.report import naming, words
from unlearning_audit.report.lookup import Cell

#: Flags: markers of a method that stand beside its name or number.
FAILED = "‡"
DIVERGED = "¶"
UNCHANGED = "†"
BROKEN = "§"

#: Value of a number of decimals that means two significant digits of each value.
SIGNIFICANT = -2
#: Flag → the sentence that explains it below a table.
FLAGS = {
    FAILED: "failed: the method raised an error, so there is nothing to measure.",
    DIVERGED: f"{words.DAMAGED.word}: its models diverged, so there is nothing to measure.",
    UNCHANGED: "changed nothing: the logits after unlearning are identical to those before.",
    BROKEN: "broken: it forgot by breaking the model.",
}
#: The sentence of the flag `BROKEN`, with the margins of a study.
BEYOND = (
    "broken: accuracy lies more than {points:g} points below that of retraining, or perplexity is more than {factor:g} "
    "times that of retraining, with the whole interval, so it forgot by breaking the model."
)


#: Unit → how many of the smallest unit of its kind (s, MiB) it is.
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "MiB": 1.0, "GiB": 1024.0}
#: The number with which a cell's text begins, and its unit.
LEADING = re.compile(rf"[<×]? ?(−?(?:\d[\d,]*\.?\d*(?:e[−+]?\d+)?|∞))(?: ({'|'.join(UNITS)})\b)?")
#: A number in a sentence.
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])")
#: Texts of a cell that has no number.
ABSENT = ("", "—", "·", *words.LOST, "not tested")


@dataclass(frozen=True)
class Head:
    """The head of a column: its title (``label``), the title that it shares with columns beside it (``group``), and its
    footnotes."""

    label: str
    group: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """The content of one cell: text, footnotes (sentences or flags), and a tone: "good", "bad" or ""."""

    text: str
    notes: tuple[str, ...] = ()
    tone: str = ""


@dataclass(frozen=True)
class Line:
    """One row: its label, its cells, the label's footnotes, and the section that it belongs to."""

    label: str
    cells: Sequence[Entry]
    notes: tuple[str, ...] = ()
    section: str = ""


@dataclass(frozen=True)
class Sheet:
    """A whole table.

    Parameters
    ----------
    reading
        A text on how to read the table.
    corner
        The head of the labels.
    records
        The table's numbers in full, one mapping each, for the csv.
    flags
        Sentences that replace those in `FLAGS`.
    """

    name: str
    title: str
    reading: str
    corner: str
    heads: Sequence[Head]
    lines: Sequence[Line]
    records: Sequence[dict[str, Any]] = field(default=(), repr=False)
    footer: Sequence[Line] = ()
    flags: dict[str, str] = field(default_factory=dict)

    @cached_property
    def footnotes(self) -> dict[str, str]:
        """Return every footnote → its marker, in reading order. Flags, such as †, are their own markers; sentences get
        letters."""
        sentences = list(dict.fromkeys(self.merged[note] for note in self._notes if note not in FLAGS))
        flags = {flag: flag for flag in FLAGS if flag in self._notes}
        letters = {text: _letters(i) for i, text in enumerate(sentences)}
        return flags | {note: letters[self.merged[note]] for note in self._notes if note not in FLAGS}

    @cached_property
    def _notes(self) -> dict[str, None]:
        """Return all footnotes in reading order, each once: the footnotes of heads, then for each line the footnotes of
        its label and of its cells."""
        noted = [note for head in self.heads for note in head.notes]
        for line in (*self.lines, *self.footer):
            noted += [*line.notes, *(note for cell in line.cells for note in cell.notes)]
        return dict.fromkeys(noted)

    @cached_property
    def merged(self) -> dict[str, str]:
        """Return footnote → the sentence that is printed. Footnotes that differ in one number share a sentence with the
        smallest and the largest number, such as "3 to 8 models"; any other footnote is printed as it is."""
        alike: dict[tuple[str, ...], list[str]] = {}  # the texts between the numbers → footnotes with these texts
        for note in self._notes:
            alike.setdefault(tuple(NUMBER.split(note)), []).append(note)
        sentences: dict[str, str] = {}
        for texts, group in alike.items():
            columns = list(zip(*(NUMBER.findall(note) for note in group), strict=True))  # first numbers, second, …
            varying = [(i, numbers) for i, numbers in enumerate(columns) if len(set(numbers)) > 1]
            shared = ""
            if len(varying) == 1:
                ((position, numbers),) = varying
                least, *_, most = sorted(numbers, key=float)
                shown = [first for first, *_ in columns]
                shown[position] = f"{least} to {most}"
                # Texts and numbers in turn; no number follows the last text.
                shared = "".join(text + number for text, number in zip(texts, [*shown, ""], strict=True))
            sentences |= {note: shared or note for note in group}
        return sentences

    def explained(self) -> list[tuple[str, str]]:
        """Return the marker and the sentence of every footnote, each marker once. The table's own ``flags`` replace the
        sentences of `FLAGS`."""
        sentence_of = self.merged | FLAGS | self.flags
        return list({marker: sentence_of[note] for note, marker in self.footnotes.items()}.items())

    def marks(self, notes: Iterable[str]) -> list[str]:
        """Return the markers of some footnotes."""
        return [self.footnotes[note] for note in notes]

    def filled(self) -> "Sheet":
        """Return the table without columns in which no cell has text or a footnote; unchanged if all columns are
        such."""
        lines = (*self.lines, *self.footer)
        keep = [i for i in range(len(self.heads)) if any(line.cells[i].text or line.cells[i].notes for line in lines)]
        if len(keep) in (0, len(self.heads)):
            return self
        narrow = [replace(line, cells=[line.cells[i] for i in keep]) for line in lines]
        count, heads = len(self.lines), [self.heads[i] for i in keep]
        return replace(self, heads=heads, lines=narrow[:count], footer=narrow[count:])

    def sections(self) -> list[tuple[str, list[Line]]]:
        """Return (section, its lines) for each section, in order."""
        grouped: dict[str, list[Line]] = {}
        for line in self.lines:
            grouped.setdefault(line.section, []).append(line)
        return list(grouped.items())


def decimals(cells: Iterable[Cell], least: int = 2) -> int:
    """Return the decimals, 0 to 4, at which an interval of median width among ``cells`` shows one or two digits of its
    width.

    Returns `SIGNIFICANT` for metrics that span orders of magnitude.

    Parameters
    ----------
    least
        The fewest decimals if all values are below 10. If the largest value is at least 10, the fewest are 1; from 100
        on, 0. Without intervals, the fewest decimals are returned.
    """
    cells = [cell for cell in cells if not cell.empty and math.isfinite(cell.value)]
    if any(naming.meaning(cell.metric).logarithmic for cell in cells):
        return SIGNIFICANT
    size = max((abs(cell.value) for cell in cells), default=0.0)
    if size >= 10:
        least = 1 if size < 100 else 0
    widths = sorted(cell.high - cell.low for cell in cells if cell.bounded)
    widths = [width for width in widths if 0 < width < math.inf]
    if not widths:
        return least
    median = widths[len(widths) // 2]
    return min(max(math.ceil(-math.log10(median)), least), 4)


def number(value: float, places: int) -> str:
    """Format a number with a true minus sign, ∞ for infinity, and powers of ten for very large values.

    With `SIGNIFICANT` for ``places``, very small values have powers of ten too; otherwise they are shown as 0.
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) >= 1e5 or (places == SIGNIFICANT and 0 < abs(value) < 1e-4):
        digits = 1 if places == SIGNIFICANT else 2  # after the first one
        return f"{value:.{digits}e}".replace("-", "−")
    if places == SIGNIFICANT:
        # Two digits, counted after rounding to two, because 0.0996 becomes 0.10.
        places = max(1 - math.floor(math.log10(abs(float(f"{value:.1e}")))), 0) if value else 0
    text = f"{value:.{places}f}"
    return text.replace("-", "" if float(text) == 0 else "−")  # no sign before 0


def interval(cell: Cell, places: int) -> str:
    """Format a number and its interval, "0.94 [0.91, 0.97]", with ``places`` decimals; without an interval, the number
    alone.

    An empty cell is "—", or the word for a method that failed or diverged.
    """
    if cell.empty:
        return cell.flag if cell.flag in words.LOST else "—"
    if not cell.bounded:
        return number(cell.value, places)
    return f"{number(cell.value, places)} [{number(cell.low, places)}, {number(cell.high, places)}]"


def leading(text: str) -> float:
    """Return the number with which a cell's text begins, by which the page sorts; NaN if there is none. A number with a
    unit is converted to the smallest unit of its kind, as 2 min to 120."""
    # 10⁻⁴ stands in "< 10⁻⁴", the only power of ten with raised digits.
    match = LEADING.match(text.replace("10⁻⁴", "1e−4"))
    if match is None:
        return math.nan
    return float(match[1].translate({ord("−"): "-", ord("∞"): "inf", ord(","): None})) * UNITS.get(match[2], 1.0)


def entry(cell: Cell, places: int, *, bare: bool = False) -> Entry:
    """Return the text of a number with its interval, unless ``bare``, and its footnotes.

    An empty cell has its reason as a footnote, and a method that changed nothing has a footnote that says so. A note
    beside a number is not shown. The cell of a method that failed or diverged has the tone "bad".
    """
    notes = (cell.note,) if cell.empty and cell.note else ()
    if cell.flag == "unchanged" and not cell.empty:
        notes = (UNCHANGED,)
    shown = Cell(cell.value, flag=cell.flag) if bare else cell
    return Entry(interval(shown, places), notes, tone="bad" if cell.flag in words.LOST else "")


def _letters(index: int) -> str:
    """Return the marker of footnote ``index``: a, b, … z, aa, ab, …"""
    return (_letters(index // 26 - 1) if index >= 26 else "") + chr(ord("a") + index % 26)
