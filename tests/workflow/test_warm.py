"""Tests that run Snakemake as forks of a process that has imported it see what a user sees."""

import os
import subprocess
import sys

import pytest

import warm

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("arguments", [["--no-such-option"], ["--snakefile", "Snakefile", "--cores", "1", "all"]])
def test_a_warm_run_says_and_does_what_a_cold_one_does(tmp_path, arguments):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OF_THE_TEST": "here"}
    text = "import os, sys\nprint(os.getcwd(), sys.path[0], sys.argv[1:], os.environ['OF_THE_TEST'])\n"
    ended = []
    for name in ("warm", "cold"):
        folder = tmp_path / name
        folder.mkdir()
        rule = "rule all:\n    output: 'made'\n    shell: 'echo $OF_THE_TEST > made'\n"
        (folder / "Snakefile").write_text(text + rule)
        run = warm.run(arguments, environment, folder) if name == "warm" else subprocess.run(
            [sys.executable, "-m", "snakemake", *arguments], env=environment, cwd=folder, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        lines = [line.replace(str(folder), "FOLDER") for line in run.stdout.splitlines() if "Date" not in line]
        prefixes = ("FOLDER", "usage", "snakemake:", "9.", "localrule", "rule ")
        made = [path.read_text() for path in folder.glob("made")]
        ended.append((run.returncode, made, [line for line in lines if line.startswith(prefixes)]))
    assert ended[0] == ended[1]
    assert ended[0][2]
