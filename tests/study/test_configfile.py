"""Files that are no study, and what YAML forgives and nobody means: one sentence with the file and the line."""

import re
from pathlib import Path

import pytest
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is empty; a study needs at least the fields study and scenarios"),
        (b"# nothing\n", "is empty; a study needs at least the fields study and scenarios"),
        (b"- study\n", "must hold a mapping of fields such as study and scenarios, found a list"),
        (b"study", "must hold a mapping of fields such as study and scenarios, found 'study'"),
        (b"a: [1\nb: 2\n", "is not valid YAML in line 2, column 2: "),
        (b"a:\n\tb: 1\n", "is not valid YAML in line 2, column 1: "),
        (b"a: *b\n", "is not valid YAML in line 1, column 4: "),
        (b"a: 1\n---\nb: 2\n", "is not valid YAML in line 2, column 1: "),
        (b"\x89PNG\r\n\xff\xfe", "is not text in UTF-8; give a YAML file"),
        ("a: 1\nb: é\n".encode("latin-1"), "is not text in UTF-8; give a YAML file"),
        (b"a: 1\nb: \x00\n", "is not valid YAML: unacceptable character #x0000: special characters are not allowed"),
        (b"a: 2024-13-45\n", "is not valid YAML: month must be in 1..12"),
        (b"a: !mine x\n", "is not valid YAML in line 1, column 4: could not determine a constructor for the tag"),
        (b"b: 1\n? [a]\n: b\n", "is not valid YAML in line 2, column 3: found unhashable key"),
        (b"a: !!python/object:os.system {}\n", "is not valid YAML in line 1, column 4: "),
        (b"study: a\nseed: 1\nstudy: b\n", "study: is given twice, in line 1 and in line 3; keep one"),
        (b"a:\n  b: {c: 1, d: 2, c: 3}\n", "c: is given twice, in line 2 and in line 2; keep one"),
        (b"a: [{b: 1, b: 1}]\n", "b: is given twice, in line 1"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_study_is_named(tmp_path, monkeypatch, content, expected):
    monkeypatch.chdir(tmp_path)
    path = Path("mine.yaml")
    path.write_bytes(content)
    with pytest.raises(StudyError) as caught:
        reading.load([path])
    assert str(caught.value).startswith(f"{path}: {expected}")
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path, why in (("none.yaml", "No such file or directory"), (".", "Is a directory")):
        with pytest.raises(StudyError, match=re.escape(f"{path}: cannot be read ({why})")):
            reading.load([path])
