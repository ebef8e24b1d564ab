"""What pages list is what there is."""

import re

import fields
from unlearning.plugins import registry
from workplace import ROOT


def test_the_page_of_fields_is_that_of_the_schema():
    written = (ROOT / "docs" / "fields.md").read_text(encoding="utf-8")
    assert written == fields.page(), "write it anew: uv run python scripts/fields.py"


def test_the_map_names_every_room_and_no_other():
    there = {path.parent.name for path in (ROOT / "scripts" / "unlearning").glob("*/__init__.py")}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = [line.split("|")[2] for line in re.findall(r"^\| \d+ \|.*", text, re.MULTILINE)]
    assert {room for cell in listed for room in re.findall(r"`(\w+)/`", cell)} == there


def test_the_page_of_metrics_names_all_that_metrics_compute():
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    declared = {quantity.name for name in registry.names("metrics") for quantity in registry.quantities(name)}
    # Means, medians and spreads of one quantity are explained together, as are the tests of RULI by their prefixes.
    names = {re.sub(r"(_median|_sd)$", "", name).partition("*")[0] for name in declared}
    ends = re.compile(r"(trained|remained|privacy|efficacy)_(auc|accuracy|tpr_at_|roc)$")
    assert not {name for name in names if f"`{name}" not in text and not ends.match(name)}
