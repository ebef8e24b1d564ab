"""What somebody sees who runs Snakemake on a wrong study: one sentence, no traceback, and nothing is run."""

import subprocess
import sys
from pathlib import Path

import pytest

SNAKEFILE = Path(__file__).parents[2] / "Snakefile"

SMALL = """
study: small
scenarios:
  one:
    data: {name: digits, test_size: 197}
    model: {name: linear}
    protocol: {name: swap, pairs: 1}
    methods: [none]
    attacks: [correctness]
"""


def dry_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """``snakemake -n`` with ``folder`` as the working directory; all it says is in ``stdout``."""
    command = [sys.executable, "-m", "snakemake", "-n", "-s", str(SNAKEFILE), *arguments]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)


@pytest.mark.parametrize(
    ("study", "arguments", "expected"),
    [
        (
            "study: mine\nscenarios: {one: {}}\n",
            ["--configfile", "mine.yaml"],
            "mine.yaml: scenarios.one.data: is missing; add it",
        ),
        (
            SMALL,
            ["--config", "bootstap=300"],
            f"{SNAKEFILE.parent}/config.yaml: bootstap: there is no such field, did you mean 'bootstrap'? (known: "
            "batch, bootstrap, defaults, family, figures, keep, limit, looks, margins, memory, only, "
            "retrain_spread, scenarios, seed, study, tables) (given by --config)",
        ),
    ],
    ids=["nothing inherited from the default study", "command line"],
)
def test_a_wrong_study_ends_with_one_sentence(tmp_path, study, arguments, expected):
    (tmp_path / "mine.yaml").write_text(study)
    process = dry_run(tmp_path, *arguments)
    assert process.returncode != 0
    assert expected in process.stdout.splitlines()
    assert "Traceback" not in process.stdout
    assert not (tmp_path / "results").exists()


def test_a_study_of_ones_own_is_planned_with_what_the_command_line_changes(tmp_path):
    (tmp_path / "mine.yaml").write_text(SMALL)
    arguments = ("--configfile", "mine.yaml", "--config", "scenarios={one: {recipe: {epochs: 2}}}")
    process = dry_run(tmp_path, "results/small/metrics.csv", *arguments)
    assert process.returncode == 0, process.stdout
    assert "Traceback" not in process.stdout
