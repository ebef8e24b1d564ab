"""What pages list is what there is."""

import re

import fields
from workplace import ROOT


def test_the_page_of_fields_is_that_of_the_schema():
    written = (ROOT / "docs" / "fields.md").read_text(encoding="utf-8")
    assert written == fields.page(), "write it anew: uv run python scripts/fields.py"


def test_the_map_names_every_room_and_no_other():
    there = {path.parent.name for path in (ROOT / "scripts" / "unlearning").glob("*/__init__.py")}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = [line.split("|")[2] for line in re.findall(r"^\| \d+ \|.*", text, re.MULTILINE)]
    assert {room for cell in listed for room in re.findall(r"`(\w+)/`", cell)} == there
