"""Files are written whole or not at all, and a damaged one is told by name."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit.store import files
from unlearning_audit.store.files import ArtifactError, read_arrays, read_json, replacing, verify, write_arrays

#: The published digest of b"abc" (b2sum -l 160), since RFC 7693 gives none of 20 bytes.
ABC = "384264f676f39536840523f284921cdc68b6846b"


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def write_record(path: Path) -> None:
    files.write_spec(path.with_name("spec.json"), {"checksums": {path.name: files.checksum(path)}})


# ---------------------------------------------------------------- what lies on the disk, to the letter


def test_json_is_sorted_and_a_spec_holds_the_checksum_of_itself_without_it(tmp_path):
    files.write_json(tmp_path / "a.json", {"b": [1], "a": 2})
    assert (tmp_path / "a.json").read_text() == '{\n "a": 2,\n "b": [\n  1\n ]\n}\n'
    files.write_spec(tmp_path / "spec.json", {"b": 1, "a": 2})
    assert (tmp_path / "spec.json").read_text() == (
        '{\n "a": 2,\n "b": 1,\n "checksum": "50d266a135fcf0f24bf31a6ac3af634d45d083ab"\n}\n'
    )
    assert files.spec_of(tmp_path / "a.npz")["b"] == 1
    assert files.spec_of(tmp_path / "other" / "a.npz") == {}


def test_checksums_are_the_published_ones_and_a_seal_is_one_in_a_hidden_file(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    files.seal(tmp_path / "a")
    assert files.checksum(tmp_path / "a") == (tmp_path / ".a.blake2b").read_text() == ABC
    # FIPS 180-4, example 1
    assert files.sha256(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_archives_hold_no_time_and_no_order(tmp_path):
    for folder in "ab":
        write_arrays(tmp_path / folder / "node" / "a.npz", x=np.zeros((2, 3), order="F"), y=np.ones(1))
    assert (tmp_path / "a/node/a.npz").read_bytes() == (tmp_path / "b/node/a.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "a/node/a.npz") as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


# ---------------------------------------------------------------- writing


def test_a_new_file_takes_the_place_of_the_old_one_only_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "folder" / "file.txt"
    with replacing(path) as part:
        part.write_text("old")
    writing = replacing(path)
    writing.__enter__().write_text("half of the n")
    assert not writing.__exit__(KeyError, KeyError("stop"), None)
    assert path.read_text() == "old"
    assert names(path.parent) == ["file.txt"]


def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path):
    (tmp_path / ".models.safetensors.part").mkdir()
    for left in ("models.safetensors", ".tmpq5RFis"):
        (tmp_path / ".models.safetensors.part" / left).write_text("half")
    with replacing(tmp_path / "models.safetensors") as part:
        part.write_text("whole")
    assert names(tmp_path) == ["models.safetensors"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), Exception("os error 28")])
def test_a_full_disk_is_told_and_leaves_the_old_file(tmp_path, error):
    """Libraries in Rust have exceptions of their own."""
    path = tmp_path / "a.npz"
    write_arrays(path, x=np.zeros(2))
    writing = replacing(path)
    writing.__enter__().write_text("half")
    with pytest.raises(ArtifactError, match=r"a\.npz: could not be written \(.*\); free space or fix the permissions"):
        writing.__exit__(type(error), error, None)
    assert names(tmp_path) == ["a.npz"]
    assert read_arrays(path)["x"].tolist() == [0, 0]


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArtifactError, match=r"file/a.json: could not be written \((Not a directory|File exists)\)"):
        files.write_json(tmp_path / "file" / "a.json", 1)


# ---------------------------------------------------------------- reading


def test_a_missing_file_is_told(tmp_path):
    for read in (read_arrays, read_json):
        with pytest.raises(ArtifactError, match=r"gone: this file does not exist; run the workflow again to build it"):
            read(tmp_path / "gone")


def test_an_archive_that_is_cut_or_has_another_bit_is_told(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, x=np.arange(50), y=np.ones(3))
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[whole.index(np.arange(50).tobytes()) + 100] ^= 1
    for damaged in (*(whole[:size] for size in range(0, len(whole), 13)), flipped):
        path.write_bytes(damaged)
        with pytest.raises(ArtifactError, match=r"a\.npz: this file is damaged"):
            read_arrays(path)


def test_damaged_json_is_told(tmp_path):
    (tmp_path / "a.json").write_text("[1, 2")
    with pytest.raises(ArtifactError, match=r"a\.json: this file is damaged"):
        read_json(tmp_path / "a.json")


def test_nothing_is_unpickled(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([{}], object))
    with pytest.raises(ArtifactError, match=r"a\.npz: this file is damaged or not of the expected format"):
        read_arrays(tmp_path / "a.npz")


def test_a_record_of_another_node_is_refused_and_one_that_names_none_passes(tmp_path):
    for key, node in (("1", "node-22"), ("2", None)):
        path = tmp_path / f"node-{key}" / "spec.json"
        files.write_spec(path, {"node": node} if node else {})
    with pytest.raises(ArtifactError, match=r"node-1/spec.json: this file was made for 'node-22', not for 'node-1'"):
        read_json(tmp_path / "node-1" / "spec.json")
    assert read_json(tmp_path / "node-2" / "spec.json").keys() == {"checksum"}


@pytest.mark.parametrize("record", [write_record, files.seal])
def test_a_file_that_is_not_as_it_was_made_is_told(tmp_path, record):
    path = tmp_path / "metrics.csv"
    path.write_text("a\n1\n2\n")
    verify(path)
    record(path)
    verify(path)
    path.write_text("a\n1\n")
    told = r"metrics\.csv: this file is not as it was made \(its checksum in (spec\.json|\.metrics\.csv\.blake2b) dif"
    with pytest.raises(ArtifactError, match=told):
        verify(path)


@pytest.mark.parametrize(
    "change", [lambda text: text.replace("a", "b", 1), lambda text: "[]", lambda text: '{"stage": "train"}']
)
def test_a_spec_vouches_for_itself(tmp_path, change):
    path, other = (tmp_path / node / "spec.json" for node in ("node-0123456789", "node-9876543210"))
    files.write_spec(path, {"stage": "data", "seconds": 1e-7, "node": "node-0123456789"})
    assert read_json(path)["seconds"] == 1e-7
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text
    with pytest.raises(ArtifactError, match=r"spec\.json: this file is not as it was made"):
        read_json(path)
    other.parent.mkdir()
    other.write_text(text)
    with pytest.raises(ArtifactError, match="made for 'node-0123456789', not for 'node-9876543210'"):
        read_json(other)


def test_a_field_is_checked_for_presence_kind_shape_and_numbers():
    check = files.Check("a.npz", {"x": np.zeros((2, 3)), "n": np.array([1.0, np.nan, np.inf]), "i": np.arange(2)})
    assert check.field("x", "f", (2, None)).shape == (2, 3)
    for name, kinds, shape, problem in (
        ("z", "f", None, r"'z' is missing \(the file has i, n, x\)"),
        ("x", "iu", None, "'x' has dtype float64, expected kind i/u"),
        ("x", "f", (2, 4), r"'x' has shape \(2, 3\), expected \(2, 4\)"),
        ("x", "f", (None,), r"'x' has shape \(2, 3\), expected \(any\)"),
        ("n", "f", (3,), "'n' has 2 values that are NaN or infinite"),
    ):
        with pytest.raises(ArtifactError, match=f"^a.npz: field {problem}.*replace the file or delete it"):
            check.field(name, kinds, shape)
