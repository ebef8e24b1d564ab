"""A digest of code that sees what code does, and not how it is written; a fingerprint of a user's data."""

import ast
import io
import os
import tokenize
from pathlib import Path

import pytest
from unlearning_audit.plugins import source
from unlearning_audit.store import folders


def digest_of(folder: Path, text: str, name: str = "one.py") -> str:
    (folder / name).write_text(text)
    return source.digest(folder / name)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f():\n    '''Say.'''\n    return 1\n", "def f():\n    return 1\n"),
        ("x = (1,\n     2)\n", "x = (1, 2)\n"),
        ("x = 1 # why\n\n\n", "\nx=1"),
        ("'''Module.'''\nx = 1\n", "x = 1\n"),
        ("try:\n    a()\nexcept E:\n    def f():\n        '''Say.'''\n        b()\n",
         "try:\n    a()\nexcept E:\n    def f():\n        b()\n"),
    ],
)  # fmt: skip
def test_what_the_digest_does_not_see(tmp_path, before, after):
    assert digest_of(tmp_path, before) == digest_of(tmp_path, after, "two.py")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = '''\n# a\n'''\n", "x = '''\n'''\n"),
        ("x = 1\n'''a'''\n", "x = 1\n"),  # a text that is no docstring stays
        ("if a:\n    b()\nc()\n", "if a:\n    b()\n    c()\n"),
        ("x = a + b * c\n", "x = (a + b) * c\n"),
    ],
)
def test_what_the_digest_sees(tmp_path, before, after):
    assert digest_of(tmp_path, before) != digest_of(tmp_path, after, "two.py")


def tokens(text: str) -> list[tokenize.TokenInfo]:
    return [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string.strip()]


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_of_the_library_every_token_of_code_counts_and_no_comment_nor_docstring(step):
    for path in sorted((source.LIBRARY / source.LIBRARY_NAME).rglob("*.py"))[::step]:
        text = path.read_text()
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, source.DOCUMENTED)]
        docstrings = {node.body[0].lineno for node in nodes if ast.get_docstring(node) is not None}
        counted = [t.string for t in tokens(text) if t.type != tokenize.COMMENT and t.start[0] not in docstrings]
        assert [token.string for token in tokens(source._lines(text))] == counted, path


def test_an_edit_that_keeps_the_size_is_seen_and_a_file_that_is_named_twice_counts_once(tmp_path):
    first = digest_of(tmp_path, "x = 1\n")
    assert source.digest(tmp_path / "one.py", tmp_path / "one.py") == first
    (tmp_path / "one.py").write_text("x = 2\n")
    os.utime(tmp_path / "one.py", ns=(1, 1))
    assert source.digest(tmp_path / "one.py") != first


@pytest.mark.parametrize(
    "text",
    [
        "import unlearning_audit.stats as s\n", "from unlearning_audit.stats import auc\n",
        "async def f():\n    async with a:\n        while True:\n            from unlearning_audit import stats\n",
    ],
)  # fmt: skip
def test_every_way_to_import_is_followed(tmp_path, text):
    (tmp_path / "mine.py").write_text(text)
    assert source.LIBRARY / "unlearning_audit" / "stats" / "roc.py" in source.modules(tmp_path / "mine.py")


def test_the_place_of_a_file_does_not_count(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    assert digest_of(tmp_path, "x = 1\n") == digest_of(tmp_path / "elsewhere", "x = 1\n", "other.py")


# ---------------------------------------------------------------- fingerprints


def test_the_fingerprint_of_a_folder_is_that_of_names_and_contents(tmp_path):
    def folder(name, **files):
        for file, content in files.items():
            path = tmp_path / name / file.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return source.fingerprint(tmp_path / name)

    first = {"cat__1": b"xy", "dog__1": b"z"}
    reference = folder("one", **first)
    assert folder("same", **dict(reversed(first.items()))) == reference
    others = [
        folder("other_name", cat__2=b"xy", dog__1=b"z"), folder("other_content", **first | {"cat__1": b"yx"}),
        folder("other_class", cat__1=b"xy", cow__1=b"z"), folder("one_more", **first, dog__2=b""),
    ]  # fmt: skip
    assert reference not in others
    with pytest.raises(ValueError, match="gone' does not exist; give a file or folder relative to the working dir"):
        source.fingerprint(tmp_path / "gone")


# ---------------------------------------------------------------- what a user's file imports


@pytest.mark.parametrize(
    ("text", "helper"),
    [
        ("import helper\n", "helper.py"),
        ("from tools import inner\n", "tools/__init__.py tools/inner.py"),
        ("import tools.inner as t\n", "tools/__init__.py tools/inner.py"),
        ("from .helper import LR\n", "helper.py"),
        ("from ..above import LR\n", "../above.py"),
        ("from middle import LR\n", "helper.py"),  # which middle imports
    ],
)  # fmt: skip
def test_an_edit_of_what_a_users_file_imports_is_seen(workdir, text, helper):
    names = ("mine/helper.py", "mine/tools/__init__.py", "mine/tools/inner.py", "above.py")
    for name in names:
        (workdir / name).parent.mkdir(parents=True, exist_ok=True)
        (workdir / name).write_text("LR = 0.01\n")
    (workdir / "mine/middle.py").write_text("from helper import LR\n")
    before = digest_of(workdir / "mine", text)
    for name in names:
        (workdir / name).write_text("LR = 1.0\n")
        differs = source.digest(workdir / "mine/one.py") != before
        assert differs == ((workdir / name) in {(workdir / "mine" / part).resolve() for part in helper.split()}), name
        (workdir / name).write_text("LR = 0.01\n")
        assert source.digest(workdir / "mine/one.py") == before


def test_what_is_installed_has_versions_and_is_no_part_of_a_digest(tmp_path):
    (tmp_path / "one.py").write_text("import json\nimport numpy.linalg\nimport no_such_module\n")
    assert list(source.modules(tmp_path / "one.py")) == [tmp_path / "one.py"]


def test_folders_are_known_by_content_and_read_once(workdir, monkeypatch):
    (workdir / "results").mkdir()
    folder = workdir / "pictures"
    folder.mkdir()
    for name, text in (("a", b"one"), ("b", b"two")):
        (folder / name).write_bytes(text)
        os.utime(folder / name, ns=(1, 1))
    before = source.fingerprint(folder)
    read = []
    sha256 = folders.sha256
    monkeypatch.setattr(folders, "sha256", lambda path: read.append(path) or sha256(path))
    assert source.fingerprint(folder) == before
    assert read == []
    (folder / "a").rename(folder / "c")
    (folder / "b").rename(folder / "a")
    (folder / "c").rename(folder / "b")  # names, sizes and dates are those of before
    assert source.fingerprint(folder) != before
    assert len(read) == 2
    (workdir / "results/.contents.json").write_text("[]")
    assert source.fingerprint(folder) != before
