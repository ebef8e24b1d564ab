"""Golden numbers find a change of one part in a million, and let one of 1e-10 pass."""

import pandas as pd
import pytest

from golden import check

TABLE = pd.DataFrame(
    {
        "method": ["none", "npo", "retrain"],
        "verdict": ["distinguishable", "inconclusive", ""],
        "distance": ["0.25", "-31.5", ""],
        "n": ["80", "80", "80"],
        "note": ["a sentence", "", ""],
    }
)


def changed(column: str, row: int, value: str) -> list[check.Difference]:
    """What is found where one cell is another one."""
    table = TABLE.copy()
    table.loc[row, column] = value
    return list(check.compare("table", TABLE, table))


def test_a_table_in_another_order_is_the_same():
    assert list(check.compare("table", TABLE, TABLE.iloc[::-1, ::-1].reset_index(drop=True))) == []


@pytest.mark.parametrize(("row", "sign"), [(0, -1), (1, 1)])
def test_a_change_of_one_part_in_a_million_is_found_and_one_of_1e_10_is_not(row, sign):
    value = float(TABLE["distance"][row])
    (difference,) = changed("distance", row, repr(value * (1 + sign * 1e-6)))
    assert (difference.column, difference.expected) == ("distance", TABLE["distance"][row])
    assert changed("distance", row, repr(value + sign * 1e-10)) == []


@pytest.mark.parametrize(
    ("column", "row", "value", "rows"),
    [("verdict", 1, "equivalent", 2), ("n", 0, "81", 2), ("distance", 2, "0.1", 1), ("distance", 0, "", 1),
     ("distance", 0, "nan", 1), ("note", 0, "another sentence", 0), ("n", 0, "80.0", 0)],
)  # fmt: skip
def test_codes_counts_and_empty_cells_are_compared_and_sentences_are_not(column, row, value, rows):
    assert len(changed(column, row, value)) == rows


def test_columns_and_rows_that_are_new_or_gone_are_found():
    assert [d.column for d in check.compare("table", TABLE, TABLE.drop(columns="n"))] == ["n"]
    assert [d.column for d in check.compare("table", TABLE.iloc[:2], TABLE)] == ["row"]
    assert len(list(check.compare("table", TABLE, pd.concat([TABLE, TABLE.iloc[:1]])))) == 1


@pytest.fixture
def golden(tmp_path, monkeypatch):
    """Files of names and of what may differ, written by a test."""
    monkeypatch.setattr(check, "GOLDEN", tmp_path)
    (tmp_path / "renamed.csv").write_text("kind,where,old,new\n")
    (tmp_path / "allowed.csv").write_text("part,table,column,row,reason\n")
    return tmp_path


def test_renamed_columns_and_codes_are_the_same(golden):
    lines = ["column,,distance,trace", "code,method,none,untouched", "code,verdict,inconclusive,", "table,,old,new"]
    (golden / "renamed.csv").write_text("\n".join(["kind,where,old,new", *lines, ""]))
    new = TABLE.rename(columns={"distance": "trace"}).replace({"method": {"none": "untouched"}}).drop(index=1)
    assert check.differences("study", {"old": TABLE}, {"new": new}, 0.0) == []
    assert len(check.differences("study", {"old": TABLE}, {"old": new}, 0.0)) == 2


def test_what_is_allowed_to_differ_needs_a_reason_and_a_use(golden, capsys):
    found = {"study": changed("distance", 0, "0.26")}
    assert check.judge("scoring", found) == 1
    assert "was 0.25, is 0.26" in capsys.readouterr().out
    for reason, use, wrong in (("mended", "distance", 0), ("", "distance", 1), ("mended", "ci_low", 1)):
        line = f"scoring,tab*,{use},none *,{reason}"
        (golden / "allowed.csv").write_text(f"part,table,column,row,reason\n{line}\n")
        assert check.judge("scoring", found) == wrong
    (golden / "allowed.csv").write_text("part,table,column,row,reason\nscoring,study/t,distance,*,mended\n")
    assert check.judge("scoring", {"study": []}) == 1
    assert "nothing differs there" in capsys.readouterr().out
    assert check.judge("scoring", {"another": []}) == 0
