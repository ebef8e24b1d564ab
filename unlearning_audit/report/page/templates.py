"""Pages from the templates in resources/page/: text is escaped, and nothing is left undefined."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

import unlearning_audit
from unlearning_audit.store.files import checked

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = unlearning_audit.ROOT / "resources" / "page"


def read(path: Path) -> str:
    """The text of a file. Raises ArtifactError."""
    return checked(path, lambda: path.read_text(encoding="utf-8"))


def environment() -> "Environment":
    """What templates are read by."""
    import jinja2

    folder = jinja2.FileSystemLoader(FOLDER)
    return jinja2.Environment(
        loader=folder, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def render(name: str, **context: Any) -> str:
    """The page from a template, with the style of all pages; one file that needs no network."""
    template = environment().from_string(read(FOLDER / name))
    return template.render(style=Markup(read(FOLDER / "page.css")), **context)
