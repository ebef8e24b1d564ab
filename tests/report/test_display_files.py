"""What displays gather from the files of jobs: costs, rows, failures, remarks and samples that occur twice."""

import csv

import numpy as np
import pytest
from unlearning_audit.evaluation import rows as rows_of
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.evaluation.rows import Failure, Record, Row
from unlearning_audit.report import failures
from unlearning_audit.report.page import copies
from unlearning_audit.report.tables import cost
from unlearning_audit.stages import collect
from unlearning_audit.store import tables
from unlearning_audit.store.files import write_spec

import splits as stage
from display_cases import case


def test_unlearning_is_compared_with_retraining_model_by_model_and_what_takes_more_than_a_fifth_is_marked(tmp_path):
    nodes = []
    for at, name, seconds, models, unlearn in (
        ("train", "none", 9.0, 4, None), ("unlearn", "retrain", 80.0, 4, 80.0), ("unlearn", "quick", 1.0, 2, 7.6),
        ("unlearn", "quick-2", 1.0, 2, 7.6), ("unlearn", "slow", 9.0, 1, 4.2),
        ("unlearn", "retrain_control", 9.0, 1, 20.0),
    ):  # fmt: skip
        facts = {"seconds": {"function": seconds, "process": seconds / 2}, "peak_memory_mib": 100, "models": models,
                 "machine": {"device": "cpu"}}  # fmt: skip
        path = tmp_path / at / name / "spec.json"
        write_spec(path, facts | ({} if unlearn is None else {"unlearn_seconds": unlearn}))
        nodes.append({"stage": at, "node": name, "spec": str(path)})
    rows = cost.rows(nodes)
    tables.write_rows(tmp_path / "cost.csv", rows, cost.COLUMNS)
    assert cost.read(tmp_path / "cost.csv") == rows
    specs = {"none": [0], "retrain": [1], "quick": [2, 3], "slow": [4], "retrain_control": [5]}
    cases = [{**case("s", name), "specs": [nodes[i]["spec"] for i in places]} for name, places in specs.items()]
    stages, methods = cost.sheets(rows, {"cases": cases})
    assert [[cell.text for cell in line.cells] for line in (*stages.lines, *stages.footer)] == [
        ["1", "4", "9 s", "2.2 s", "100 MiB"], ["5", "10", "1.7 min", "10 s", "100 MiB"], ["6", "", "1.8 min", "", ""]
    ]  # fmt: skip
    assert {line.label: (line.cells[0].text, line.cells[0].notes, line.cells[0].tone) for line in methods.lines} == {
        "none": ("0.00 ×", (), ""), "quick": ("0.19 ×", (), ""), "slow": ("0.21 ×", (cost.SLOW,), "bad"),
        "retrain": ("1.00 ×", (), ""), "retrain (control)": ("1.00 ×", (), ""),
    }  # fmt: skip
    assert [(r["method"], r["per_model"], r["to_retrain"], r["over_limit"]) for r in methods.records] == [
        ("none", 0.0, 0.0, "no"), ("retrain", 20.0, 1.0, "no"), ("quick", 3.8, 0.19, "no"),
        ("slow", 4.2, pytest.approx(0.21), "yes"), ("retrain_control", 20.0, 1.0, "no"),
    ]  # fmt: skip


# ---------------------------------------------------------------- rows of all cases, and what failed


def gathered(folder, rows, method="mine", **fields):
    """The union of one case with these rows in a file."""
    path = folder / method / "metrics.csv"
    rows_of.write(path, rows)
    return collect.gathered([case("noisy", method, {"epsilon": "8"}) | {"metrics": str(path)} | fields])


def test_the_union_has_a_column_for_every_axis_and_is_read_as_it_was_written(tmp_path):
    same = Row("unchanged", 1.0, n=1, note="identical")
    records = [
        record
        for method in ("ssd", "none")
        for record in gathered(tmp_path, [Row("accuracy", 0.1 + 0.2, n=3, role="test"), same], method)
    ]
    assert [(r.method, r.row.metric, r.axes) for r in records] == [
        ("ssd", "accuracy", {"epsilon": "8"}), ("ssd", "unchanged", {"epsilon": "8"}),
        ("none", "accuracy", {"epsilon": "8"}),
    ]  # fmt: skip
    rows_of.write_study(tmp_path / "metrics.csv", "study", records)
    line = next(csv.DictReader((tmp_path / "metrics.csv").open()))
    assert (float(line["value"]), line["axis_epsilon"], line["role"]) == (0.1 + 0.2, "8", "test")
    assert repr(rows_of.read_study(tmp_path / "metrics.csv")) == repr(records)


