"""How jobs come to run: without Snakemake's limit to jobs per second, unless somebody asks for one."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

#: Snakemake as it is called, telling at the end how often it has ordered itself to look for jobs once more.
COUNTING = """
import atexit, sys
from snakemake.cli import main
from snakemake.scheduling.job_scheduler import JobScheduler
ordered, really = [], JobScheduler._schedule_reevalutation
JobScheduler._schedule_reevalutation = lambda self, delay: (ordered.append(delay), really(self, delay))
atexit.register(lambda: print("ordered", len(ordered)))
main(sys.argv[1:])
"""


@pytest.mark.parametrize(("limit", "looks_again"), [((), False), (("--max-jobs-per-timespan", "50/1s"), True)])
def test_only_a_limit_that_somebody_set_makes_the_scheduler_look_again(finished, tmp_path, limit, looks_again):
    place = finished.copy(tmp_path / "copy")
    for file in [*place.find("tiny/tables/*"), *place.find("tiny/report.html")]:
        file.unlink()
    command = place.command(*limit)
    run = subprocess.run(
        [sys.executable, "-c", COUNTING, *command[command.index("snakemake") + 1 :]], cwd=place.folder, check=True,
        env=place.environment, text=True, capture_output=True,
    )  # fmt: skip
    assert len(place.find("tiny/tables/*")) > 3
    assert (int(run.stdout.split("ordered ")[1]) > 0) == looks_again
