"""What is added to a finished study is made, and nothing else; what fails says so and does not stop the rest."""

import copy
import math
import resource
import subprocess

import pandas
import pytest
from unlearning_audit.evaluation import rows

from workplace import TINY, Workplace

pytestmark = pytest.mark.slow

#: Two pairs more are one more batch; a method more runs on both, and diverges.
MORE = copy.deepcopy(TINY)
MORE["defaults"]["protocol"]["pairs"] = 4
MORE["defaults"]["methods"] = {
    "none": {},
    "finetune": TINY["defaults"]["methods"]["finetune"],
    "diverging": {"name": "neggrad", "lr": 1000.0, "weight_decay": 1e30, "epochs": 2},
}
MADE = {"splits": 1, "train": 1, "unlearn": 1 + 2, "metrics": 3}


@pytest.fixture(scope="module")
def grown(finished, tmp_path_factory) -> Workplace:
    """The finished study with two pairs and a method more."""
    place = finished.copy(tmp_path_factory.mktemp("grown") / "work")
    place.write(MORE)
    ran = place.job_counts(place.run("--printshellcmds").stdout)
    assert {rule: count for rule, count in ran.items() if rule in (*MADE, "data")} == MADE
    return place


def test_files_that_were_there_are_not_made_again(finished, grown):
    for path in finished.find("*/*/*"):
        if path.parts[-3] in ("data", "splits", "train", "unlearn"):
            same = grown.folder / path.relative_to(finished.folder)
            assert same.stat().st_mtime_ns == path.stat().st_mtime_ns
            assert same.read_bytes() == path.read_bytes()


def test_the_method_that_diverged_is_flagged_and_the_others_have_their_numbers(grown):
    union = rows.read_union(grown.folder / "results/tiny/metrics.csv")
    (failed,) = (record for record in union if isinstance(record.row, rows.Failure))
    assert (failed.method, failed.row.kind) == ("diverging", "diverged")
    assert all(words in failed.row.sentence for words in ("neggrad", "field 'logits' has"))
    numbers = [record for record in union if isinstance(record.row, rows.Row)]
    assert {record.row.metric for record in numbers if record.method == "diverging"} <= {"unchanged"}
    for method in ("none", "finetune"):
        values = [record.row.value for record in numbers if record.method == method and record.row.metric == "q"]
        assert values
        assert not any(map(math.isnan, values))


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

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    process = subprocess.run(
        workplace.command(), env=workplace.environment, cwd=workplace.folder, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=little_room,
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
