"""A method whose models diverged stays in the tables as damaged, and costs the others nothing."""

import numpy as np
import pandas
import pytest
from unlearning_audit.command import read
from unlearning_audit.evaluation import rows, verdicts
from unlearning_audit.stages import here
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

import reader_cases


def logs(folder, diverged):
    models = {"full": (1, 2.5), "retain90_seed1": (2, 0.0), "retain90_seed2": (3, 0.0), "NPO": (4, 1.0)}
    for name, (seed, memory) in models.items():
        log = reader_cases.openunlearning(seed, memory)
        reader_cases.write_log(folder / f"forget10_{name}" / "TOFU_EVAL.json", log, summary=False)
    if diverged:
        log = reader_cases.openunlearning(5, 1.0)
        for row in log["forget_Q_A_Prob"]["value_by_index"].values():
            row |= {"prob": float("nan"), "avg_loss": float("inf")}
        reader_cases.write_log(folder / "forget10_GradAscent" / "TOFU_EVAL.json", log, summary=False)


def tables(folder, diverged):
    frame = reader_cases.study_table()
    if diverged:
        other = frame[frame["kind"] == "unlearned"].assign(method="gradascent")
        frame = pandas.concat([frame, other, other.assign(seed=1, loss=np.nan)])
    frame.to_csv(folder / "losses.csv", index=False)


def judged(folder, monkeypatch, write, diverged):
    """method → its verdict, and its numbers."""
    (folder / "given").mkdir(parents=True)
    write(folder / "given", diverged)
    monkeypatch.chdir(folder)
    file = read.write_study(
        ["given"], retrain=[], none=[], alone=False, reader="", columns=[], roles="", study="audit.yaml"
    )
    made = plan.make(reading.read(*reading.load([file])))
    here.judge(made)
    (path,) = folder.glob("results/comparisons/*/verdicts.csv")
    said = {row["method"]: row for row in verdicts.read(path, verdicts.VERDICTS)}
    return said, {case.method: rows.read(case.metrics) for case in made.cases}


@pytest.mark.parametrize(
    ("write", "note"),
    [
        (logs, "1 of 1 models diverged (given/forget10_GradAscent/TOFU_EVAL.json: forget_Q_A_Prob.prob is NaN or "
         "infinite for 60 of 60 samples)"),
        (tables, "1 of 2 models diverged (given/losses.csv: loss is NaN or infinite for 120 of 120 samples)"),
    ],
)  # fmt: skip
def test_a_method_that_diverged_is_damaged_and_the_others_have_their_numbers(tmp_path, monkeypatch, write, note):
    with_it, numbers = judged(tmp_path / "a", monkeypatch, write, True)
    without, same = judged(tmp_path / "b", monkeypatch, write, False)
    damaged = with_it.pop("gradascent")
    assert damaged["verdict"] == "broken"
    assert note in damaged["note"]
    assert list(with_it) == list(without)
    for method, row in with_it.items():
        np.testing.assert_equal(row, without[method])
    (failure,) = numbers.pop("gradascent")
    assert failure.kind == "diverged"
    assert list(numbers) == list(same)
    for method, lines in numbers.items():
        np.testing.assert_equal(*([line for line in of if line.metric != "remark"] for of in (lines, same[method])))
