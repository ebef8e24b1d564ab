"""metrics.csv: some of its rows are those of the whole, however it is written, and a bad line is found."""

import csv

import pytest
from unlearning_audit.evaluation import rows
from unlearning_audit.evaluation.rows import Failure, Record, Row
from unlearning_audit.store.files import ArtifactError

TRACE = 'line 1\n  line "2", the last'
RECORDS = [
    Record(
        "a", "swap", "none", {"size": "400"}, Row("q", 0.1, 0.0, 0.2, 9, 'with "quotes", and more', pair=3, rate=0.1)
    ),
    Record("a", "swap", "mine", {}, Failure("method", "mine", "it raised", "mine.py", 7, TRACE)),
    Record("b", "swap", "none", {}, Row("q", attack="kde", role="forget")),
    Record("b", "swap", "none", {}, Row("loss", 1e-300, n=2)),
]


@pytest.fixture
def path(tmp_path):
    rows.write_union(tmp_path / "metrics.csv", "study", RECORDS)
    return tmp_path / "metrics.csv"


@pytest.mark.parametrize("scenarios", [None, ["a"], ["b"], ["a", "b"], ["c"], []])
@pytest.mark.parametrize("metrics", [None, ["q"], ["loss", "failed"]])
def test_some_rows_are_those_of_the_whole(path, scenarios, metrics):
    whole = rows.read_union(path)
    assert repr(whole) == repr(RECORDS)  # NaN is not equal to itself
    expected = [
        record
        for record in whole
        if (scenarios is None or record.scenario in scenarios)
        and (metrics is None or getattr(record.row, "metric", "failed") in metrics)
    ]
    assert repr(rows.read_union(path, scenarios, metrics)) == repr(expected)


@pytest.mark.parametrize("scenarios", [None, ["a"]])
def test_a_line_of_another_length_is_found_in_any_part(path, scenarios):
    with path.open(newline="") as file:
        lines = list(csv.reader(file))
    lines[4].pop()
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    with pytest.raises(ArtifactError, match="this file is damaged"):
        rows.read_union(path, scenarios)
