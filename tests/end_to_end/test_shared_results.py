"""Clones that share a folder of results."""

import subprocess

import pytest

from workplace import TINY, Workplace

pytestmark = pytest.mark.slow


def test_of_two_runs_that_start_together_each_ends_well_or_says_who_is_there(finished, tmp_path):
    """Snakemake removes what it is about to write; a run beside it would look for these files in vain."""
    (tmp_path / "shared").mkdir()
    places = [Workplace(finished.tree, tmp_path / name) for name in ("first", "second")]
    runs = []
    for place in places:
        place.folder.mkdir()
        place.write(TINY)
        (place.folder / "results").symlink_to(tmp_path / "shared")
        runs.append(
            subprocess.Popen(
                place.command(), env=place.environment, cwd=place.folder, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
        )  # fmt: skip
    output = [run.communicate()[0] for run in runs]
    refused = [number for number, run in enumerate(runs) if run.returncode]
    assert len(refused) <= 1, output
    for number in refused:
        writer = f"{tmp_path / 'shared'}: the run in {places[1 - number].folder} (process {runs[1 - number].pid} on "
        assert writer in output[number], output[number]
        assert "Traceback" not in output[number]
    for place in places:
        assert not place.planned("all")
        assert place.contents() == finished.contents()
