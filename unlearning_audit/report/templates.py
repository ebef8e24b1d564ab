"""Render the templates of pages, tables and new files in resources/. An undefined name in a template is an error."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

import unlearning_audit
from unlearning_audit.store.files import read_verified

if TYPE_CHECKING:
    from jinja2 import Environment

#: The folder of templates, and in it that of pages.
RESOURCES = unlearning_audit.ROOT / "resources"
FOLDER = RESOURCES / "page"


def read(path: Path) -> str:
    """Return the text of a file. Raises ArtifactError if the file is missing or damaged."""
    return read_verified(path, lambda: path.read_text(encoding="utf-8"))


def environment(folder: str, **more: Any) -> "Environment":
    """Return a jinja2 environment for the templates in a ``folder`` of resources/, in which an undefined name is an
    error. ``more``: further arguments of jinja2.Environment."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(RESOURCES / folder), undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, **more,
    )  # fmt: skip


def render(name: str, **context: Any) -> str:
    """Return the HTML of a page from the template ``name`` in resources/page, with the style that all pages share.

    Text is escaped. ``context``: the values that the template shows, and the functions that it calls.
    """
    page_environment = environment("page", autoescape=True)
    return page_environment.from_string(read(FOLDER / name)).render(style=Markup(read(FOLDER / "page.css")), **context)
