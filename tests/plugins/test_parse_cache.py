"""What parsing gave is kept beside bytecode, and never taken for another file's."""

import ast
import hashlib
import os
import sys

import pytest
from unlearning_audit.plugins import parse_cache, source


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library of one package with two modules, where bytecode may be written."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(source, "LIBRARY", tmp_path)
    monkeypatch.setattr(source, "SCRIPTS", tmp_path / "scripts")
    package = tmp_path / "unlearning_audit"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("'''Says.'''\nfrom unlearning_audit import two\nX = two.Y  # why\n")
    (package / "two.py").write_text("Y = 1\n")
    yield package
    forget()


def forget() -> None:
    """As a new process begins."""
    for function in (source._parsed, source._of_library, source._files, source._in_library, source._packages):
        function.cache_clear()


def digests(package):
    forget()
    return {path.name: digest for path, digest in source.modules(package / "one.py").items()}


def of(code: str) -> str:
    """The digest of so much code."""
    return hashlib.sha256(source._plain(ast.parse(code)).encode()).hexdigest()


def cached_files(package):
    return sorted(package.rglob(f"*{parse_cache.SUFFIX}"))


def test_what_is_kept_is_what_parsing_gives(library, monkeypatch):
    first = digests(library)
    one = "from unlearning_audit import two\nX = two.Y"
    assert first == {"__init__.py": of(""), "one.py": of(one), "two.py": of("Y = 1")}
    assert len(cached_files(library)) == 3
    monkeypatch.setattr(source, "_normalised", None)  # whoever parses fails
    assert digests(library) == first


def test_an_edit_is_seen_though_size_and_time_stay(library):
    digests(library)
    about = (library / "two.py").stat()
    (library / "two.py").write_text("Y = 2\n")
    os.utime(library / "two.py", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert digests(library)["two.py"] == of("Y = 2")


def test_other_rules_make_it_anew(library, monkeypatch):
    digests(library)
    monkeypatch.setattr(source, "_rules", lambda: b"others")
    monkeypatch.setattr(source, "_normalised", lambda path, content, strict: source.Code("anew", ()))
    assert set(digests(library).values()) == {"anew"}


@pytest.mark.parametrize("change", ["cut", "flip", "swap", "empty"])
def test_what_is_not_as_it_was_written_is_not_taken(library, change):
    sound = digests(library)
    files = cached_files(library)
    for path in files:
        content = bytearray(path.read_bytes())
        if change == "flip":
            content[-5] ^= 1
        path.write_bytes({"cut": content[:-3], "flip": content, "swap": files[0].read_bytes(), "empty": b""}[change])
    assert digests(library) == sound


def test_nothing_is_written_where_bytecode_is_not(library, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    digests(library)
    assert not cached_files(library)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (library / "__pycache__").write_text("a file where the folder should be")
    assert digests(library)["two.py"] == of("Y = 1")
