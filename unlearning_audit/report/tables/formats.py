"""One sheet in every format: csv with all digits that mean something, Markdown, LaTeX with booktabs, plain text."""

import textwrap
from pathlib import Path

from unlearning_audit.report.tables.typeset import Line, Sheet
from unlearning_audit.store import tables
from unlearning_audit.store.files import write_text

TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "−": "$-$", "∞": r"$\infty$", "∈": r"$\in$", "∉": r"$\notin$", "×": r"$\times$", "≤": r"$\leq$",
    "≥": r"$\geq$", "∪": r"$\cup$", "∩": r"$\cap$", "±": r"$\pm$", "†": r"$\dagger$", "‡": r"$\ddagger$", "—": "---",
    "¶": r"\P{}", "–": "--", "…": r"\ldots{}", "·": r"$\cdot$", "′": "$'$", "₀": "$_0$", "²": "$^2$",
    "⁴": r"\textsuperscript{4}", "⁻": r"\textsuperscript{$-$}",
    "ρ": r"$\rho$", "§": r"\S{}", "α": r"$\alpha$", "ε": r"$\varepsilon$",
    "δ": r"$\delta$", "γ": r"$\gamma$", "ι": r"$\iota$", "Λ": r"$\Lambda$", "Ψ": r"$\Psi$", "φ": r"$\varphi$",
    "λ": r"$\lambda$", "β": r"$\beta$", "τ": r"$\tau$", "θ": r"$\theta$", "√": r"$\surd$", "→": r"$\to$",
    "“": "``", "”": "''", "‘": "`", "’": "'", "\n": " ",
}  # fmt: skip

#: Significant digits in csv; what follows them in a float64 is the order of additions.
DIGITS = 12


def write(
    sheets: list[Sheet], *, csv: str | Path, md: str | Path, tex: str | Path, columns: tuple[str, ...] = ()
) -> None:
    """Write the three files, one sheet after the other; the same sheets give the same bytes. ``columns`` head the csv
    where no sheet has a number."""
    records = [
        {name: float(f"{v:.{DIGITS}g}") if isinstance(v, float) else v for name, v in record.items()}
        for sheet in sheets
        for record in sheet.records
    ]
    tables.write_rows(csv, records, tuple(dict.fromkeys(name for record in records for name in record)) or columns)
    for path, render in ((md, markdown), (tex, latex)):
        write_text(path, "\n".join(render(sheet.filled()) for sheet in sheets))


# ---------------------------------------------------------------- Markdown


def markdown(sheet: Sheet) -> str:
    """A Markdown table with its title above and its footnotes below."""
    heads = [
        _plain_md(": ".join(filter(None, (head.group, head.label)))) + _super_md(sheet, head.notes)
        for head in sheet.heads
    ]
    out = [f"**{_plain_md(sheet.title)}**", "", _plain_md(sheet.reading), ""] if sheet.reading else []
    out = out or [f"**{_plain_md(sheet.title)}**", ""]
    out += [_row_md([_plain_md(sheet.corner), *heads]), _row_md([":---", *["---:"] * len(heads)])]
    for section, lines in sheet.sections():
        out += [_row_md([f"**{_plain_md(section)}**", *[""] * len(heads)])] if section else []
        out += [_line_md(sheet, line) for line in lines]
    out += [_line_md(sheet, line, "*") for line in sheet.footer]
    notes = [f"<sup>{marker}</sup> {_plain_md(sentence)}" for marker, sentence in sheet.explained()]
    return "\n".join([*out, "", "  \n".join(notes), ""] if notes else [*out, ""])


def _line_md(sheet: Sheet, line: Line, emphasis: str = "") -> str:
    label = f"{emphasis}{_plain_md(line.label)}{emphasis}{_super_md(sheet, line.notes)}"
    return _row_md([label, *(_plain_md(cell.text) + _super_md(sheet, cell.notes) for cell in line.cells)])


def _super_md(sheet: Sheet, notes: tuple[str, ...]) -> str:
    return f"<sup>{' '.join(sheet.marks(notes))}</sup>" if notes else ""


