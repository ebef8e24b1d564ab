"""Files that are read in part: any part is what was written, and damage is noticed where it is read."""

import hashlib
import io
import os

import numpy as np
import pytest
from unlearning_audit.artifacts import blocks
from unlearning_audit.artifacts.files import ArtifactError, checksum, write_spec

BLOCK = 65536
CONTENT = np.random.default_rng(0).bytes(17 * BLOCK + 123)


@pytest.fixture
def path(tmp_path):
    """A file of 17 blocks and a bit, with the checksums of its blocks beside it."""
    path = tmp_path / "a.bin"
    path.write_bytes(CONTENT)
    write_spec(tmp_path / "spec.json", {"blocks": {path.name: blocks.checksums(path)}})
    return path


def test_each_block_of_64_kib_has_a_checksum_of_8_bytes(path):
    parts = [CONTENT[at : at + BLOCK] for at in range(0, len(CONTENT), BLOCK)]
    assert blocks.checksums(path) == "".join(hashlib.blake2b(part, digest_size=8).hexdigest() for part in parts)


@pytest.mark.parametrize(("size", "digits"), [(2**20 - 1, 0), (2**20, 16 * 16), (2**20 + 1, 17 * 16)])
def test_files_of_a_mebibyte_have_checksums_of_blocks(tmp_path, size, digits):
    (tmp_path / "a").write_bytes(bytes(size))
    assert len(blocks.checksums(tmp_path / "a")) == digits


def test_any_part_is_read_as_from_an_ordinary_file(path):
    """Parts within a block, over several, at their borders, at and behind the end, from any place."""
    rng = np.random.default_rng(1)
    steps = [(5, 0, 1), (3 * BLOCK - 7, 0, 2 * BLOCK), (-10, 1, 20), (-1, 2, 5), (0, 2, 5), (99, 2, 5), (0, 0, BLOCK)]
    steps += [(int(at), 0, int(size)) for at, size in zip(
        rng.integers(0, len(CONTENT), 40), rng.integers(1, 4 * BLOCK, 40), strict=True)]  # fmt: skip
    expected = io.BytesIO(CONTENT)
    with blocks.Blocks(path) as file:
        assert file.apart
        for offset, whence, size in steps:
            assert file.seek(offset, whence) == expected.seek(offset, whence)
            assert file.read(size) == expected.read(size)
            assert file.tell() == expected.tell()
        file.seek(9)
        assert file.readall() == CONTENT[9:]
    with io.BufferedReader(blocks.Blocks(path)) as buffered:
        assert buffered.seek(-7, io.SEEK_END) == len(CONTENT) - 7
        assert buffered.read() == CONTENT[-7:]


def test_a_closed_file_is_closed(path):
    file = blocks.Blocks(path)
    number = file._file.fileno()
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


@pytest.mark.parametrize("damaged", [0, 4, 17])
def test_a_damaged_block_is_noticed_by_whoever_reads_of_it(path, damaged):
    content = bytearray(CONTENT)
    content[damaged * BLOCK + 100] ^= 1
    path.write_bytes(content)
    for block in range(18):
        with blocks.Blocks(path) as file:
            file.seek(block * BLOCK + 50)
            if block == damaged:
                with pytest.raises(ArtifactError, match=r"a\.bin: this file is not as it was made"):
                    file.read(1)
            else:
                assert file.read(1) == CONTENT[block * BLOCK + 50 : block * BLOCK + 51]


@pytest.mark.parametrize("content", [CONTENT[:-BLOCK], CONTENT + bytes(BLOCK)], ids=["shorter", "longer"])
def test_a_file_of_another_size_is_noticed_before_it_is_read(path, content):
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=r"a\.bin: this file is not as it was made"):
        blocks.Blocks(path)


def test_a_file_without_blocks_is_checked_whole(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(CONTENT)
    write_spec(tmp_path / "spec.json", {"checksums": {path.name: checksum(path)}})
    with blocks.Blocks(path) as file:
        assert not file.apart
        assert file.read(3) == CONTENT[:3]
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(ArtifactError, match=r"a\.bin: this file is not as it was made"):
        blocks.Blocks(path)


def test_a_block_is_checked_once(path, monkeypatch):
    """What is read again is read by itself, without the rest of its block."""
    read, sizes = blocks._read, []
    monkeypatch.setattr(blocks, "_read", lambda file, length, start: sizes.append(length) or read(file, length, start))
    with blocks.Blocks(path) as file:
        for _ in range(2):
            file.seek(BLOCK + 10)
            file.read(20)
    assert sizes == [BLOCK, 20]


def test_a_file_that_is_cut_off_while_it_is_open_is_noticed(path):
    with blocks.Blocks(path) as file:
        os.truncate(path, 3 * BLOCK)
        file.seek(5 * BLOCK)
        with pytest.raises(ArtifactError, match=r"a\.bin: this file is not as it was made"):
            file.read(20)
