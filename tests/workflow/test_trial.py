"""What a trial of a user's file of data finds: samples that change, pictures that are too bright."""

import pytest
from unlearning_audit.workflow import trial

DATA = """
import numpy as np
from unlearning_audit.data import Source
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    "None."


def load(options, root):
    rng = np.random.default_rng({seed})
    y = rng.integers(3, size=60)
    return Source({x}.astype(np.float32), y.astype(np.int64), np.zeros(60, np.uint8), 3)
"""


@pytest.mark.parametrize(
    ("seed", "x", "problem"),
    [
        ("", "rng.normal(size=(60, 8))", r"load returned other samples when it was called again.*default_rng\(0\)"),
        (0, "255 * rng.random((60, 1, 4, 4))", r"mine\.py: images in float32 must lie between 0 and 1, but range fr"),
    ],
)
def test_data_that_change_from_call_to_call_or_are_far_too_bright_are_refused(tmp_path, seed, x, problem):
    path = tmp_path / "mine.py"
    path.write_text(DATA.format(seed=0, x="rng.normal(size=(60, 8))"))
    assert "runs correctly" in trial.attempt(str(path))
    path.write_text(DATA.format(seed=seed, x=x))
    with pytest.raises(ValueError, match=problem):
        trial.attempt(str(path))
