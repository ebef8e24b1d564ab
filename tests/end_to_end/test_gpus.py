"""On a machine with several GPUs, a run keeps each of them busy with one job of its own; more only where asked to."""

import copy
import subprocess

import pytest

from slow_cases import slow
from workplace import TINY, Workplace

pytestmark = pytest.mark.slow

#: Counts the jobs that came, waits until all that may run together have met, and watches for one too many.
MEETING = '''"""Meet: nothing is changed; who is here at the same time, and on which GPU, is written down."""

import os
import time
from pathlib import Path

from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    """Which of the jobs this is, and how many may run ``together``."""

    number: int
    together: int


def unlearn(stack, forget, retain, options):
    """The stack stays as it is. Once it has met the others, rehearsals of it do nothing."""
    if Path("seen").exists() and str(options.number) in Path("came").read_text().split():
        return
    here = Path(f"here-{os.environ['CUDA_VISIBLE_DEVICES']}-{os.getpid()}")
    here.touch()
    came = note("came", options.number)
    everyone = (came.index(str(options.number)) // options.together + 1) * options.together
    wait("came", everyone)
    time.sleep(1)
    note("seen", " ".join(sorted(path.name.split("-")[1] for path in Path().glob("here-*"))))
    wait("seen", everyone)
    here.unlink()


def note(name, line):
    """Add a line to a file; all its lines."""
    with open(name, "a") as file:
        file.write(f"{line}\\n")
    return Path(name).read_text().splitlines()


def wait(name, lines):
    """Until a file has so many lines, or two minutes."""
    end = time.monotonic() + 120
    while len(Path(name).read_text().splitlines()) < lines and time.monotonic() < end:
        time.sleep(0.05)
'''


@pytest.mark.parametrize(
    ("together", "arguments", "expected"),
    [(4, ("--resources", "gpu=4"), "7 7 8 8"), *slow((2, (), "7 8"))],
    ids=["two jobs on each", "one job on each"],
)
def test_jobs_meet_as_often_as_they_may(finished, tmp_path, together, arguments, expected):
    place = finished.copy(tmp_path / "work")
    (place.folder / "meet.py").write_text(MEETING)
    study = copy.deepcopy(TINY)
    for number in range(4):
        method = {"file": "meet.py", "number": number, "together": together}
        study["defaults"]["methods"][f"meet{number}"] = method
    place.write(study)
    process = run(place, "--cores", "8", "--until", "unlearn", *arguments)
    assert process.returncode == 0, process.stdout
    cards = (place.folder / "seen").read_text().splitlines()
    assert cards == [expected] * 4
    assert sorted((place.folder / "came").read_text().split()) == ["0", "1", "2", "3"]


#: Lets jobs claim a GPU and compute on the processor: cards are counted and claimed here, and there are none.
CLAIM = """
import importlib.util
import sys


class Claims:
    def find_spec(self, name, path=None, target=None):
        if name != "unlearning_audit.training.card":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            module.use = lambda: module.device.claim_gpu() or "cpu"

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Claims())
"""


def run(place: Workplace, *arguments: str) -> subprocess.CompletedProcess:
    """Run the study on a machine that seems to have two GPUs, numbers 7 and 8."""
    (place.folder / "claim").mkdir()
    (place.folder / "claim" / "sitecustomize.py").write_text(CLAIM)
    environment = {name: value for name, value in place.environment.items() if name != "UNLEARNING_DEVICE"}
    environment |= {
        "CUDA_VISIBLE_DEVICES": "7,8",
        "TMPDIR": str(place.folder),
        "PYTHONPATH": str(place.folder / "claim"),
    }
    return subprocess.run(
        [*place.command(), *arguments], env=environment, cwd=place.folder, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
