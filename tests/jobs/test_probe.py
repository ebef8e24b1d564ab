"""Rates from few rows foretell whole jobs: counted in samples that a network reads, which no machine changes."""

from pathlib import Path

import pytest
import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from unlearning_audit.plugins import registry
from unlearning_audit.training.streams import Rows
from unlearning_audit.workflow.forecast import arithmetic, probe
from unlearning_audit.workflow.forecast.sizes import Draws

from bank_cases import OPTIONS
from forecast_cases import images, planned
from slow_cases import slow

#: classic works on modules of its own, in which nobody counts; a sham reads no sample.
METHODS = [name for name in registry.names("methods") if name not in ("none", "initial", "classic", "sham")]

#: One of each way to read samples: retained, forgotten, both by turns, one by one, all anew, with labels drawn anew.
DIFFERENT = ("finetune", "neggrad", "scrub", "ssd", "retrain", "salun", "amnesiac")

CHOOSY = '''"""Needs many rows."""
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    """None."""


def unlearn(bank, forget, retain, options):
    raise RuntimeError("too few rows")
'''


class Counter:
    """A clock that shows how many samples networks have read."""

    def __init__(self) -> None:
        self.read = 0

    def timed(self, run, bank, rows) -> float:
        clone, before = bank.copy(), self.read
        network = type(clone.model)
        # A method may build a network of its own, wider by a class: every one of this type counts.
        handle = register_module_forward_pre_hook(lambda model, arguments: self._count(model, network, arguments))
        try:
            run(clone, rows)
        finally:
            handle.remove()
        return float(self.read - before)

    def _count(self, model, network, arguments) -> None:
        if type(model) is network:
            self.read += len(arguments[0])


@pytest.fixture
def counter(monkeypatch):
    """Probes count samples, and take 60 of them for enough."""
    clock = Counter()
    monkeypatch.setattr(probe, "timed", clock.timed)
    monkeypatch.setattr(probe, "ENOUGH", 60.0)
    return clock


def tried(plan, stages=("train", "unlearn", "signals")) -> tuple[dict, dict, dict, Draws]:
    """(nodes, jobs, node → rate, draws) of all jobs of these stages, those with models."""
    nodes = arithmetic.nodes(plan)
    draws = Draws(nodes)
    facts = {name: draws.facts(name) for name in plan.nodes["data"]}
    sizes = {name: draws.sizes(name) for name in plan.nodes["splits"]}
    by_name = {node["node"]: node for node in nodes}
    jobs = {name: job for name, job in arithmetic.jobs(nodes, facts, sizes).items() if by_name[name]["stage"] in stages}
    return by_name, jobs, {name: probe.measure(by_name[name], draws) for name in jobs}, draws


