"""What comes from strangers runs nothing where it is shown: formulas in cells, pipes for files."""

import os

import pytest
from unlearning_audit.evaluation import rows
from unlearning_audit.evaluation.rows import Failure, Row
from unlearning_audit.report.page import embed
from unlearning_audit.store.files import ArtifactError, read_arrays, read_json

TEXTS = ("=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(A1)", "\tx", "'=x", "it's", "'quoted'", "plain")
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="10pt" height="5pt">'
    "{}</svg>"
)


@pytest.mark.parametrize("text", TEXTS)
def test_cells_are_no_formulas_and_come_back_as_they_were(tmp_path, text):
    path = tmp_path / "metrics.csv"
    table = [Row("q", value=-0.5, note=text, attack=text), Failure("method", text, text, "a.py", 3, text)]
    rows.write(path, table)
    assert rows.read(path) == table
    content = path.read_text()
    assert ",-0.5," in content  # numbers stay numbers
    for mark in "=+-@":
        assert f",{mark}{text[1:]}" not in content
        assert f',"{mark}{text[1:]}' not in content


def test_ordinary_drawings_are_shown(tmp_path):
    path = tmp_path / "figure.svg"
    path.write_text(SVG.format('<defs><clipPath id="a"/></defs><g><use xlink:href="#a"/><text>on = 1</text></g>'))
    assert embed.drawing(path, r"a\b \1 \g<0>").startswith('<svg class="figure"')
    assert r'aria-label="a\b \1 \g<0>"' in embed.drawing(path, r"a\b \1 \g<0>")


def test_pipes_and_devices_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    for read, name in ((read_json, "zero.json"), (read_arrays, "pipe.npz")):
        with pytest.raises(ArtifactError, match=f"{name}: this is no file; delete it and run again"):
            read(tmp_path / name)
    os.mkfifo(tmp_path / "spec.json")
    with pytest.raises(ArtifactError, match=r"spec\.json: this is no file; delete it and run again"):
        read_json(tmp_path / "spec.json")
