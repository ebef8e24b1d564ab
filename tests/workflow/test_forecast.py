"""A plan and rates make seconds and bytes of every job: by hand, for jobs with models and without, and in sums."""

import pytest
from unlearning_audit.report.tables import forecast as display
from unlearning_audit.report.tables import formats
from unlearning_audit.study.schema import STAGES
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.workflow.forecast import arithmetic, rates
from unlearning_audit.workflow.forecast.sizes import Draws

from forecast_cases import planned

SPLITS = {"models": 6, "originals": 2, "train": 100, "forget": 20, "bytes": 1}
DATA = {"shape": [64], "classes": 10, "samples": 300, "bytes": 1}
RATE = {"step": 0.01, "answer": 1e-4, "bytes": 1000, "from": "probe"}


def job(method=None, *, recipe=None, splits=SPLITS, data=DATA, options=None, **changes):
    settings = {"model": "mlp", "options": {"hidden": [8]},
                "recipe": Recipe(**{"epochs": 5, **(recipe or {})}).model_dump(mode="json"), **changes}  # fmt: skip
    if method:
        settings |= {"method": method, "method_options": options or {"epochs": 3, "lr": 0.1}}
    return arithmetic.job({"settings": settings}, data, splits)


def row(stage, seconds, models=2, size=5.0, rate="probe", node="x-1"):
    return dict(zip(arithmetic.COLUMNS, (stage, node, models, seconds, size, rate), strict=True))


# ---------------------------------------------------------------- jobs with models


def test_a_job_in_numbers():
    def numbers(entry):
        return tuple(entry[name] for name in ("models", "work", "samples", "written"))

    assert numbers(job()) == (2, 100 * 5, 300, 6), "originals are trained once, however many copies are written"
    assert numbers(job("retrain")) == (6, 80 * 5, 300, 6)
    assert numbers(job("finetune")) == (6, 100, 300, 6), "a method is tried with its own epochs"
    assert numbers(job(signal="squared_norms", rows="forgotten")) == (6, 20, 0, 6)
    assert numbers(job(signal="squared_norms", rows="all")) == (6, 300, 0, 6)


def test_seconds_and_bytes_by_hand():
    finetune, norms = job("finetune"), job(signal="squared_norms", rows="forgotten")
    assert arithmetic.seconds(finetune, RATE) == pytest.approx(6 * (100 * 0.01 + 300 * 1e-4))
    assert arithmetic.size(finetune, RATE) == 6 * (1000 + 300 * 10 * 4)
    assert arithmetic.seconds(norms, RATE) == pytest.approx(6 * 20 * 0.01)
    assert arithmetic.size(norms, {**RATE, "bytes": 0}) == 6 * 20 * 8


def test_jobs_on_record_foretell_others_of_their_kind():
    jobs = {"a": job(), "b": job(recipe={"epochs": 10}), "c": job("finetune")}
    ledger = {"a": {"seconds": 2.0, "bytes": arithmetic.size(jobs["a"], RATE)}}
    (rate,) = arithmetic.recorded(jobs, ledger).values()
    assert (rate["bytes"], rate["from"]) == (1000, "ledger")
    assert arithmetic.seconds(jobs["a"], rate) == pytest.approx(2.0)
    assert arithmetic.seconds(jobs["b"], rate) == pytest.approx(4.0), "twice the epochs"
    assert set(arithmetic.recorded(jobs, ledger)) == {jobs["a"]["kind"]}


# ---------------------------------------------------------------- every job


def test_jobs_without_models_take_what_those_of_their_name_did_or_those_of_the_default_study():
    node, cells = {"stage": "metrics"}, arithmetic.CELLS
    alike = [{"seconds": 2.0, "bytes": 10}, {"seconds": 4.0, "bytes": 30}]
    assert arithmetic.scoring(node, 7, alike) == (3.0, 20.0, "ledger")
    usual = rates.SECONDS["metrics"]
    assert arithmetic.scoring(node, 3 * cells, []) == (3 * usual, 3 * cells * arithmetic.SCORE_BYTES, "default study")
    assert arithmetic.scoring(node, 10, [])[0] == usual, "a small job takes as long to start"
    assert arithmetic.scoring({"stage": "comparisons"}, cells, [])[:2] == (rates.SECONDS["comparisons"], 0.0)
    assert set(rates.SECONDS) == set(STAGES)


