"""Large files that are read in part: only blocks that are read are checked against the ``spec.json`` beside them."""

import hashlib
import io
import os
from pathlib import Path

from unlearning_audit.artifacts.files import changed, reading_errors, record_of, verify

#: Bytes of a block, of the checksum of one, and of the smallest file whose blocks have checksums of their own.
SIZE, DIGEST, LEAST = 1 << 16, 8, 1 << 20


def checksums(path: str | Path) -> str:
    """BLAKE2b of every block of a file with 8 bytes, hexadecimal, one after the other; "" for a small file."""
    if Path(path).stat().st_size < LEAST:
        return ""
    with Path(path).open("rb") as file:
        return b"".join(_digest(block) for block in iter(lambda: file.read(SIZE), b"")).hex()


class Blocks(io.RawIOBase):
    """A file opened for reading, which refuses blocks that are not as they were made when they are first read.

    A file whose ``spec.json`` knows no blocks is checked whole (see `files.verify`) before anything is read;
    ``apart`` says which of the two it is. Raises ArtifactError.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        checksums = bytes.fromhex(record_of(path).get("blocks", {}).get(self.path.name, ""))
        self.apart = bool(checksums)
        if not checksums:
            verify(path)
        self._file = reading_errors(path, lambda: self.path.open("rb"))
        self._size, self._at = os.fstat(self._file.fileno()).st_size, 0
        starts = range(0, len(checksums), DIGEST)
        self._unread = {at // DIGEST * SIZE: checksums[at : at + DIGEST] for at in starts}
        if checksums and -(-self._size // SIZE) * DIGEST != len(checksums):
            raise changed(self.path)

    def readinto(self, into: memoryview) -> int:
        length = min(len(into), self._size - self._at)
        if length <= 0:
            return 0
        start, end = self._at, self._at + length
        unread = [place for place in range(start - start % SIZE, end, SIZE) if place in self._unread]
        if unread:
            start, end = min(start, unread[0]), max(end, min(unread[-1] + SIZE, self._size))
        content = memoryview(_read(self._file, end - start, start))
        for place in unread:
            if _digest(content[place - start : place - start + SIZE]) != self._unread[place]:
                raise changed(self.path)
            del self._unread[place]
        into[:length] = content[self._at - start : self._at - start + length]
        self._at += length
        return length

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()


def _digest(block: bytes | memoryview) -> bytes:
    return hashlib.blake2b(block, digest_size=DIGEST).digest()


def _read(file: io.BufferedReader, length: int, start: int) -> bytes:
    file.seek(start)
    return file.read(length)