NAN = "results/unlearn/x/logits.npz: field 'logits' has 3 values that are NaN or infinite; what made it diverged"
DIVERGED = Failure("diverged", "", NAN)
OF_FILE = f"mine.py: its models answer NaN or infinite logits; {NAN}"


@pytest.mark.parametrize(
    ("failed", "fields", "lines", "broken"),
    [
        ([DIVERGED], {}, [f"methods.mine: {NAN}"], False),
        ([DIVERGED], {"file": "mine.py"}, [f"methods.mine: {OF_FILE}"], False),
        ([DIVERGED, Failure("metric", "own", "own.py: it raised"), Failure("missing", "q", "no")], {},
         [f"methods.mine: {NAN}", "metrics.own: own.py: it raised"], True),
    ],
)  # fmt: skip
def test_what_raised_breaks_a_run_and_what_diverged_or_follows_does_not(tmp_path, failed, fields, lines, broken):
    records = gathered(tmp_path, failed, **fields)
    assert failures.lines(records) == [f"scenarios.noisy.{line}" for line in lines]
    assert failures.plugin_raised(records) == broken


def test_methods_that_fail_for_one_reason_share_a_line():
    broken = [("noisy", name, Failure("method", "", "labels are shifted")) for name in "abc"]
    broken.append(("clean", "a", broken[0][2]))
    broken += [("noisy", name, Failure("model", "", "m.py: no head")) for name in "ab"]
    assert failures.lines([Record(scenario, "external", name, {}, failure) for scenario, name, failure in broken]) == [
        "scenarios.noisy.methods.a (and b, c): labels are shifted", "scenarios.clean.methods.a: labels are shifted",
        "scenarios.noisy.model: m.py: no head",
    ]  # fmt: skip


# ---------------------------------------------------------------- samples that occur more than once


def test_copies_in_all_batches_are_added(tmp_path):
    order = []
    for scenario, groups, kept in (("clean", 1200, (3, 4)), ("none", 0, (0,))):
        data = tmp_path / scenario / "data.json"
        write_spec(data, {"duplicates": {"groups": groups, "train_test_pairs": 1}})
        specs = [tmp_path / scenario / f"{i}.json" for i in range(len(kept))]
        for spec, count in zip(specs, kept, strict=True):
            write_spec(spec, {"copies": {"forgotten": 500, "forgotten_kept": count, "forgotten_heldout": 0,
                                         "heldout": 2000, "heldout_trained": 0}})  # fmt: skip
        order.append({"scenario": scenario, "setting": "", "data": str(data), "splits": [str(spec) for spec in specs]})
    clean, none = copies.read(order)
    counts = {"forgotten": 1000, "forgotten_kept": 7, "forgotten_heldout": 0, "heldout": 4000, "heldout_trained": 0}
    assert (clean, none["groups"]) == ({"scenario": "clean", "setting": "", "groups": 1200, "pairs": 1, **counts}, 0)


def test_the_stage_counts_what_a_comparison_of_all_pairs_counts(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(256, size=(120, 1, 3, 3), dtype=np.uint8)
    x[60:90] = x[:30]
    y, part = rng.integers(3, size=120), (np.arange(120) >= 100).astype(np.uint8)
    paths = {name: str(tmp_path / f"{name}.npz") for name in ("data", "membership")}
    Data(x, y, part, y, np.arange(120), 3).write(paths["data"])
    options = {"alpha": 0.25, "pairs": 2, "models_per_split": 1}
    settings = {"protocol": "swap", "options": options, "blocks": [0, 1], "population": "pairs", "seed": 0}
    facts = stage.splits(**paths, settings=settings, place={"file": None, "where": "scenarios.main.protocol"})
    member = Membership.read(paths["membership"])
    equal = (x.reshape(120, 1, -1) == x.reshape(1, 120, -1)).all(2) & ~np.eye(120, dtype=bool)

    found = {}
    for name, of, among in (("forgotten_kept", member.forget, member.retain),
                            ("forgotten_heldout", member.forget, member.heldout),
                            ("heldout_trained", member.heldout, member.train)):  # fmt: skip
        found |= {name: sum(int(equal[m][:, n].any(1).sum()) for m, n in zip(of, among, strict=True))}
    counts = {"forgotten": int(member.forget.sum()), "heldout": int(member.heldout.sum())}
    assert (facts["copies"], found["forgotten_kept"] > 0) == (counts | found, True)
