"""Files that are no study, and what YAML forgives and nobody means: one sentence with the file and the line."""

from pathlib import Path

import pytest
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"# nothing\n", "must hold a mapping of fields such as study and scenarios, found nothing"),
        (b"- study\n", 'must hold a mapping of fields such as study and scenarios, found ["study"]'),
        (b"a: [1\nb: 2\n", "cannot be read (while parsing a flow sequence in "),
        (b"\x89PNG\r\n\xff\xfe", "cannot be read ('utf-8' codec can't decode byte 0x89"),
        (b"a: 2024-13-45\n", "cannot be read (month must be in 1..12)"),
        (b"a: !!python/object:os.system {}\n", "cannot be read (could not determine a constructor for the tag"),
        (b"study: a\nseed: 1\nstudy: b\n", "study: is given twice, in line 1 and in line 3; keep one"),
        (b"a: [{b: 1, b: 1}]\n", "b: is given twice, in line 1"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_study_is_named(workdir, content, expected):
    path = Path("mine.yaml")
    path.write_bytes(content)
    with pytest.raises(StudyError) as caught:
        reading.load([path])
    assert str(caught.value).startswith(f"{path}: {expected}")
    assert "\n" not in str(caught.value)
