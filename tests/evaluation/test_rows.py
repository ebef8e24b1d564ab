"""Rows and failures: what they say, round trips through csv, and every way in which a file can be wrong."""

import csv
import math
import re
from dataclasses import fields, replace

import numpy as np
import pytest
from unlearning_audit.evaluation import rows, verdicts
from unlearning_audit.evaluation.rows import Failure, Record, Row
from unlearning_audit.store.files import ArtifactError

ROWS = [
    Row("auc", 0.1 + 0.2, 0.0, 1.0, 12, 'a "quoted", note\nwith ε and ′', "loss/trained", pair=0, rate=0.01),
    Row("q", ci_high=math.inf, attack="paper", role="forget", target="vulnerable", rule="exact", models=4),
    Failure("attack", "mine", "mine.py line 3, in score: KeyError: 'x'", "mine.py", 3, "Traceback …\n  x\n"),
]
RECORDS = [
    Record(name, "swap", "scrub", {"epsilon": "8"} if name == "a" else {"model": "cnn"}, row)
    for name in "abca"
    for row in ROWS
]


def test_rows_round_trip_in_full_precision(tmp_path):
    path = tmp_path / "metrics.csv"
    rows.write(path, ROWS)
    assert repr(rows.read(path)) == repr(ROWS)  # NaN is not equal to itself
    first, _, failure = csv.DictReader(path.open(encoding="utf-8", newline=""))
    assert list(first) == [*(field.name for field in fields(Row)), "failed", "name", "file", "line", "traceback"]
    assert (first["pair"], first["rate"], first["role"], first["failed"]) == ("0", "0.01", "", "")
    assert (failure["metric"], failure["failed"], failure["name"], failure["line"]) == ("failed", "attack", "mine", "3")


@pytest.mark.parametrize("scenarios", [None, ["b"], ["a", "c"], []])
@pytest.mark.parametrize("metrics", [None, ["q"], ["auc", "failed"]])
def test_some_records_are_those_of_the_whole_with_their_axes(tmp_path, scenarios, metrics):
    path = tmp_path / "metrics.csv"
    rows.write_study(path, "s", RECORDS)
    expected = [
        record
        for record in RECORDS
        if (scenarios is None or record.scenario in scenarios)
        and (metrics is None or getattr(record.row, "metric", "failed") in metrics)
    ]
    assert repr(rows.read_study(path, scenarios, metrics)) == repr(expected)
    first = next(csv.DictReader(path.open(encoding="utf-8", newline="")))
    owner = ("study", "scenario", "protocol", "method", "axis_epsilon", "axis_model", "model")
    assert [first[name] for name in owner] == ["s", "a", "swap", "scrub", "8", "", ""]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("metric,value", "metrics,value", "KeyError: 'metric'"),
        ("0.30000000000000004", "0.3.0", "'0.3.0'"),
        (",12,", ",12.5,", "'12.5'"),
        ("q,,,inf,0", "q,,,inf", "is shorter than"),
        ("q,,,inf,0", "q,,,inf,0,", "is longer than"),
        (",mine.py,3,", ",mine.py,x,", "'x'"),
    ],
)
def test_a_wrong_row_is_refused_by_its_file(tmp_path, old, new, problem):
    path = tmp_path / "metrics.csv"
    rows.write(path, [replace(ROWS[0], note=""), ROWS[1], replace(ROWS[2], traceback="")])
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ArtifactError, match=rf"metrics\.csv: this file is damaged.*{re.escape(problem)}"):
        rows.read(path)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (Row("mine", value=True), "field 'value' of the row 'mine' must be a number, not True"),
        (Row("mine", value="0.5"), "must be a number, not '0.5'"),
        (Row("mine", n=-5), "field 'n' of the row 'mine' must be a whole number of at least 0, not -5"),
        (Row("mine", pair=1.5), "field 'pair' of the row 'mine' must be a whole number"),
        (Row("mine\nyours"), "printable text in one line"),
        (Row(3), "field 'metric' of the row 3 must be printable text"),
        (Row("mine", 0.5, 0.9, 0.1), "the interval of the row 'mine' ends, at 0.1, before it begins, at 0.9"),
        (Row("mine", 0.7, rate=None, attack="kde"), "two rows are called 'mine' of attack kde; set a field that"),
    ],
)
def test_a_row_that_could_not_be_read_again_is_named(row, words):
    before = [
        Row("mine", 0.5, attack="kde"), Row("mine", 0.5, n=2**63 - 1, attack="kde", pair=0),
        Row("mine", math.inf, role="test"), Row("mine", 1 - 2**63, role="retain"),
    ]  # fmt: skip
    assert rows.problem(before) == ""
    assert words in rows.problem([*before, row])


RANKS = ",".join(verdicts.RANKS) + "\n"


def test_tables_of_a_comparison_are_read_as_numbers_and_text(tmp_path):
    path = tmp_path / "ranks.csv"
    path.write_text(f"{RANKS}auc,ga,-0.5,1,,3,0\n")
    (line,) = verdicts.read(path, verdicts.RANKS)
    np.testing.assert_equal([*line.values()], ["auc", "ga", -0.5, 1.0, math.nan, 3.0, 0.0])
    for text, problem in (
        ("", "the columns are not metric, method, distance, best, worst, methods, ahead"),
        (f"{RANKS}a,b,1,x,1,1,0\n", "'x'"),
        (f"{RANKS}a,b,1,1\n", "argument 2 is shorter"),
    ):
        path.write_text(text)
        with pytest.raises(ArtifactError, match=f"ranks.csv: this file is damaged.*{problem}"):
            verdicts.read(path, verdicts.RANKS)
