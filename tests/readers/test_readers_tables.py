"""How tables are read from files: formats, separators, decimals, and what is refused."""

import json
import re

import numpy as np
import pandas
import pytest
from unlearning_audit import readers

from reader_cases import read_one, shape, study_table, table, three, write_three


def arrays_of(frame):
    """Columns by name, texts of numpy's own."""
    return {name: frame[name].to_numpy(str if name == "side" else None) for name in frame}


@pytest.mark.parametrize(
    ("suffix", "write"),
    [
        (".txt", lambda frame, path: frame.to_csv(path, index=False, sep="\t", encoding="utf-16")),
        (".tsv", lambda frame, path: frame.to_csv(path, index=False, sep="\t", encoding="utf-8-sig")),
        (".csv", lambda frame, path: frame.to_csv(path, index=False, sep="|")),
        (".csv", lambda frame, path: frame.to_csv(path, index=False, sep=";")),
        (".csv.gz", lambda frame, path: frame.to_csv(path, index=False)),
        (".parquet", lambda frame, path: frame.to_parquet(path)),
        (".jsonl", lambda frame, path: frame.to_json(path, orient="records", lines=True, double_precision=15)),
        (".json", lambda frame, path: frame.to_json(path, orient="records", indent=1, double_precision=15)),
        (".json", lambda frame, path: frame.to_json(path, orient="records", lines=True, double_precision=15)),
        (".json", lambda frame, path: path.write_text(json.dumps({"model": path.stem, **frame.to_dict("list")}))),
        (".json", lambda frame, path: path.write_text(json.dumps(frame.to_dict("list") | {"x": [[1, 2]]}), "utf-16")),
        (".json", lambda frame, path: frame.to_json(path, double_precision=15)),
        (".npz", lambda frame, path: np.savez(path, **arrays_of(frame), x=np.ones((2, 3)), o=np.array([{}, 1]))),
        (".npz", lambda frame, path: np.savez_compressed(path, **arrays_of(frame), model=np.array(path.stem))),
    ],
)
def test_tables_as_other_programs_write_them_are_read(tmp_path, suffix, write):
    frames = three(tmp_path, suffix)
    for path, frame in frames.items():
        frame["side"] = frame["side"].replace({"forget": "forget_set", "retain": "retain90", "heldout": "Holdout-10"})
        write(frame, path)
    for places in ([tmp_path], list(frames)):
        (group,) = readers.imported(places).groups
        assert shape(group) == (1, 1, {"npo": 1})
        frame = frames[group.none[0].file]
        np.testing.assert_allclose(group.none[0].scores["loss"], -frame["loss"][frame["side"] != "retain90"])


def test_a_model_of_a_table_may_say_what_it_is(tmp_path):
    rng = np.random.default_rng(6)
    parts = [table(rng, shift, model=model) for model, shift in (("full", 2), ("retrain", 0), ("npo", 1))]
    assert shape(read_one(tmp_path / "losses.csv", pandas.concat(parts))) == (1, 1, {"npo": 1})


def test_records_without_sides_are_of_what_was_to_be_forgotten(tmp_path):
    rng = np.random.default_rng(2)
    for name in ("retrain", "npo"):
        rows = [{"img": i, "entropy": rng.uniform(0, 2), "confidence": rng.uniform()} for i in range(30)]
        (tmp_path / f"{name}.json").write_text(json.dumps({"values": rows}))
    (group,) = readers.imported([tmp_path]).groups
    (model,) = group.methods["npo"]
    assert model.forget.all()
    assert model.readings["forget_confidence"].direction == -model.readings["forget_entropy"].direction == 1


def test_samples_may_be_called_as_pandas_writes_nothing(tmp_path):
    frame = study_table().astype({"sample": str})
    frame["sample"] = frame["sample"].replace(dict(zip("012", ("NA", "null", "None"), strict=True)))
    group = read_one(tmp_path / "losses.csv", frame)
    assert {"NA", "null", "None"} <= set(group.samples)
    assert len(group.samples) == 40


#: If it were not refused, the first cell would be left out, and all others read under the name before theirs.
MORE = "rows have more cells than the header; name every column, and"


