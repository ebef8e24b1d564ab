"""A folder of logits becomes a report where torch cannot be imported; a second run has nothing to do."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from external_cases import world

STUDY = {
    "study": "own",
    "bootstrap": 100,
    "scenarios": {
        "audit": {
            "protocol": {"name": "external", "path": "my logits"},
            "methods": ["good", "bad"],
            "attacks": ["correctness", "confidence", "kde", "lira"],
        }
    },
    "tables": {"quality": {"title": "Quality", "metric": "q", "scenarios": ["audit"]}},
    "figures": {
        kind: {"kind": kind, "title": kind, "scenarios": ["audit"]} for kind in ("quality", "pairs", "roc", "phi")
    },
}


@pytest.fixture(scope="module")
def place(tree, tmp_path_factory) -> Path:
    """The folder of the study, run without torch."""
    folder = tmp_path_factory.mktemp("external")
    (folder / "blocked").mkdir()
    for name in ("torch", "torchvision", "opacus", "transformers"):
        (folder / "blocked" / f"{name}.py").write_text(
            f"open({str(folder / 'tried.txt')!r}, 'a').write('{name}')\nraise ImportError('there is no {name} here')\n"
        )
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    world(folder / "my logits", methods=("good", "bad"), trace=(0.0, 3.0), pairs=3)
    snakemake(tree, folder)
    return folder


def snakemake(tree: Path, folder: Path, *arguments: str) -> str:
    """What Snakemake says about the study in the folder, where modules in blocked/ cannot be imported."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", tree / "Snakefile", "--configfile", "study.yaml"]
    settings = {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(folder / "blocked")}
    process = subprocess.run(
        [*command, "--cores", "2", *arguments], env={**os.environ, **settings}, cwd=folder, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout
    return process.stdout


def test_nobody_asks_for_what_models_need(place):
    assert not (place / "tried.txt").exists()


def test_methods_stand_between_none_and_retrain_in_every_display(place):
    results = place / "results/own"
    headline, order = (results / "tables/headline.md").read_text(), ["none", "good", "bad", "retrain"]
    assert [name for name in re.findall(r"^\| (\w+) \|", headline, re.M) if name in order][:4] == order
    report = (results / "report.html").read_text()
    assert "protocol.path" in report
    assert "recipe.epochs" not in report, "nothing is known of how these models were trained"
    assert {path.stem for path in (results / "figures").glob("*.svg")} == {"meta", "verdicts", *STUDY["figures"]}
    assert "good" in (results / "tables/quality.md").read_text()


def test_the_folder_of_logits_may_move(tree, place):
    (place / "my logits").rename(place / "moved")
    text = (place / "study.yaml").read_text()
    (place / "study.yaml").write_text(text.replace("my logits", "moved"))
    output = snakemake(tree, place, "--dry-run")
    assert not any(f"rule {name}:" in output or f"\n{name} " in output for name in ("external", "metrics"))
