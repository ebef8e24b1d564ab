"""Methods that leave more behind than weights: what they do reaches no further than their own rows."""

import csv
from pathlib import Path

import numpy as np
import pytest
import yaml
from unlearning_audit.artifacts.arrays import Logits
from unlearning_audit.artifacts.files import read_json
from unlearning_audit.bank.bank import read_models

pytestmark = pytest.mark.slow

HEAD = """import os
import numpy as np
import torch
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    pass


def unlearn(bank, forget, retain, options):
    {}
"""

#: What a method does → the lines of its function.
BODIES = {
    "decent": "pass",
    "moves": "os.chdir('/')",
    "relabels": "bank.labels[...] = 0",
    "shrinks": "bank.x = bank.x[:10]",
    "means": "bank.x[...] = bank.x.float().mean(0).to(bank.x.dtype)",
    "answers": "bank.logits = lambda *a, **k: np.zeros((1, 1, 1))",
    "device": "torch.set_default_device('meta')",
    "forks": "os.fork()",
    "patches": "np.isfinite = np.exp = lambda *a, **k: 1 / 0",
    "lingers": "import subprocess; subprocess.Popen(['sleep', '300'])",
    "talks": "os.write(1, b'x' * 30_000_000)",
    "mixes": "bank.edit(lambda name, w: w[:1].expand_as(w).clone())",
    "mixes_some": "bank.edit(lambda name, w: torch.cat([w[:1].expand_as(w[:3]), w[3:]]).clone())",
    "means_of_all": "bank.edit(lambda name, w: w.mean(0, keepdim=True).expand_as(w).clone())",
    "mixes_half": "bank.edit(lambda name, w: (w + w.roll(1, 0)) / 2)",
    "mixes_head": "bank.edit(lambda name, w: w[:1].expand_as(w).clone() if name.startswith(bank.model.head) else w)",
    "mixes_little": "bank.edit(lambda name, w: w * (torch.rand(w.shape[1:]) < 0.9) + 1e-3 * w.std())",
    "rolls": "bank.edit(lambda name, w: w.roll(1, 0))",
    "forever": "import time; time.sleep(600)",
    "opens": "open('rate.txt').read(); open('declared.txt').read()",
    "garbles": "type(bank).write = lambda self, path: open(path, 'wb').write(b'?')",
    "colours": "raise KeyError('\\x1b[31mred\\x1b[0m\\a')",
    "interrupts": "raise KeyboardInterrupt",
    "limits": "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))",
    "sends": "import json; json.dumps = lambda *a, **k: '[]'",
    "traces": "import sys; sys.settrace(lambda *a: 1 / 0)",
    "unimports": "import sys; sys.modules.pop('numpy'); sys.setrecursionlimit(60)",
}
#: Those that change nothing about the models: their logits are those of the originals.
HARMLESS = (
    "decent",
    "moves",
    "relabels",
    "shrinks",
    "means",
    "answers",
    "device",
    "forks",
    "patches",
    "lingers",
    "talks",
    "opens",
)


@pytest.fixture(scope="module")
def hostile(finished, tmp_path_factory):
    """The finished study with all these methods, run; and what the run said."""
    place = finished.copy(tmp_path_factory.mktemp("hostile") / "work")
    tiny = yaml.safe_load((place.folder / "study.yaml").read_text())
    for name, body in BODIES.items():
        (place.folder / f"{name}.py").write_text(HEAD.format(body))
        tiny["defaults"]["methods"][name] = {"file": f"{name}.py"}
    (place.folder / "rate.txt").write_text("0.1")
    (place.folder / "declared.txt").write_text("0.1")
    tiny["defaults"]["methods"]["forever"]["time_limit"] = 2
    tiny["defaults"]["methods"]["opens"]["depends"] = ["declared.txt"]
    place.write(tiny)
    return place, place.run(check=False)


