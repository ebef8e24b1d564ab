"""Scores and metrics: round trips, the same bytes for the same content, and every way in which a file can be wrong."""

import re

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from unlearning_audit.store import tables
from unlearning_audit.store.files import ArtifactError

SCORES = {
    "attack": np.array(["loss", "loss", "shadow", "shadow", "loss"]),
    "form": np.array(["trained", "trained", "trained", "unlearned", "unlearned"]),
    "model": np.array([0, 1, 0, 0, 1], np.int32),
    "index": np.array([3, 4, 3, 3, 4], np.int32),
    "role": np.array(["forget", "heldout", "forget", "forget", "heldout"]),
    "score": np.array([0.1, -2.0, 1 / 3, 1e300, 5e-324]),
    "decision": np.array([True, False, True, False, True]),
}


def test_scores_round_trip_by_attack_and_form(tmp_path):
    path = tmp_path / "scores.parquet"
    tables.write_scores(path, SCORES)
    read = tables.read_scores(path)
    assert {*read} == {*zip(SCORES["attack"], SCORES["form"], strict=True)}
    for (attack, form), columns in read.items():
        rows = (SCORES["attack"] == attack) & (SCORES["form"] == form)
        for name in ("model", "index", "role", "score", "decision"):
            np.testing.assert_array_equal(columns[name], SCORES[name][rows])
    tables.write_scores(path, tables.no_scores())
    assert tables.read_scores(path) == {}


def test_a_file_that_is_cut_is_refused(tmp_path):
    (tmp_path / "scores.parquet").write_bytes(b"PAR1")
    with pytest.raises(ArtifactError, match=r"scores\.parquet: this file is damaged"):
        tables.read_scores(tmp_path / "scores.parquet")


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("form", None, "is missing"),
        ("index", [0.5] * 5, "dtype float64"),
        ("score", [1.0, 2.0, float("nan"), 4.0, float("inf")], "2 values that are NaN or infinite"),
    ],
)
def test_a_wrong_column_is_told_by_file_and_name(tmp_path, column, values, problem):
    columns = {name: list(value) for name, value in SCORES.items()}
    columns = {n: v for n, v in {**columns, column: values}.items() if v is not None}
    path = tmp_path / "scores.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(ArtifactError, match=f"^{re.escape(str(path))}: .*'{column}'.*({problem})"):
        tables.read_scores(path)