def _row_md(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain_md(text: str) -> str:
    """Text in which nothing is read as Markdown or HTML."""
    text = "".join(f"\\{c}" if c in "\\`*_|#~" else c for c in text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
    return text.replace("](", "]\\(").replace("![", "\\![")


# ---------------------------------------------------------------- LaTeX


def latex(sheet: Sheet) -> str:
    r"""A floating LaTeX table; needs \usepackage{booktabs}."""
    width = len(sheet.heads) + 1
    grouped = any(head.group for head in sheet.heads)
    out = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{tex('. '.join(filter(None, (sheet.title, sheet.reading))))}}}",
        rf"\label{{tab:{sheet.name}}}",
        rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}",
        r"\toprule",
        *(_groups_tex(sheet) if grouped else []),
        _row_tex([tex(sheet.corner), *(tex(head.label) + _super_tex(sheet, head.notes) for head in sheet.heads)]),
        r"\midrule",
    ]
    for number, (section, lines) in enumerate(sheet.sections()):
        out += [r"\addlinespace"] if section and number else []
        out += [rf"\multicolumn{{{width}}}{{l}}{{\emph{{{tex(section)}}}}} \\"] if section else []
        out += [_line_tex(sheet, line) for line in lines]
    out += [r"\midrule", *(_line_tex(sheet, line) for line in sheet.footer)] if sheet.footer else []
    out += [r"\bottomrule", r"\end{tabular}"]
    notes = [rf"\textsuperscript{{{tex(marker)}}} {tex(sentence)}" for marker, sentence in sheet.explained()]
    if notes:
        out += [r"\par\smallskip", r"\begin{minipage}{0.9\linewidth}\footnotesize\raggedright", " \\\\\n".join(notes)]
        out += [r"\end{minipage}"]
    return "\n".join([*out, r"\end{table}", ""])


def _groups_tex(sheet: Sheet) -> list[str]:
    cells, rules, column = [""], [], 2
    for group, span in spans(sheet):
        cells.append(rf"\multicolumn{{{span}}}{{c}}{{{tex(group)}}}" if span > 1 else tex(group))
        rules += [rf"\cmidrule(lr){{{column}-{column + span - 1}}}"] if group else []
        column += span
    return [_row_tex(cells), " ".join(rules)]


def _line_tex(sheet: Sheet, line: Line) -> str:
    pairs = [(line.label, line.notes), *((cell.text, cell.notes) for cell in line.cells)]
    return _row_tex([tex(text) + _super_tex(sheet, notes) for text, notes in pairs])


def _super_tex(sheet: Sheet, notes: tuple[str, ...]) -> str:
    return rf"\textsuperscript{{{' '.join(map(tex, sheet.marks(notes)))}}}" if notes else ""


def _row_tex(cells: list[str]) -> str:
    # A row that starts with a bracket would be read as the length after the \\ above it.
    cells = [f"{{}}{cell}" if cell.startswith("[") else cell for cell in cells]
    return " & ".join(cells) + r" \\"


def tex(text: str) -> str:
    """Text in which nothing is read as LaTeX."""
    return "".join(TEX.get(character, character) for character in text)


# ---------------------------------------------------------------- plain text


def spans(sheet: Sheet) -> list[tuple[str, int]]:
    """(group, number of columns) of the upper heads, from left to right."""
    runs: list[tuple[str, int]] = []
    for head in sheet.heads:
        if runs and runs[-1][0] == head.group:
            runs[-1] = (head.group, runs[-1][1] + 1)
        else:
            runs.append((head.group, 1))
    return runs


def plain(sheet: Sheet, width: int = 100) -> str:
    """An aligned table for a terminal, footnotes wrapped at ``width``; columns keep their natural width."""
    lines = [*sheet.lines, *sheet.footer]
    first = [line.label + _super_plain(sheet, line.notes) for line in lines]
    body = [[cell.text + _super_plain(sheet, cell.notes) for cell in line.cells] for line in lines]
    heads = [head.label + _super_plain(sheet, head.notes) for head in sheet.heads]
    indent = "  " if any(line.section for line in lines) else ""
    left = max(map(len, [sheet.corner, *(indent + label for label in first)]))
    wide = [max(len(row[i]) for row in [heads, *body]) for i in range(len(heads))]
    # Numbers line up on the left where they carry intervals, like their heads.
    out = []
    if any(head.group for head in sheet.heads):
        upper, column = [], 0
        for group, span in spans(sheet):
            wide[column + span - 1] += max(len(group) - sum(wide[column : column + span]) - 2 * (span - 1), 0)
            upper.append(f"{group:<{sum(wide[column : column + span]) + 2 * (span - 1)}}")
            column += span
        out.append(f"{'':<{left}}  " + "  ".join(upper))
    out += [f"{sheet.corner:<{left}}  " + "  ".join(f"{h:<{w}}" for h, w in zip(heads, wide, strict=True))]
    section = ""
    for line, label, row in zip(lines, first, body, strict=True):
        if line.section != section:
            out += [line.section] if line.section else []
            section = line.section
        out.append(f"{indent + label:<{left}}  " + "  ".join(f"{c:<{w}}" for c, w in zip(row, wide, strict=True)))
    for marker, sentence in sheet.explained():
        out += textwrap.wrap(f"{marker} {sentence}", width, subsequent_indent=" " * (len(marker) + 1))
    return "\n".join(line.rstrip() for line in out) + "\n"


def _super_plain(sheet: Sheet, notes: tuple[str, ...]) -> str:
    return " " + " ".join(f"({m})" if m.isalpha() else m for m in sheet.marks(notes)) if notes else ""
