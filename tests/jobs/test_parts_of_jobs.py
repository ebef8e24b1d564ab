"""A part of a job is made once, and taken from where it lies as long as it is whole."""

import logging
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.store.files import read_arrays, read_json, write_arrays
from unlearning_audit.workflow import jobs


@pytest.fixture
def part(tmp_path, monkeypatch):
    """What a plan says of a part, and the calls of its function."""
    calls = []

    def signals(signals, models, settings):
        calls.append(models)
        write_arrays(signals, value=np.full(2, settings["value"]))
        return {"models": 2}

    monkeypatch.setattr(jobs, "function_of", {"signals": signals}.get)
    folder = tmp_path / "part-0123456789"
    outputs = {"signals": str(folder / "signals.npz"), "spec": str(folder / "spec.json")}
    return {
        "stage": "signals", "settings": {"value": 3}, "inputs": {"data": "data.npz", "models": ["models"]},
        "outputs": outputs, "place": {},
    }, calls  # fmt: skip


def test_a_part_that_is_whole_is_taken(part):
    told, calls = part
    jobs.make_part(told)
    jobs.make_part(told)
    assert len(calls) == 1


@pytest.mark.parametrize("lost", ["signals", "spec"])
def test_a_part_that_is_not_whole_is_made_again(part, lost):
    told, calls = part
    jobs.make_part(told)
    with open(told["outputs"][lost], "r+b") as file:
        file.seek(-4, 2)
        file.write(b"....")
    jobs.make_part(told)
    assert len(calls) == 2
    assert read_arrays(told["outputs"]["signals"])["value"].tolist() == [3, 3]


class Named(list):
    """Files or params of a rule, as Snakemake gives them to a script."""

    def __init__(self, values):
        super().__init__(values.values())
        self.items = values.items
        self.get = values.get


def test_a_part_that_fails_costs_nothing_of_what_was_made_before(part, tmp_path, monkeypatch, capfd):
    import job

    def fail(**_):
        raise RuntimeError("out of memory")

    def train(models, settings):
        write_arrays(models, value=np.zeros(2))

    told, _ = part
    monkeypatch.setattr(jobs, "function_of", {"train": train, "signals": fail}.get)
    folder = tmp_path / "models-0123456789"
    folder.mkdir()
    outputs = {"models": str(folder / "models.npz"), "spec": str(folder / "spec.json")}
    params = {"stage": "train", "settings": {}, "place": {"parts": {"part": told}}}
    told_by_snakemake = SimpleNamespace(
        rule="train", log=[str(folder / "log.txt")], input=Named({}), output=Named(outputs), params=Named(params),
        wildcards=Named({}),
    )  # fmt: skip
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, getattr(sys, stream))
    job.run(told_by_snakemake)
    assert (read_json(outputs["spec"])["stage"], Path(told["outputs"]["spec"]).exists()) == ("train", False)
    assert "signals: out of memory (more in " in capfd.readouterr().err
    assert "RuntimeError: out of memory" in (folder / "log.txt").read_text()
