"""What is added to a finished study is made, and nothing else."""

import copy
import resource
import subprocess

import pandas
import pytest

from workplace import TINY

pytestmark = pytest.mark.slow


def test_what_grew_pair_by_pair_and_attack_by_attack_has_the_numbers_of_what_was_made_at_once(finished, workplace):
    """A third pair trains one pair, though all would share one batch; an attack more asks just that attack."""
    more = copy.deepcopy(TINY) | {"batch": 12}
    more["defaults"]["protocol"]["pairs"] = 3
    grown = finished.copy(workplace.folder.parent / "grown")
    grown.write(more)
    ran = grown.job_counts(grown.run("--printshellcmds").stdout)
    assert (ran["splits"], ran["train"], ran["unlearn"]) == (1, 1, 2)
    more["defaults"]["attacks"]["entropy"] = {}
    grown.write(more)
    ran = grown.job_counts(grown.run("--printshellcmds").stdout)
    assert not ran.keys() & {"splits", "train", "unlearn"}
    assert ran["metrics"] == 3
    workplace.write(more)
    workplace.run()
    for name in ("metrics.csv", "tables/quality.csv"):
        path = f"results/tiny/{name}"
        assert (grown.folder / path).read_bytes() == (workplace.folder / path).read_bytes(), name
    shown = [place.folder / "results/tiny/tables" for place in (grown, workplace)]
    assert ["extended from 2 to 3 pairs" in (path / "verdicts.md").read_text() for path in shown] == [True, False]
    longer, at_once = (pandas.read_csv(path / "verdicts.csv") for path in shown)
    pandas.testing.assert_frame_equal(longer.drop(columns="note"), at_once.drop(columns="note"))
    assert longer["note"].str.contains("extended from 2 to 3 pairs").all()


def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_room(workplace):
    """No file may grow beyond 60 kB here; the data need 87 kB."""
    process = subprocess.run(
        workplace.command(), env=workplace.environment, cwd=workplace.folder, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)),
    )  # fmt: skip
    assert process.returncode != 0
    assert "data.npz: could not be written (File too large); free space or fix the permissions" in process.stdout
    assert not workplace.find("**/*.npz")
    workplace.run("--until", "data")
    assert workplace.find("data/*/data.npz")


def test_a_signal_that_is_asked_later_trains_nothing_and_says_the_same_as_one_asked_at_once(finished, workplace):
    more = copy.deepcopy(TINY)
    more["defaults"]["attacks"]["gradient_norm"] = {}
    later = finished.copy(workplace.folder.parent / "later")
    models = len(later.find("train/*/spec.json")) + len(later.find("unlearn/*/spec.json"))
    later.write(more)
    ran = later.job_counts(later.run("--printshellcmds").stdout)
    assert not ran.keys() & {"data", "splits", "train", "unlearn"}
    assert ran["signals"] == models
    assert "Nothing to be done" in later.run().stdout
    workplace.write(more)
    ran = workplace.job_counts(workplace.run("--printshellcmds").stdout)
    assert "signals" not in ran
    assert "Nothing to be done" in workplace.run().stdout
    made = [{path.parent.name: path.read_bytes() for path in place.find("signals/*/signals.npz")}
            for place in (later, workplace)]  # fmt: skip
    assert made[0] == made[1]
    assert len(made[0]) == models
    numbers = [(place.folder / "results/tiny/metrics.csv").read_bytes() for place in (later, workplace)]
    assert numbers[0] == numbers[1]
