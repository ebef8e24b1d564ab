"""What comes from strangers runs nothing where it is shown: formulas in cells."""

import pytest
from unlearning_audit.evaluation import rows
from unlearning_audit.evaluation.rows import Failure, Row

TEXTS = ("=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(A1)", "\tx", "'=x", "it's", "'quoted'", "plain")


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