def rows(place, *metrics):
    with (place.folder / "results/tiny/metrics.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if not metrics or row["metric"] in metrics]


def notes(place, method, metric):
    return [row["note"] for row in rows(place, metric) if row["method"] == method]


def batches(place, method):
    return sorted(spec.parent for spec in place.find(f"unlearn/*-{method}-*/spec.json"))


def test_a_run_with_them_ends_with_its_report_and_names_those_that_failed(hostile):
    place, process = hostile
    assert (place.folder / "results/tiny/report.html").stat().st_size > 0
    assert "a defect" not in process.stdout
    assert "delete it and run again" not in process.stdout
    failed = {row["method"] for row in rows(place, "failed")}
    assert failed == {
        "mixes",
        "mixes_some",
        "mixes_half",
        "mixes_head",
        "means_of_all",
        "rolls",
        "forever",
        "garbles",
        "colours",
        "interrupts",
        "limits",
        "sends",
        "traces",
        "unimports",
    }


def test_no_other_number_changes(hostile, finished):
    place, _ = hostile
    methods = ("none", "retrain", "finetune")

    def numbers(of):
        return [tuple(row.values()) for row in rows(of) if row["method"] in methods]

    assert numbers(place) == numbers(finished)


def test_logits_are_those_of_the_weights_and_of_the_data_as_they_are(hostile):
    place, _ = hostile
    for method in HARMLESS:
        folders = batches(place, method)
        assert folders
        for folder in folders:
            (before,) = [p for p in read_json(folder / "spec.json")["inputs"] if p.endswith("models.safetensors")]
            origin = (place.folder / before).parent
            np.testing.assert_array_equal(
                Logits.read(folder / "logits.npz").logits, Logits.read(origin / "logits.npz").logits, err_msg=method
            )
            for name, value in read_models(origin / "models.safetensors").items():
                assert value.equal(read_models(folder / "models.safetensors")[name]), (method, name)


def test_nothing_is_written_outside_the_folder(hostile):
    place, _ = hostile
    assert not list(Path("/").glob("results*"))
    assert not place.find("**/*.part")


def test_what_fails_after_a_file_is_the_failure_of_that_file(hostile):
    place, process = hostile
    (garbled,) = set(notes(place, "garbles", "failed"))
    assert garbled.startswith("garbles.py: the weights that it left cannot be read")
    listed = [name for name in BODIES if f"scenarios.main.methods.{name}: {name}.py" in process.stdout]
    assert len(listed) >= 6  # the terminal has room for some; the report names all


def test_processes_that_are_left_behind_are_ended_and_told(hostile):
    _, process = hostile
    assert "lingers.py: a process that it started was still running when it had ended" in process.stdout
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        assert words[:2] != [b"sleep", b"300"]


def test_output_is_bounded_and_told(hostile):
    place, process = hostile
    for folder in batches(place, "talks"):
        assert (folder / "log.txt").stat().st_size < 2e6
    assert "talks.py: it printed 30 MB, of which the first 1 MB are kept" in process.stdout


def test_a_time_limit_is_told_by_name(hostile):
    place, _ = hostile
    (note,) = set(notes(place, "forever", "failed"))
    assert note == "forever.py: it was ended after 2 s, its time_limit; make it faster or raise time_limit"


def test_files_that_are_read_are_named_or_declared(hostile):
    place, process = hostile
    assert "opens.py: it reads rate.txt, and an edit there renews no result; name what it reads in the study, such " \
        "as depends: [rate.txt]" in process.stdout  # fmt: skip
    assert any("it reads rate.txt" in note for note in notes(place, "opens", "doubt"))


def test_an_edit_of_what_is_declared_runs_the_method_again(hostile):
    place, _ = hostile
    count = len(batches(place, "opens"))
    (place.folder / "declared.txt").write_text("0.2")
    assert place.planned()["unlearn"] == count
    (place.folder / "declared.txt").write_text("0.1")
    assert "unlearn" not in place.planned()


def test_models_that_were_mixed_are_no_result(hostile):
    place, _ = hostile
    for method in ("mixes", "mixes_some", "mixes_half", "mixes_head", "means_of_all"):
        (note,) = set(notes(place, method, "failed"))
        assert "it does to a model depends on the models beside it" in note or "models 0 and 1 answer alike" in note
        assert [row["metric"] for row in rows(place) if row["method"] == method and row["value"]] == []
    (note,) = set(notes(place, "rolls", "failed"))
    assert "rolls.py: what it does to a model depends on the models beside it" in note
    (doubt,) = set(notes(place, "mixes_little", "doubt"))
    assert "mixes_little.py: what it does to a model depends on the models beside it" in doubt


def test_what_would_colour_the_terminal_is_written_out(hostile):
    place, process = hostile
    assert "\x1b[31m" not in process.stdout
    (note,) = set(notes(place, "colours", "failed"))
    assert "\\x1b[31mred" in note
