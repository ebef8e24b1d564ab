"""What lies on the disk, to the letter: other versions and other programs read it."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from unlearning_audit.store import files, tables
from unlearning_audit.store.files import ArtifactError


def test_json_is_indented_by_a_space_and_sorted(tmp_path):
    files.write_json(tmp_path / "a.json", {"b": [1], "a": 2})
    assert (tmp_path / "a.json").read_text() == '{\n "a": 2,\n "b": [\n  1\n ]\n}\n'


def test_a_spec_holds_the_checksum_of_itself_without_it(tmp_path):
    files.write_spec(tmp_path / "spec.json", {"b": 1, "a": 2})
    # b2sum -l 160 of the same text without the line of the checksum.
    assert (tmp_path / "spec.json").read_text() == (
        '{\n "a": 2,\n "b": 1,\n "checksum": "50d266a135fcf0f24bf31a6ac3af634d45d083ab"\n}\n'
    )
    assert files.record_of(tmp_path / "a.npz")["b"] == 1
    assert files.record_of(tmp_path / "other" / "a.npz") == {}


@pytest.mark.parametrize(
    "value",
    [{}, {"a": 1}, {"d": 1}, {"a": 1, "d": {"checksum": "a" * 40}}, {"a": '\n "checksum": "', "b": {"c": [{}, ""]}}],
)
def test_a_spec_is_read_as_it_was_written_wherever_its_checksum_stands(tmp_path, value):
    path = tmp_path / "spec.json"
    files.write_spec(path, value)
    record = files.record_of(path)
    checksum = record.pop("checksum")
    assert record == value
    text = path.read_text()
    for changed in (
        text.replace(checksum, checksum[::-1]),
        text.replace(f'"{checksum}"', '""'),
        text.replace(checksum, checksum + "0"),
    ):
        path.write_text(changed)
        with pytest.raises(ArtifactError, match="not as it was made"):
            files.record_of(path)


def test_a_seal_is_the_checksum_in_a_hidden_file(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    files.seal(tmp_path / "a")
    assert (tmp_path / ".a.blake2b").read_text() == "384264f676f39536840523f284921cdc68b6846b"


def test_a_stale_part_that_another_process_removed_first_is_no_obstacle(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: [folder / ".a.json.1.part"])
    files.write_json(tmp_path / "a.json", 1)
    assert files.read_json(tmp_path / "a.json") == 1


def test_what_is_told_already_is_told_once(tmp_path):
    (tmp_path / "a").touch()

    def read():
        raise ArtifactError("b: is wrong")

    with pytest.raises(ArtifactError, match=r"^b: is wrong$"):
        files.reading_errors(tmp_path / "a", read)


# ---------------------------------------------------------------- scores


def test_why_an_attack_has_no_scores_is_kept_in_no_order(tmp_path):
    why = {"rmia": "needs shadow models", "art": "needs gradients"}
    paths = [tmp_path / name / "node" / "scores.parquet" for name in "ab"]
    for path, names in zip(paths, (list(why), list(why)[::-1]), strict=True):
        tables.write_scores(path, tables.no_scores(), {name: why[name] for name in names})
    assert tables.read_failures(paths[0]) == why
    assert paths[0].read_bytes() == paths[1].read_bytes()
    metadata = pyarrow.parquet.read_schema(paths[0]).metadata
    assert (metadata[b"node"], json.loads(metadata[b"failed"])) == (b"node", why)
    tables.write_scores(paths[0], tables.no_scores())
    assert tables.read_failures(paths[0]) == {}
    assert b"failed" not in pyarrow.parquet.read_schema(paths[0]).metadata


def test_scores_of_one_attack_are_taken_out_as_they_were_written(tmp_path):
    """Of all roles and three attacks; dictionaries of pyarrow number names in their order of appearance."""
    names = ["b", "c", "b", "a", "b"]
    columns = {
        "attack": np.array(names), "form": np.array(["trained", "unlearned", "unlearned", "trained", "unlearned"]),
        "model": np.arange(5, dtype=np.int32), "index": np.arange(5, dtype=np.int32)[::-1],
        "role": np.array([*tables.ROLES, "test"]), "score": np.arange(5) / 3, "decision": np.arange(5) > 2,
    }  # fmt: skip
    tables.write_scores(tmp_path / "scores.parquet", columns)
    parts = tables.rows_of(tables.read_scores(tmp_path / "scores.parquet"), "b")
    for form, rows in (("trained", [0]), ("unlearned", [2, 4])):
        (part,) = [part for part in parts if set(part["form"]) == {form}]
        for name, value in columns.items():
            np.testing.assert_array_equal(part[name], value[rows])
    assert tables.rows_of({}, "b") == []
