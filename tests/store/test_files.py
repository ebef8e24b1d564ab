"""Files are written whole or not at all, and a damaged one is told by name."""

import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit.store import files
from unlearning_audit.store.files import (
    ArtifactError,
    Check,
    checksum,
    read_arrays,
    read_json,
    replacing,
    seal,
    sha256,
    verify,
    write_arrays,
    write_json,
    write_spec,
)

SCRIPTS = Path(files.__file__).parents[2]


# ---------------------------------------------------------------- writing


def test_a_new_file_takes_the_place_of_the_old_one_only_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "folder" / "file.txt"
    with replacing(path) as part:
        part.write_text("old")

    def fail():
        with replacing(path) as part:
            part.write_text("half of the n")
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


def test_what_a_killed_process_left_is_removed_when_it_is_old(tmp_path):
    code = (
        "import os, signal, sys\n"
        "from unlearning_audit.store.files import replacing\n"
        "with replacing(sys.argv[1]) as part:\n"
        "    part.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "file.txt"
    subprocess.run([sys.executable, "-c", code, path], env={**os.environ, "PYTHONPATH": SCRIPTS}, check=False)
    (left,) = tmp_path.iterdir()
    assert left.suffix == ".part"
    for age in (0, 4000):
        os.utime(left, (time.time() - age,) * 2)
        assert left.exists(), "it may be of a process that runs"
        with replacing(path) as part:
            part.write_text("whole")
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "a.csv", "a.json", "models.safetensors"])
def test_a_full_disk_is_told_and_leaves_the_old_file(tmp_path, name):
    """The limit on the size of a file makes the system refuse a write half-way, like a disk that runs full."""
    code = """
import resource, sys
import numpy as np
from unlearning_audit.store import files, tables
path, count = sys.argv[1], int(sys.argv[2])

def write(count):
    if path.endswith(".npz"):
        files.write_arrays(path, x=np.zeros(count))
    elif path.endswith(".parquet"):
        tables.write_scores(path, {"score": np.random.default_rng(0).normal(size=count)})
    elif path.endswith(".csv"):
        tables.write_rows(path, [{"note": "x" * 8}] * count, ("note",))
    elif path.endswith(".json"):
        files.write_json(path, ["x" * 8] * count)
    else:
        from safetensors.numpy import save_file
        with files.replacing(path) as part:
            save_file({"x": np.zeros(count)}, part)

write(10)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
try:
    write(count)
except files.ArtifactError as error:
    sys.exit(f"told: {error}")
"""
    path = tmp_path / name
    run = subprocess.run(
        [sys.executable, "-c", code, path, "10000"], env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.stderr.startswith(f"told: {path}: could not be written (")
    assert "File too large" in run.stderr
    assert run.stderr.strip().endswith("free space or fix the permissions and run again, finished files are kept")
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert path.stat().st_size < 2000


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(ArtifactError, match=r"file/a.json: could not be written \((Not a directory|File exists)\)"),
        replacing(tmp_path / "file" / "a.json"),
    ):
        pass


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize("read", [read_arrays, read_json])
def test_a_missing_file_is_told(tmp_path, read):
    with pytest.raises(ArtifactError, match=r"gone: this file does not exist; run the workflow again to build it"):
        read(tmp_path / "gone")


def test_an_archive_cut_anywhere_is_told(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, x=np.arange(50), y=np.ones(3))
    whole = path.read_bytes()
    for size in range(0, len(whole), 13):
        path.write_bytes(whole[:size])
        with pytest.raises(ArtifactError, match=r"a\.npz: this file is damaged"):
            read_arrays(path)


def test_a_flipped_bit_in_an_archive_is_told(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, x=np.arange(50))
    whole = bytearray(path.read_bytes())
    place = whole.index(np.arange(50).tobytes())
    whole[place + 100] ^= 1
    path.write_bytes(whole)
    with pytest.raises(ArtifactError, match=r"a\.npz: this file is damaged"):
        read_arrays(path)


@pytest.mark.parametrize("text", ["", "{", "not json", "[1, 2"])
def test_damaged_json_is_told(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ArtifactError, match=r"a\.json: this file is damaged"):
        read_json(tmp_path / "a.json")


def test_nothing_is_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    np.savez(tmp_path / "a.npz", x=np.array([Trap()], object))
    with pytest.raises(ArtifactError, match=r"a\.npz: this file is damaged or not of the expected format") as error:
        read_arrays(tmp_path / "a.npz")
    assert "allow_pickle" not in str(error.value)
    assert not (tmp_path / "sprung").exists()


