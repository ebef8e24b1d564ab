"""A file that is dated in the future is named with the way out, and then the run goes on."""

import os
import shutil
import time

import pytest

pytestmark = pytest.mark.slow


def test_a_file_from_the_future_is_named_and_touching_it_helps(finished, tmp_path):
    place = finished.copy(tmp_path / "work")
    (data,) = place.find("data/*/data.npz")
    year = time.mktime((2040, 1, 1, 0, 0, 0, 0, 0, 0))
    os.utime(data, (year, year))
    for stage in ("metrics", "comparisons", "tiny"):
        shutil.rmtree(place.folder / "results" / stage)
    output = place.run(check=False).stdout
    assert (
        f"{data.relative_to(place.folder)}: this file is dated 2040-01-01, in the future; set the clock right" in output
    )
    os.utime(data)
    place.run()
    assert place.planned() == {}
