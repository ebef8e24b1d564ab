"""Files inside the page: drawings that follow its theme, downloads without a server."""

import base64
import re
from pathlib import Path

from unlearning.artifacts.files import checked
from unlearning.display import style

KINDS = {
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".tex": "application/x-tex",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}


def drawing(path: str | Path, label: str) -> str:
    """A matplotlib svg for the page: no prologue, unique ids, colours of the page's theme."""
    text = checked(path, lambda: Path(path).read_text(encoding="utf-8"))
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    own = re.sub(r"\W", "-", Path(path).stem)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{own}-", text)
    for ink, name in zip(
        (style.INK, style.MUTED, style.GRID, style.PAPER), ("ink", "muted", "grid", "paper"), strict=True
    ):
        text = text.replace(ink, f"var(--{name})")
    width, height = (float(re.search(rf'<svg[^>]*? {side}="([\d.]+)pt"', text)[1]) for side in ("width", "height"))
    head = f'<svg class="figure" viewBox="0 0 {width:g} {height:g}" style="max-width:{width * 2.1:.0f}px" role="img" '
    return re.sub(r"<svg[^>]*>", f'{head}aria-label="{label}">', text, count=1)


def width(drawing: str) -> float:
    """Width of an embedded drawing in points."""
    return float(re.search(r'viewBox="0 0 ([\d.]+)', drawing)[1])


def download(path: str | Path) -> dict[str, str]:
    """Name, ending and content of a file as a data address."""
    path = Path(path)
    content = base64.b64encode(checked(path, path.read_bytes)).decode()
    return {"file": path.name, "kind": path.suffix[1:], "address": f"data:{KINDS[path.suffix]};base64,{content}"}