@pytest.mark.parametrize(
    ("name", "lines", "reason"),
    [
        ("losses.tsv", ["side\tloss", "forget\t1.5", "", "heldout\t0,85", "heldout\t2"], "column 'loss' says '0,85';"),
        ("losses.csv", ["side;loss", "forget;1,500", "heldout;0.85"], "column 'loss' says '1,500';"),
        ("losses.csv", ["side;loss", "forget;35 %"], "column 'loss' says '35 %';"),
        ("losses.txt", ["side,kind,loss", 'forget,full,"-1,2e-3"'], "column 'loss' says '-1,2e-3';"),
        ("losses.json", ['[{"side": "forget", "loss": "3,5"}]'], "column 'loss' says '3,5';"),
        ("losses.csv", ["loss,side", "3,8261,forget", "2,5013,heldout"], MORE),
        ("losses.csv", ["loss,side", '"1",3.8261,forget', '"2",2.5013,heldout'], MORE),
    ],
)
def test_a_number_that_is_written_otherwise_is_refused(tmp_path, name, lines, reason):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-16" if "tsv" in name else "utf-8")
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {reason} write all numbers with a point')}"):
        readers.imported([path], alone=True)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("ga.csv", b"", "this file is empty; was the run that wrote it interrupted?"),
        ("ga.csv", b"sample,loss\n1,2\n", "no column of sample, loss says which samples were to be forgotten"),
        ("ga.csv", b"sample,side\n1,forget\n", "no column of sample, side is called loss or score"),
        ("ga.csv", "side,loss,prüfung\nforget,1,x".encode("latin-1"), "this table is not in UTF-8; save it anew"),
        *[(f"ga{suffix}", b"PK\3\4", "workbooks are not read; save the sheet of the samples as CSV UTF-8, and give it")
          for suffix in (".xlsx", ".xls", ".ods")],
    ],
)  # fmt: skip
def test_a_table_of_a_folder_that_cannot_be_read_is_named(tmp_path, name, content, reason):
    """Beside others it is left out; alone it is refused."""
    write_three(tmp_path)
    path = tmp_path / name
    path.write_bytes(content)
    (result,) = readers.imported([tmp_path]).unread
    assert result.sentence.startswith(f"{path}: {reason}")
    (tmp_path / "alone").mkdir()
    path = path.rename(tmp_path / "alone" / name)
    for place in (path.parent, path):
        with pytest.raises(ValueError, match=re.escape(f"{path}: {reason}")):
            readers.imported([place])


def test_files_of_a_folder_that_are_no_tables_of_samples_are_passed_over(tmp_path):
    write_three(tmp_path)
    (tmp_path / "times.csv").write_text("step,seconds\n1,2\n")
    (tmp_path / "log.txt").write_text("epoch 1, loss 0.5\n")
    (tmp_path / "config.json").write_text('{"loss": "ce", "split": "forget"}')
    (tmp_path / "columns.json").write_text('{"loss": [1, 2], "seconds": [3, 4]}')
    np.savez(tmp_path / "arrays.npz", loss=np.ones(2))
    assert readers.imported([tmp_path]).unread == []


EVERY = "every column must have one value"
SIDES = np.array(["forget", "heldout"])


@pytest.mark.parametrize(
    ("suffixes", "arrays", "sentence"),
    [
        (".npz .json", {"loss": np.ones(3), "side": SIDES}, EVERY),
        (".npz .json", {"loss": np.array([[1, 2], [3, 4]]), "side": SIDES}, "no column of side is called loss or"),
        (".npz .json", {"loss": np.ones(2)}, "no column of loss says which samples were to be forgotten"),
        (".npz", {"loss": np.ones(2), "side": SIDES.astype(object)}, "no column of loss says which samples were"),
        (".npz", {"loss": np.float64(2), "side": np.array("forget")}, EVERY),
    ],
)
def test_columns_that_are_no_table_of_samples_are_refused(tmp_path, suffixes, arrays, sentence):
    for path in (tmp_path / f"losses{suffix}" for suffix in suffixes.split()):
        if path.suffix == ".npz":
            np.savez(path, **arrays)
        else:
            path.write_text(json.dumps({name: array.tolist() for name, array in arrays.items()}))
        with pytest.raises(ValueError, match=re.escape(f"{path}: {sentence}")):
            readers.imported([path])


def test_an_archive_that_is_damaged_is_named(tmp_path):
    path = tmp_path / "losses.npz"
    np.savez(path, loss=np.ones(40), side=np.array(["forget", "heldout"] * 20))
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(ValueError, match=r"losses\.npz: this numpy archive cannot be read; is the file"):
        readers.imported([path])
