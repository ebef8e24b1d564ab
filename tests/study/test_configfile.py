"""Files that are no study, and what YAML forgives and nobody means: one sentence with the file and the line."""

import re
from pathlib import Path

import pytest
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError

#: Nine aliases in each line of nine aliases each: 9⁸ values in a few hundred bytes.
BILLION = b"a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 8)
)


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
        (b"\x89PNG\r\n\xff\xfe", "is not text in UTF-8 (line 1); give a YAML file"),
        ("a: 1\nb: é\n".encode("latin-1"), "is not text in UTF-8 (line 2); give a YAML file"),
        (b"a: 1\nb: \x00\n", "is not valid YAML in line 2: special characters are not allowed"),
        (b"a: 2024-13-45\n", "holds '2024-13-45' in line 1, which is no timestamp; put it in quotes if it is text"),
        (b"a: 1\nb: !!timestamp foo\n", "holds 'foo' in line 2, which is no timestamp; put it in quotes"),
        (b"a: [1, !!int '']\n", "holds '' in line 1, which is no int; put it in quotes if it is text; leave the tag"),
        (b"a: !!bool foo\n", "holds 'foo' in line 1, which is no bool"),
        (b"a: !!float x\n", "holds 'x' in line 1, which is no float"),
        (b"a: " + b"9" * 5000, "holds '9999"),
        (b"a: !mine x\n", "is not valid YAML in line 1, column 4: could not determine a constructor for the tag"),
        (b"b: 1\n? [a]\n: b\n", "is not valid YAML in line 2, column 3: found unhashable key"),
        (b"a: &x [1, *x]\n", "has an alias inside of what it stands for (line 1); let no alias contain itself"),
        (b"a: 1\nb: &x {c: {d: *x}}\n", "has an alias inside of what it stands for (line 2)"),
        (b"a: " + b"[" * 40 + b"]" * 40, "is nested more deeply than 30 levels in line 1"),
        (b"a: " + b"[" * 2000 + b"]" * 2000, "is nested more deeply than the 30 levels that a study may have"),
        (BILLION, "unfolds into more than 100,000 values in line 6; use fewer aliases"),
        (b"a: !!python/object:os.system {}\n", "is not valid YAML in line 1, column 4: "),
        (b"study: a\nseed: 1\nstudy: b\n", "study: is given twice, in line 3 and before in line 1; keep one"),
        (b"a:\n  b: {c: 1, d: 2, c: 3}\n", "a.b.c: is given twice, in line 2 and before in line 2; keep one"),
        (b"a: [{b: 1, b: 1}]\n", "a.0.b: is given twice, in line 1"),
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"a\\nb": 1', "a\\nb: there is no such field"),
        ('study: "\\ud800"', "study: holds half a character, '\\ud800'"),
        ('"\\ud800": 1', "the key '\\ud800' holds half a character"),
        ("~: 1", "the key null is not text"),
        ("2024-01-31: 1", 'the key "2024-01-31" is not text'),
    ],
)
def test_a_sentence_is_one_line_that_can_be_printed(tmp_path, monkeypatch, text, expected):
    monkeypatch.chdir(tmp_path)
    name = "" if text.startswith("study") else "study: a\n"
    Path("mine.yaml").write_text(f"{name}scenarios: {{one: {{}}}}\n{text}\n")
    with pytest.raises(StudyError) as caught:
        reading.read(*reading.load(["mine.yaml"]))
    message = str(caught.value)
    assert message.startswith(f"mine.yaml: {expected}"), message
    assert message.isprintable()
    assert message.encode()
    assert "--config" not in message


def test_aliases_and_merge_keys_are_not_twins(tmp_path):
    path = tmp_path / "alias.yaml"
    path.write_text("a: &x {b: 1}\nc: {<<: *x, d: 2}\ne: {<<: *x, <<: *x}\nf: *x\n")
    assert reading.load([path])[0] == {"a": {"b": 1}, "c": {"b": 1, "d": 2}, "e": {"b": 1}, "f": {"b": 1}}
