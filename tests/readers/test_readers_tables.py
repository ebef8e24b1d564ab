"""How tables are read from files: formats, separators, decimals, and what is refused."""

import json
import re

import numpy as np
import pandas
import pytest
from unlearning_audit import readers

from reader_cases import read_one, study_table, table, three


@pytest.mark.parametrize(
    ("name", "separator"), [("losses.csv", ";"), ("losses.csv", "|"), ("losses.csv.gz", ","), ("losses.jsonl", "")]
)
def test_a_table_may_be_written_in_other_ways(tmp_path, name, separator):
    """Here the model says what it is, and the side which set."""
    rng = np.random.default_rng(6)
    whole = pandas.concat(
        [table(rng, shift, model=model) for model, shift in (("full", 2), ("retrain", 0), ("npo", 1))]
    )
    whole["side"] = whole["side"].replace({"forget": "forget_set", "retain": "retain90", "heldout": "Holdout-10"})
    if separator:
        whole.to_csv(tmp_path / name, index=False, sep=separator)
    else:
        whole.to_json(tmp_path / name, orient="records", lines=True)
    for place in (tmp_path, tmp_path / name):
        (group,) = readers.imported([place]).groups
        assert (len(group.none), len(group.retrain), list(group.methods)) == (1, 1, ["npo"])
        assert group.none[0].forget.sum() == group.none[0].heldout.sum() == 40
        first = whole[(whole["model"] == "full") & (whole["side"] != "retain90")]
        np.testing.assert_allclose(group.none[0].scores["loss"], -first["loss"])


