"""What pages list is what there is."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from unlearning_audit.plugins import registry

import fields
import flows
import pipeline
from workplace import ROOT


def test_the_page_of_fields_is_that_of_the_schema():
    page = (ROOT / "docs" / "fields.md").read_text(encoding="utf-8")
    assert page == fields.page(), "write it anew: uv run python tools/fields.py"


def test_the_picture_of_the_pipeline_is_that_of_the_rules():
    picture = (ROOT / "docs" / "pipeline.svg").read_text(encoding="utf-8")
    assert picture == pipeline.svg(), "draw it anew: uv run python tools/pipeline.py"


def test_the_drawings_of_what_flows_pass_through_are_those_of_the_code():
    assert flows.PAGE.read_text(encoding="utf-8") == flows.page(), "draw them anew: uv run python tools/flows.py"


def test_the_readme_is_short_and_names_files_that_are_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len([word for word in text.split() if re.search(r"\w", word)]) <= 550
    for path in re.findall(r"(?:docs|profiles|studies)/[\w/]+\.\w+|config\.yaml|CONTRIBUTING\.md|CITATION\.cff", text):
        assert (ROOT / path).is_file(), path


def test_the_gallery_shows_every_report_by_its_picture_in_small_files():
    text = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    files = {path.name: path.stat().st_size for path in (ROOT / "docs" / "gallery").iterdir()}
    reports = re.findall(r"\]\(gallery/(\w+)\.png\)\]\(gallery/(\w+)\.html\)", text)
    assert sorted(f"{name}.{ending}" for name, _ in reports for ending in ("html", "png")) == sorted(files)
    assert all(picture == report for picture, report in reports)
    studies = {path.stem for path in (ROOT / "studies/gallery").glob("*.yaml")}
    assert studies | {"tofu", "leaderboard"} == {name for name, _ in reports}
    assert all(size < (200_000 if name.endswith(".png") else 3_000_000) for name, size in files.items())
    for name, _ in reports:
        page = (ROOT / f"docs/gallery/{name}.html").read_text(encoding="utf-8")
        assert not re.findall(r'(?:href|src)="(?!#|data:image/png;base64,|tables/)[^"]*"', page)
        assert "/tmp/" not in page


def test_the_map_names_every_room_and_no_other():
    rooms = {path.parent.name for path in (ROOT / "unlearning_audit").glob("*/__init__.py")}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = [line.split("|")[2] for line in re.findall(r"^\| \d+ \|.*", text, re.MULTILINE)]
    assert {room for cell in listed for room in re.findall(r"`(\w+)/`", cell)} == rooms


def test_the_page_of_metrics_names_all_that_metrics_compute():
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    declared = {quantity.name for name in registry.names("metrics") for quantity in registry.quantities(name)}
    # Means, medians and spreads of one quantity are explained together, as are the tests of RULI by their prefixes.
    names = {re.sub(r"(_median|_sd)$", "", name).partition("*")[0] for name in declared}
    ends = re.compile(r"(trained|remained|privacy|efficacy)_(auc|accuracy|tpr_at_|roc)$")
    assert not {name for name in names if f"`{name}" not in text and not ends.match(name)}


@pytest.mark.slow
@pytest.mark.parametrize("dead", [False, True])
def test_the_check_of_the_pages_passes_and_finds_a_dead_link(tmp_path, dead):
    """With the command of .ci/run itself; --quiet would count no warnings."""
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ *NO_MKDOCS_2_WARNING=1 uv run (mkdocs .*)$", ci, re.MULTILINE)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name in ("resources", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("mkdocs.yml", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path)
    if dead:
        with (tmp_path / "docs/index.md").open("a") as page:
            page.write("\n[nowhere](nowhere.md)\n")
    run = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=tmp_path, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert (run.returncode != 0) == dead, run.stdout
    assert ("'nowhere.md'" in run.stdout) == dead