def test_a_file_of_another_node_is_refused_and_one_from_elsewhere_passes(tmp_path):
    first, second = (tmp_path / f"node-{key * 10}" / "a.npz" for key in "12")
    write_arrays(first, x=np.zeros(2))
    second.parent.mkdir()
    second.write_bytes(first.read_bytes())
    with pytest.raises(ArtifactError, match=r"node-2+/a.npz: this file was made for 'node-1+', not for 'node-2+'"):
        read_arrays(second)
    np.savez(second, x=np.zeros(2))
    assert list(read_arrays(second)) == ["x"]


def test_a_file_that_is_not_as_it_was_made_is_told(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("a\n1\n2\n")
    for record in (write_record, lambda path: seal(path)):
        verify(path)
        record(path)
        verify(path)
        whole = path.read_bytes()
        path.write_text("a\n1\n")
        with pytest.raises(
            ArtifactError, match=r"metrics\.csv: this file is not as it was made \(its checksum in"
        ) as error:
            verify(path)
        assert "\n" not in str(error.value)
        path.write_bytes(whole)
        for file in tmp_path.iterdir():
            if file != path:
                file.unlink()


def test_a_file_of_ones_own_takes_a_spec_that_says_nothing(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, x=np.zeros(2))
    write_record(path)
    np.savez(path, x=np.ones(2))
    with pytest.raises(ArtifactError, match=r"or, if the file is your own, write {} into .*spec\.json"):
        read_arrays(path)
    assert files.by_hand(tmp_path / "beside/none.npz") == ""
    (tmp_path / "spec.json").write_text("{}")
    assert read_arrays(path)["x"].tolist() == [1, 1]
    assert f"{path} was put there by hand" in files.by_hand(path)
    write_record(path)
    assert files.by_hand(path) == ""


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("a", "b", 1),
        lambda text: text.replace("1e-07", "1E-07"),
        lambda text: text + " ",
        lambda text: "[]",
        lambda text: '{"stage": "train"}',
    ],
)
def test_a_spec_vouches_for_itself(tmp_path, change):
    path = tmp_path / "node-0123456789" / "spec.json"
    write_spec(path, {"stage": "data", "seconds": 1e-7, "node": "node-0123456789"})
    assert read_json(path)["seconds"] == 1e-7
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text
    with pytest.raises(ArtifactError, match=r"spec\.json: this file is not as it was made"):
        read_json(path)
    second_path = tmp_path / "node-9876543210" / "spec.json"
    second_path.parent.mkdir()
    second_path.write_text(text)
    with pytest.raises(ArtifactError, match="made for 'node-0123456789', not for 'node-9876543210'"):
        read_json(second_path)


def test_a_seal_is_of_the_file_that_is_there(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, 1)
    seal(path)
    write_json(path, 2)  # and a crash before the next line
    assert read_json(path) == 2
    seal(path)
    path.write_text("3\n")
    with pytest.raises(ArtifactError, match=r"its checksum in \.a\.json\.blake2b differs"):
        read_json(path)


def write_record(path: Path) -> None:
    write_spec(path.with_name("spec.json"), {"checksums": {path.name: checksum(path)}})


def test_the_checksum_is_the_published_one(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")  # FIPS 180-4, example 1
    # RFC 7693 gives no digest of 20 bytes; the system's b2sum -l 160 does.
    assert checksum(tmp_path / "a") == "384264f676f39536840523f284921cdc68b6846b"
    assert sha256(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


# ---------------------------------------------------------------- determinism and checks


def test_archives_and_json_hold_no_time_and_no_order(tmp_path):
    for folder in "ab":
        write_arrays(tmp_path / folder / "node" / "a.npz", x=np.zeros((2, 3), order="F"), y=np.ones(1))
    write_json(tmp_path / "a.json", {"b": 1, "a": [1.5, None]})
    write_json(tmp_path / "b.json", {"a": [1.5, None], "b": 1})
    assert (tmp_path / "a/node/a.npz").read_bytes() == (tmp_path / "b/node/a.npz").read_bytes()
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    with zipfile.ZipFile(tmp_path / "a/node/a.npz") as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert read_json(tmp_path / "a.json") == {"a": [1.5, None], "b": 1}


def test_a_field_is_checked_for_presence_kind_shape_and_numbers():
    check = Check("a.npz", {"x": np.zeros((2, 3)), "n": np.array([1.0, np.nan, np.inf]), "i": np.arange(2)})
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