@pytest.mark.parametrize(
    ("name", "lines", "cell"),
    [
        ("losses.tsv", ["side\tloss", "forget\t1.5", "", "heldout\t0,85", "heldout\t2"], "0,85"),
        ("losses.csv", ["side;loss", "forget;1,500", "heldout;0.85"], "1,500"),
        ("losses.csv", ["side;loss", "forget;35 %"], "35 %"),
        ("losses.txt", ["side,kind,loss", 'forget,full,"-1,2e-3"'], "-1,2e-3"),
        ("losses.json", ['[{"side": "forget", "loss": "3,5"}]'], "3,5"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_number_that_is_written_otherwise_is_refused(tmp_path, name, lines, cell, encoding):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8" if "json" in name else encoding)
    sentence = f"{path}: column 'loss' says '{cell}'; write all numbers with a point"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        readers.imported([path], alone=True)


@pytest.mark.parametrize(
    "rows",
    [
        ["loss,side", "3,8261,forget", "2,5013,heldout"],
        ["side,loss,kind", "forget,3,8261,full", "heldout,2,5013,full"],
        ["loss,score,side", "3,8261,0,5,forget", "2,5013,0,25,heldout"],
        ["loss,side", '"1",3.8261,forget', '"2",2.5013,heldout'],
    ],
)
def test_rows_of_more_cells_than_the_header_are_refused(tmp_path, rows):
    """Otherwise the first cell would be left out, and all others read under the name before theirs."""
    path = tmp_path / "losses.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    sentence = f"{path}: rows have more cells than the header; name every column, and write all numbers with a point"
    with pytest.raises(ValueError, match=r"losses\.csv: ") as error:
        readers.imported([path], alone=True)
    assert str(error.value) == sentence


def arrays_of(frame):
    """Columns by name, texts of numpy's own."""
    return {name: frame[name].to_numpy(str if name == "side" else None) for name in frame}


@pytest.mark.parametrize(
    ("suffix", "write"),
    [
        (".txt", lambda frame, path: frame.to_csv(path, index=False, sep="\t", encoding="utf-16")),
        (".tsv", lambda frame, path: frame.to_csv(path, index=False, sep="\t", encoding="utf-8-sig")),
        (".csv", lambda frame, path: frame.to_csv(path, index=False, sep="|")),
        (".parquet", lambda frame, path: frame.to_parquet(path)),
        (".json", lambda frame, path: frame.to_json(path, orient="records", indent=1)),
        (".json", lambda frame, path: frame.to_json(path, orient="records", lines=True)),
        (".json", lambda frame, path: path.write_text(json.dumps({"model": path.stem, **frame.to_dict("list")}))),
        (".json", lambda frame, path: path.write_text(json.dumps(frame.to_dict("list") | {"x": [[1, 2]]}), "utf-16")),
        (".json", lambda frame, path: frame.to_json(path)),
        (".npz", lambda frame, path: np.savez(path, **arrays_of(frame), x=np.ones((2, 3)), o=np.array([{}, 1]))),
        (".npz", lambda frame, path: np.savez_compressed(path, **arrays_of(frame), model=np.array(path.stem))),
    ],
    ids=[
        "unicode text of Excel",
        "tabulators",
        "bars",
        "parquet",
        "a list",
        "lines that are called json",
        "columns and a single value",
        "columns and others",
        "rows of columns",
        "arrays and others",
        "arrays and a single value",
    ],
)
def test_tables_as_other_programs_write_them_are_read(tmp_path, suffix, write):
    frames = three(tmp_path, suffix)
    for path, frame in frames.items():
        write(frame, path)
    for places in ([tmp_path], list(frames)):
        (group,) = readers.imported(places).groups
        assert (len(group.none), len(group.retrain), list(group.methods)) == (1, 1, ["npo"])
        frame = frames[group.none[0].file]
        np.testing.assert_allclose(group.none[0].scores["loss"], -frame["loss"][frame["side"] != "retain"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "this file is empty; was the run that wrote it interrupted?"),
        (b"sample,loss\n1,2\n", "no column of sample, loss says which samples were to be forgotten"),
        (b"sample,side\n1,forget\n", "no column of sample, side is called loss or score"),
        ("side,loss,prüfung\nforget,1,x".encode("latin-1"), "is not in UTF-8; save it anew, in Excel as CSV UTF-8"),
    ],
)
def test_a_table_of_a_folder_that_cannot_be_read_is_named(tmp_path, content, reason):
    """Beside others it is left out; alone it is refused."""
    for path, frame in three(tmp_path).items():
        frame.to_csv(path, index=False)
    (tmp_path / "ga.csv").write_bytes(content)
    (result,) = readers.imported([tmp_path]).out
    assert result.file.name == "ga.csv"
    assert reason in result.sentence
    (tmp_path / "alone").mkdir()
    (tmp_path / "ga.csv").rename(tmp_path / "alone/ga.csv")
    for place in (tmp_path / "alone", tmp_path / "alone/ga.csv"):
        with pytest.raises(ValueError, match=re.escape(reason)):
            readers.imported([place])


def test_files_of_a_folder_that_are_no_tables_of_samples_are_passed_over(tmp_path):
    frames = three(tmp_path)
    for path, frame in frames.items():
        frame.to_csv(path, index=False)
    (tmp_path / "times.csv").write_text("step,seconds\n1,2\n")
    (tmp_path / "log.txt").write_text("epoch 1, loss 0.5\n")
    (tmp_path / "config.json").write_text('{"loss": "ce", "split": "forget"}')
    (tmp_path / "columns.json").write_text('{"loss": [1, 2], "seconds": [3, 4]}')
    np.savez(tmp_path / "arrays.npz", loss=np.ones(2))
    assert readers.imported([tmp_path]).out == []


def test_samples_may_be_called_as_pandas_writes_nothing(tmp_path):
    frame = study_table().astype({"sample": str})
    first, second, third = frame["sample"].unique()[:3]
    frame["sample"] = frame["sample"].replace({first: "NA", second: "null", third: "None"})
    group = read_one(tmp_path / "losses.csv", frame)
    assert {"NA", "null", "None"} <= set(group.samples)
    assert len(group.samples) == 40


NEEDED = "must hold one number or one text for each sample"
REFUSED = {
    "lengths": ({"loss": np.ones(3), "side": np.array(["forget", "heldout"])}, "every column must have one value"),
    "axes": ({"loss": np.array([[1, 2], [3, 4]]), "side": np.array(["forget", "heldout"])}, f"column 'loss' {NEEDED}"),
    "objects": ({"loss": np.ones(2), "side": np.array(["forget", "heldout"], object)}, f"column 'side' {NEEDED}"),
    "single values": ({"loss": np.float64(2), "side": np.array("forget")}, "every column must have one value"),
    "a column": ({"loss": np.ones(2)}, "no column of loss says which samples were to be forgotten"),
}  # fmt: skip
#: JSON holds no Python objects, and an object of single values in it is no table.
OF_ARCHIVES = ("objects", "single values")


@pytest.mark.parametrize(
    ("suffix", "case"),
    [(".npz", case) for case in REFUSED] + [(".json", case) for case in REFUSED if case not in OF_ARCHIVES],
)
def test_columns_that_are_no_table_of_samples_are_refused(tmp_path, suffix, case):
    arrays, sentence = REFUSED[case]
    path = tmp_path / f"losses{suffix}"
    if suffix == ".npz":
        np.savez(path, **arrays)
    else:
        path.write_text(json.dumps({name: array.tolist() for name, array in arrays.items()}))
    with pytest.raises(ValueError, match=re.escape(f"{path}: {sentence}")):
        readers.imported([path])


@pytest.mark.parametrize("harm", [lambda content: content[:300], lambda content: content.replace(b"f\0", b"g\0", 1)])
def test_an_archive_that_is_damaged_is_named(tmp_path, harm):
    path = tmp_path / "losses.npz"
    np.savez(path, loss=np.ones(40), side=np.array(["forget", "heldout"] * 20))
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(ValueError, match=r"losses\.npz: this numpy archive cannot be read; is the file"):
        readers.imported([path])


@pytest.mark.parametrize("suffix", [".xlsx", ".xls", ".ods"])
def test_a_workbook_is_asked_for_as_text(tmp_path, suffix):
    """Beside tables it is left out; alone it is refused."""
    frames = three(tmp_path)
    for path, frame in frames.items():
        frame.to_csv(path, index=False)
    workbook = tmp_path / f"more{suffix}"
    workbook.write_bytes(b"PK\3\4")
    (result,) = readers.imported([tmp_path]).out
    sentence = f"{workbook}: workbooks are not read; save the sheet of the samples as CSV UTF-8, and give it"
    assert result.sentence == sentence
    for path in frames:
        path.unlink()
    for place in (tmp_path, workbook):
        with pytest.raises(ValueError, match="workbooks") as error:
            readers.imported([place])
        assert str(error.value) == sentence
