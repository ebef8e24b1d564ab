"""Show docs/notebook.ipynb, with its outputs, as the page notebook.md of the documentation. MkDocs calls this
module."""

import json
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "notebook.ipynb"


def on_page_read_source(page: Any, config: Any) -> str | None:
    """Return the text of the page notebook.md; None for every other page, so that MkDocs reads its file."""
    return text(json.loads(NOTEBOOK.read_text(encoding="utf-8"))) if page.file.src_uri == "notebook.md" else None


def text(notebook: dict[str, Any]) -> str:
    """Return the cells of a notebook and their outputs as Markdown: figures as SVG, tables as HTML, else plain text."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", "")})  # what is printed has only a text
            kind = next(kind for kind in ("image/svg+xml", "text/html", "text/plain") if kind in data)
            block = "".join(data[kind])
            if kind == "text/plain":
                parts.append(f"```text\n{block}\n```")
            else:  # in Markdown, a blank line would end the HTML
                parts.append(f"<div>{block}</div>".replace("\n\n", "\n"))
    return "\n\n".join(parts)
