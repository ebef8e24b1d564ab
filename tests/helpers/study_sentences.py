"""What is wrong with a study, as tests ask for it."""

import re

import pytest
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError

JARGON = re.compile(r"[Ii]nput|valid (integer|number|string)|to parse|pydantic|https?:|Traceback|NoneType|dict|tuple")


def sentence(config: dict, **how) -> str:
    """What is wrong with ``config``, which must be one sentence without jargon."""
    with pytest.raises(StudyError) as caught:
        reading.read(config, **how)
    message = str(caught.value)
    assert "\n" not in message
    assert not message.endswith(".")
    assert not JARGON.search(message.split(": ", 1)[1]), message
    return message