def test_every_node_has_a_row_and_what_is_done_took_what_it_took(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nodes = arithmetic.nodes(planned({"main": {}}))
    draws = Draws(nodes)
    facts = {n["node"]: draws.facts(n["node"]) for n in nodes if n["stage"] == "data"}
    sizes = {n["node"]: draws.sizes(n["node"]) for n in nodes if n["stage"] == "splits"}
    rates = {entry["kind"]: RATE for entry in arithmetic.jobs(nodes, facts, sizes).values()}
    last = next(n["node"] for n in nodes if n["stage"] == "metrics")
    alike = {"stage": "metrics", "node": f"{arithmetic.label(last)}-0123456789", "seconds": 9.0, "bytes": 1}
    rows = arithmetic.rows(nodes, facts, sizes, rates, {last: {"seconds": 7.0, "bytes": 3}}, [alike])
    assert [row["node"] for row in rows] == [node["node"] for node in nodes]
    row_of = {row["node"]: row for row in rows}
    assert (row_of[last]["seconds"], row_of[last]["bytes"], row_of[last]["rate"]) == (7.0, 3, "done")
    assert arithmetic.total(rows)["metrics"]["rates"] == ["done", "default study"]
    (data,) = facts
    assert row_of[data]["bytes"] == facts[data]["bytes"] > 0
    # Four models of 75 rows are trained for two epochs, and answer 250 samples.
    (trained,) = (row for row in rows if row["stage"] == "train")
    models, rows_each = sizes[next(iter(sizes))]["models"], sizes[next(iter(sizes))]["train"]
    assert trained["models"] == models
    assert trained["seconds"] == pytest.approx(models * (2 * rows_each * 0.01 + 250 * 1e-4))


# ---------------------------------------------------------------- sums


def test_time_is_shared_by_places_and_gpus():
    rows = [row("train", 10.0, node="a"), row("unlearn", 6.0, node="b"), row("metrics", 4.0, node="c")]
    alone = [{"stage": entry["stage"], "node": entry["node"], "after": {}} for entry in rows]
    assert arithmetic.wall(rows, 1, 0, alone) == 20.0
    assert arithmetic.wall(rows, 4, 0, alone) == 10.0, "no job is divided"
    assert arithmetic.wall(rows, 4, 1, alone) == 16.0, "training and unlearning wait for the GPU"
    assert arithmetic.wall([], 4, 2, alone) == 0.0
    chain = [alone[0], {**alone[1], "after": {"train": ["a"]}}, {**alone[2], "after": {"unlearn": ["b"]}}]
    assert arithmetic.wall(rows, 9, 0, chain) == 20.0, "a job waits for what it is made from"
    assert arithmetic.wall(rows[1:], 9, 0, chain) == 10.0, "what is no row is there"


def test_the_table_and_its_sentence():
    rows = [row("train", 3600.0, models=8, size=2.5e9),
            row("train", 3600.0, models=8, rate="done", size=0.0, node="x-2"),
            row("metrics", 30.0, models=0, size=0.0, rate="default study")]  # fmt: skip
    lines = [line.split() for line in formats.plain(display.sheet(rows, 1)).splitlines()]
    assert lines[1] == ["train", "2", "16", "2", "h", "2.5", "GB", "probe,", "done"]
    assert lines[2] == ["metrics", "1", "30", "s", "0", "kB", "default", "study"]
    assert lines[3][:4] == ["all", "3", "2", "h"]
    text = display.sentence(rows, 4, 1, [], "a machine")
    assert text == "With 4 jobs at a time on 1 GPU: 2 h from nothing, 60 min for what is left. Measured on a machine."
    assert display.sentence(rows[:1], 1, 0, [], "x").startswith("With 1 job at a time: 60 min from nothing. ")


def test_the_memory_of_a_stage_is_that_of_its_largest_job_that_is_done():
    rows = [row(stage, 1.0, node=node) for stage, node in (("train", "a"), ("train", "b"), ("metrics", "c"))]
    ledger = {"a": {"memory": 900}, "b": {"memory": 2048}, "c": {"memory": 0}, "of another study": {"memory": 9999}}
    peaks = arithmetic.peaks(rows, ledger)
    assert peaks == {"train": 2048}
    assert display.memory(peaks).startswith("Most memory of a job that is done: train 2.1 GB. Ask a cluster for more")
    assert arithmetic.peaks(rows, {}) == {}
