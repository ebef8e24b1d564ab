"""A study in a folder of its own, run by Snakemake as a user runs it."""

import compileall
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

import yaml

import warm

ROOT = Path(__file__).resolve().parents[1]
WORKFLOW = ("Snakefile", "config.yaml", "rules", "scripts", "unlearning_audit", "profiles", "resources", "envs")

#: Seconds: few samples, one job's worth of models, one method that learns on, one that starts over, three attacks.
TINY = {
    "study": "tiny",
    "batch": 2,
    "bootstrap": 100,
    "defaults": {
        "data": {"name": "digits", "test_size": 100, "size": 240},
        "model": {"name": "mlp", "hidden": [16]},
        "recipe": {"epochs": 8, "lr": 0.05, "momentum": 0.9, "batch_size": 32},
        "protocol": {"name": "swap", "alpha": 0.25, "pairs": 2, "models_per_split": 1},
        "methods": {"none": {}, "retrain": {}, "finetune": {"epochs": 1}},
        "attacks": {"confidence": {}, "modified_entropy": {}, "random": {}},
        "controls": False,
    },
    "scenarios": {"main": {}},
    "tables": {"quality": {"title": "Quality", "metric": "q", "attack": "extended", "scenarios": ["main"]}},
    "figures": {"quality": {"title": "Quality", "kind": "quality", "scenarios": ["main"]}},
}


def copy_tree(place: Path) -> Path:
    """The workflow's files as they are now, in the new folder ``place``, where nobody edits them.

    They are compiled here, once: otherwise each of the processes of each run compiles them again where no bytecode is
    written. It holds checksums, since a test may edit a file twice within the second that times resolve.
    """
    place.mkdir(parents=True)
    for name in WORKFLOW:
        original = ROOT / name
        if original.is_dir():
            shutil.copytree(original, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(original, place / name)
    compileall.compile_dir(place, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return place


@dataclass(frozen=True)
class Workplace:
    """``tree``: a copy of the workflow's files; ``folder``: where it works and leaves its results."""

    tree: Path
    folder: Path

    def write(self, study: dict) -> None:
        """Make ``study`` the one that is run here."""
        (self.folder / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))

    def command(self, *arguments: str) -> list[str]:
        """Snakemake, with what a user types."""
        snakemake = [sys.executable, "-m", "snakemake", "--snakefile", str(self.tree / "Snakefile")]
        place = ["--directory", str(self.folder), "--configfile", str(self.folder / "study.yaml")]
        return [*snakemake, *place, "--cores", "2", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        """One thread per process, no GPU, nothing of the tests' own import path; caches lie in the folder."""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        settings = {
            "OMP_NUM_THREADS": "1",
            "UNLEARNING_DEVICE": "cpu",
            "XDG_CACHE_HOME": str(self.tree.parent / "cache"),
        }
        return {**inherited, **settings}

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
        """Run Snakemake to its end; ``stdout`` holds all it says. Fails the test if it fails and ``check``."""
        _, _, _, *words = self.command(*arguments)
        shared = {"UNLEARNING_WARM": warm.server(self.tree / "scripts")}
        process = warm.run(words, {**shared, **self.environment}, self.folder)
        assert process.returncode == 0 or not check, process.stdout
        return process

    def planned(self, *arguments: str) -> dict[str, int]:
        """How many jobs of each rule would be run now; {} if there is nothing to be done."""
        return self.job_counts(self.run("--dry-run", *arguments).stdout)

    @staticmethod
    def job_counts(output: str) -> dict[str, int]:
        """How many jobs of each rule Snakemake announced, in a run or a dry run; {} if there was nothing to be done."""
        if "Nothing to be done" in output:
            return {}
        table = output.split("Job stats:\n", 1)[1].split("\n\n", 1)[0].splitlines()
        return {rule: int(count) for rule, count in (line.split() for line in table[2:]) if rule != "total"}

    def copy(self, folder: Path) -> "Workplace":
        """The same state, with all times and Snakemake's records, in another folder."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Workplace(self.tree, folder)

    def find(self, pattern: str) -> list[Path]:
        """Files below results/ that match, sorted."""
        return sorted(path for path in (self.folder / "results").glob(pattern) if path.is_file())

    def contents(self) -> dict[str, bytes]:
        """Every result that must not depend on when, where and in how many pieces it was made; a killed process may
        leave files that nobody reads."""
        # These tell what everything cost, how many hours would decide what is undecided, or who writes.
        timed = ("spec.json", "log.txt", "report.html", ".lock")

        def depends(path: Path) -> bool:
            name = path.name.removesuffix(".blake2b").removeprefix(".") if path.suffix == ".blake2b" else path.name
            return (
                name in timed
                or name.startswith(".")
                or Path(name).stem in ("cost", "hours")
                or path.parent.name == "logs"
            )

        paths = [path for path in self.find("**/*") if not depends(path)]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}
