"""Titles that mean something to a template, a page, a formula or a terminal stand where they are shown as they are."""

import csv
import html
import re

import pytest
import yaml

pytestmark = pytest.mark.slow

#: What stands in the titles of a table and of a figure, by what would take it for more than text.
TITLES = {
    "template": r"back\slash \1 \g<0> \n",
    "markup": "<script>alert(1)</script> <b>x</b> & y",
    "braces": "{{ 7 * 7 }} {% raw %} {name} ${HOME} %s",
    "mathtext": r"$\frac{1$ and $x_1",
    "dollars": r"$\frac{1$, $5 and $6",
    "formula": "=HYPERLINK(1)",
    "markdown": "*a* _b_ `c` | d [e](f) # g",
    "quotes": "it's \"so\" 'x",
}


def labels() -> list[str]:
    """Those that a step of an axis may have: a study refuses = and ; in them."""
    return [title for title in TITLES.values() if not {*"=;"} & {*title}]


@pytest.fixture(scope="module")
def titled(finished, tmp_path_factory):
    place = finished.copy(tmp_path_factory.mktemp("titled") / "work")
    study = yaml.safe_load((place.folder / "study.yaml").read_text())
    for name, title in TITLES.items():
        study["tables"][name] = {**study["tables"]["quality"], "title": title}
        study["figures"][name] = {**study["figures"]["quality"], "title": title}
    steps = {label: {"recipe": {"epochs": epochs}} for epochs, label in enumerate(labels(), start=1)}
    study["scenarios"]["labelled"] = {"vary": {"wording": steps}}
    for kind, axis in (("quality", {}), ("axis", {"axis": "wording"})):
        study["figures"][f"labelled_{kind}"] = {"title": kind, "kind": kind, "scenarios": ["labelled"], **axis}
    study["tables"]["labelled"] = {**study["tables"]["quality"], "scenarios": ["labelled"], "columns": "wording"}
    place.write(study)
    return place, place.run().stdout


def test_the_run_says_nothing_of_them(titled):
    _, output = titled
    assert "Traceback" not in output
    assert "defect" not in output


@pytest.mark.parametrize("name", TITLES)
def test_the_page_and_the_drawing_show_the_title_as_text(titled, name):
    place, _ = titled
    page = (place.folder / "results/tiny/report.html").read_text()
    text = html.unescape(re.sub(r"<(script|style)\b[^>]*>.*?</\1>", "", page, flags=re.DOTALL))
    assert text.count(TITLES[name]) >= 2  # the table's and the figure's
    assert "<script>alert(1)" not in page
    assert "49" not in re.findall(r"<h\d[^>]*>([^<]*)</h\d>", page)
    drawing = (place.folder / f"results/tiny/figures/{name}.svg").read_text()
    assert "<script" not in drawing


def test_labels_of_steps_stand_as_they_are(titled):
    place, _ = titled
    folder = place.folder / "results/tiny"
    page = (folder / "report.html").read_text()
    text = html.unescape(re.sub(r"<(script|style)\b[^>]*>.*?</\1>", "", page, flags=re.DOTALL))
    markdown = html.unescape((folder / "tables/labelled.md").read_text())
    for kind in ("axis", "quality"):
        drawing = (folder / f"figures/labelled_{kind}.svg").read_text()
        assert "<script" not in drawing
    for label in labels():
        assert label in text
        assert re.sub(r"\W", "", label) in re.sub(r"\W", "", markdown)


@pytest.mark.parametrize("name", TITLES)
def test_tables_hold_it_as_text(titled, name):
    place, _ = titled
    folder = place.folder / "results/tiny/tables"
    with (folder / f"{name}.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "@"))]
    markdown = (folder / f"{name}.md").read_text()
    assert "<script" not in markdown
    letters = re.sub(r"\W", "", TITLES[name])
    for text in (markdown, (folder / f"{name}.tex").read_text()):
        plain = re.sub(r"&\w+;|\\text\w+\{\}|\W", "", text)
        assert re.sub(r"amp|lt|gt", "", letters)[:8] in re.sub(r"amp|lt|gt", "", plain)