@pytest.mark.parametrize(
    ("stage", "method"),
    [
        ("train", "finetune"),
        *(("unlearn", method) for method in DIFFERENT),
        *slow(*(("unlearn", method) for method in METHODS if method not in DIFFERENT)),
    ],
)
def test_a_few_rows_foretell_what_a_job_reads(stage, method, counter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = planned(
        {"main": {}}, data=images(tmp_path / "images.npz"), model={"name": "cnn", "channels": [4]},
        recipe={"epochs": 9, "batch_size": 16, "record_updates": True},
        methods={"none": {}, method: OPTIONS.get(method, {})},
    )  # fmt: skip
    nodes, jobs, rates, draws = tried(plan, [stage])
    assert jobs
    for name, job in jobs.items():
        rate, note = rates[name]
        assert note == ""
        assert rate["answer"] == 1.0
        whole = counter.timed(_whole(nodes[name], draws), _bank(nodes[name], draws), 0)
        assert whole > 0
        assert job["models"] * job["work"] * rate["step"] == pytest.approx(whole, rel=0.3)


def _bank(node, draws):
    """All models of the job."""
    (data,), (splits,) = node["after"]["data"], node["after"]["splits"]
    bank = probe.open_bank(draws.data(data), draws.membership(splits), node["settings"], node["place"])
    bank.updates = {name: torch.zeros_like(value) for name, value in bank.parameters.items()}
    return bank


def _whole(node, draws):
    """The job's work, all of it."""
    membership = draws.membership(node["after"]["splits"][0])
    forget, retain = Rows.where(membership.forget), Rows.where(membership.retain)
    if node["stage"] == "train":
        return lambda bank, _: bank.train(Rows.where(membership.train))
    method = registry.load("methods", node["settings"]["method"])
    options = method.Options(**node["settings"]["method_options"])
    return lambda bank, _: method.unlearn(bank, forget, retain, options)


def test_a_method_that_cannot_be_tried_counts_as_training_all_over(counter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("choosy.py").write_text(CHOOSY)
    plan = planned({"main": {}}, data=images(tmp_path / "images.npz"), model={"name": "cnn", "channels": [4]},
                   recipe={"epochs": 9, "batch_size": 16},
                   methods={"none": {}, "retrain": {}, "choosy": {"file": "choosy.py"}})  # fmt: skip
    nodes, jobs, rates, _ = tried(plan)
    by_method = {nodes[name]["settings"].get("method", "train"): (job, *rates[name]) for name, job in jobs.items()}
    job, rate, note = by_method["choosy"]
    assert "too few rows" in note
    assert rate["step"] == 9 * by_method["retrain"][1]["step"] == 9.0
    assert arithmetic.seconds(job, rate) == pytest.approx(
        arithmetic.seconds(by_method["train"][0], by_method["train"][1])
    )


def test_training_with_dp_and_gradient_norms_has_rates_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = planned({"main": {}}, recipe={"epochs": 3, "batch_size": 16, "dp": {"epsilon": 8.0}},
                   attacks={"gradient_norm": {}})  # fmt: skip
    _, jobs, rates, _ = tried(plan)
    for name, job in jobs.items():
        rate, reads = rates[name][0], job["samples"] == 0
        assert rate["step"] > 0
        assert (rate["answer"] > 0, rate["bytes"]) == (not reads, 0 if reads else 4 * (64 * 16 + 16 + 16 * 10 + 10))
        assert (job["work"] if reads else job["samples"]) == 250
    assert {job["samples"] for job in jobs.values()} == {0, 250}


def test_hidden_layers_have_a_rate_and_take_room(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = planned({"main": {}}, recipe={"epochs": 3, "batch_size": 16}, metrics={"representation": {}})
    nodes, jobs, rates, draws = tried(plan)
    layers = [name for name, job in jobs.items() if job["samples"] == 0]
    assert layers
    for name in layers:
        rate, _ = rates[name]
        assert rate["step"] > 0
        member = draws.membership(nodes[name]["after"]["splits"][0])
        rows = int((member.train | member.heldout)[0].sum())
        assert (jobs[name]["work"], rate["bytes"]) == (250, 4 * 16 * rows)


@pytest.mark.parametrize("batch", [7, 64])
def test_steps_that_are_recorded_are_no_part_of_the_rate(monkeypatch, batch):
    """A first step that is ordinary, a second that is recorded, and replays, of which a long training consists."""

    def timed(run, bank, rows):
        steps = -(-rows // batch)
        return 0.05 + 0.02 * (steps > 0) + 0.5 * (steps > 1) + 0.001 * max(steps - 1, 0)

    monkeypatch.setattr(probe, "timed", timed)
    monkeypatch.setattr(probe.card, "use", lambda: "cuda")
    rate = probe.per_row(None, [None], 20 * batch, 500, batch=batch)
    assert rate == pytest.approx(0.001 / batch)


def test_a_fault_of_the_card_is_none_of_the_method(tmp_path, monkeypatch):
    def busy(*_):
        raise torch.AcceleratorError("CUDA error: CUDA-capable device(s) is/are busy or unavailable", 46)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(probe, "_method", busy)
    plan = planned({"main": {}}, data=images(tmp_path / "images.npz"), model={"name": "cnn", "channels": [4]},
                   methods={"none": {}, "retrain": {}, "salun": {}})  # fmt: skip
    nodes = arithmetic.nodes(plan)
    node = next(node for node in nodes if node["settings"].get("method") == "salun")
    with pytest.raises(torch.AcceleratorError):
        probe.measure(node, Draws(nodes))
