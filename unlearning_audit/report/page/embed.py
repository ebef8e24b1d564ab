"""Embed files in the page: figures that follow its theme, downloads, and libraries."""

import base64
import gzip
import html
import re
from pathlib import Path

from markupsafe import Markup, escape

from unlearning_audit.report import style, templates
from unlearning_audit.store.files import read_verified

KINDS = {".csv": "text/csv", ".md": "text/markdown", ".tex": "application/x-tex", ".png": "image/png",
         ".svg": "image/svg+xml"}  # fmt: skip
#: Files that the page includes, compressed. Figures are drawn in the page, and pictures remain beside it.
PACKED = (".csv", ".md", ".tex")
#: The largest scale of a figure, in pixels per point: its text of 7.5 points is then as large as the page's, 16 pixels.
SCALE = 2.1


def title(path: str | Path) -> str:
    """Return the sentence on what a figure shows, which is the title in its svg file; "" if it has none."""
    found = re.search(r"<title>(.*?)</title>", templates.read(Path(path)), flags=re.S)
    return html.unescape(found[1]) if found else ""


def drawing(path: str | Path, label: str) -> Markup:
    """Return a matplotlib svg file as an element of the page: without prologue and title, with ids that are unique in
    the page, coordinates cut after two decimals, colours of the page's theme, and a size in pixels. ``label``: the
    sentence for screen readers.
    """
    text = templates.read(Path(path))
    text = text[text.index("<svg") :]
    text = re.sub(r"<(metadata|title)>.*?</\1>", "", text, flags=re.S)
    # Two figures may have the same ids, so the figure's name stands before every id and every reference to one.
    prefix = re.sub(r"\W", "-", Path(path).stem)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
    # A hundredth of a point is enough for a screen. Text between tags is unchanged.
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d\d)\d+", r"\1", tag[0]), text)
    for name, ink in {"ink": style.INK, "muted": style.MUTED, "grid": style.GRID, "paper": style.PAPER}.items():
        text = text.replace(ink, f"var(--{name})")
    width, height = (_first_number(rf'<svg[^>]*? {side}="([\d.]+)pt"', text) for side in ("width", "height"))
    head = f'<svg class="figure" viewBox="0 0 {width:g} {height:g}" style="max-width:{SCALE * width:.0f}px" role="img" '
    # A function as replacement, because re.sub would interpret backslashes of a label in a string.
    return Markup(re.sub(r"<svg[^>]*>", lambda _: f'{head}aria-label="{escape(label)}">', text, count=1))


def width(drawing: str) -> float:
    """Return the width of an embedded figure in points."""
    return _first_number(r'viewBox="0 0 ([\d.]+)', drawing)


def _first_number(pattern: str, text: str) -> float:
    """Return the number in the group of the first match of ``pattern``."""
    return float(re.findall(pattern, text)[0])


def packed(content: bytes) -> str:
    """Return bytes as base64 of gzip, which the page's script unpacks. The same bytes give the same text."""
    return base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode()


def download(path: str | Path) -> dict[str, str]:
    """Return the name, ending, type and address of a file for a download link, and its compressed ``content`` if the
    page includes files of that ending ("" if not).

    Raises ArtifactError for a damaged file, so that no damaged file is offered, even where the page only links it.
    """
    path = Path(path)
    whole = read_verified(path, path.read_bytes)
    ending, address = path.suffix, f"{path.parent.name}/{path.name}"
    content = packed(whole) if ending in PACKED else ""
    return {"file": path.name, "kind": ending[1:], "type": KINDS[ending], "address": address, "content": content}
