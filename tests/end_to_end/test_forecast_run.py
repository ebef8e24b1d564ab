"""A forecast before the study and after it: it starts no job of the study, and makes none anew."""

import pytest

from workplace import TINY, Workplace

pytestmark = pytest.mark.slow


def test_a_forecast_runs_alone(finished, tmp_path):
    place = Workplace(finished.tree, tmp_path / "work")
    place.folder.mkdir()
    place.write(TINY)
    output = place.run("forecast").stdout
    assert "Forecast of cost" in output
    assert "What the study will be able to distinguish" in output
    assert "nothing on record: run it with few pairs first" in output
    assert "from nothing. Measured on" in output
    assert "of what is written are weights; keep: logits deletes them" in output
    assert not place.find("*/*/spec.json"), "no job of the study was started"
    assert not place.find("**/*.npz"), "nothing was built"
    place.run()
    again = place.run("forecast").stdout
    assert "Measuring" not in again, "what is done is on record"
    assert "nothing on record" not in again
    assert "advantage" in again.split("What the study will be able to distinguish")[1]
    assert place.planned() == {}
    added = {"results/tiny/forecast.csv", "results/tiny/.forecast.csv.blake2b"}
    assert place.contents().keys() - finished.contents().keys() == added
