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
        (folder / "Snakefile").write_text(
            f"{text}rule all:\n    output: 'made'\n    shell: 'echo $OF_THE_TEST > made'\n"
        )
        if name == "warm":
            run = warm.run(arguments, environment, folder)
        else:
            command = [sys.executable, "-m", "snakemake", *arguments]
            run = subprocess.run(
                command, env=environment, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                check=False,
            )  # fmt: skip
        lines = [line.replace(str(folder), "FOLDER") for line in run.stdout.splitlines() if "Date" not in line]
        prefixes = ("FOLDER", "usage", "snakemake:", "9.", "localrule", "rule ")
        content = (folder / "made").read_text() if (folder / "made").exists() else None
        ended.append((run.returncode, content, [line for line in lines if line.startswith(prefixes)]))
    assert ended[0] == ended[1]
    assert ended[0][2]
