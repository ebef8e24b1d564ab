"""Write a table in every format: csv in full precision, Markdown and LaTeX by the templates in resources/tables/, and
plain text."""

from collections.abc import Sequence
from pathlib import Path

from unlearning_audit.report import templates
from unlearning_audit.report.tables.typeset import Sheet
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

#: Significant digits in csv; further digits of a float64 depend on the order of additions.
DIGITS = 12


def write(
    sheets: list[Sheet], *, csv: str | Path, md: str | Path, tex: str | Path, columns: tuple[str, ...] = ()
) -> None:
    """Write the tables to a csv, a Markdown and a LaTeX file, each with all tables one after the other.

    The same tables give the same bytes. Real numbers in the csv have `DIGITS` significant digits. Columns without any
    text or footnote are left out of Markdown and LaTeX.

    Parameters
    ----------
    columns
        The first line of the csv if the tables have no numbers; otherwise, it has all columns of the numbers.
    """
    records = [
        {name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value for name, value in record.items()}
        for sheet in sheets
        for record in sheet.records
    ]
    tables.write_rows(csv, records, tuple(dict.fromkeys(name for record in records for name in record)) or columns)
    for path, ending in ((md, "md"), (tex, "tex")):
        write_text(path, "\n".join(rendered(sheet.filled(), ending) for sheet in sheets))


def rendered(sheet: Sheet, ending: str) -> str:
    """Return a table with its title above and its footnotes below: in Markdown ("md"), or as a floating table of LaTeX
    ("tex"), which needs the package booktabs.

    The templates are in resources/tables; their marks are <% %> and << >>, because LaTeX uses braces.
    """
    environment = templates.environment(
        "tables", keep_trailing_newline=True, block_start_string="<%", block_end_string="%>",
        variable_start_string="<<", variable_end_string=">>",
    )  # fmt: skip
    environment.filters |= {"md": _md, "tex": _tex}
    return environment.get_template(f"sheet.{ending}.jinja").render(sheet=sheet, spans=spans(sheet))


def _md(text: str) -> str:
    """Escape text, so that nothing in it is read as Markdown or HTML."""
    text = "".join(f"\\{letter}" if letter in "\\`*_|#~" else letter for letter in text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
    return text.replace("](", "]\\(").replace("![", "\\![")


def _tex(text: str) -> str:
    """Escape text so that LaTeX prints it as it is. If text begins with a bracket, empty braces go before it, because
    LaTeX would read a bracket after the end of a row as a length."""
    escaped = "".join(TEX.get(character, character) for character in text)
    return "{}" + escaped if text.startswith("[") else escaped


def spans(sheet: Sheet) -> list[tuple[str, int, int]]:
    """Return (group, its first column, number of columns) for each run of neighbouring columns with the same group,
    from left to right, for the line above the column names. Columns count from 1, which is the column of labels."""
    runs: list[tuple[str, int, int]] = []
    for column, head in enumerate(sheet.heads, start=2):
        group, first, count = runs.pop() if runs and runs[-1][0] == head.group else (head.group, column, 0)
        runs.append((group, first, count + 1))  # a run is continued, or a new one begins
    return runs


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows of a table as lines for a terminal, with columns aligned at the left and two spaces apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
