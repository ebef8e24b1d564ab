"""A method whose models diverged stays in the tables as damaged, and costs the others nothing."""

import numpy as np
import pandas
import pytest
from unlearning_audit.command import read
from unlearning_audit.evaluation import rows, verdicts
from unlearning_audit.stages import here
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

import reader_cases as cases


def logs(folder, diverged):
    models = {"full": (1, 2.5), "retain90_seed1": (2, 0.0), "retain90_seed2": (3, 0.0), "NPO": (4, 1.0)}
    cases.write_logs(folder, **{f"forget10_{name}": model for name, model in models.items()})
    if diverged:
        log = cases.openunlearning(5, 1.0)
        for row in log["forget_Q_A_Prob"]["value_by_index"].values():
            row |= {"prob": float("nan"), "avg_loss": float("inf")}
        cases.write_log(folder / "forget10_GradAscent/TOFU_EVAL.json", log)


def tables(folder, diverged):
    frame = cases.study_table()
    if diverged:
        other = frame[frame["kind"] == "unlearned"].assign(method="gradascent")
        frame = pandas.concat([frame, other, other.assign(seed=1, loss=np.nan)])
    frame.to_csv(folder / "losses.csv", index=False)


def judged(folder, monkeypatch, write, diverged):
    """method → its verdict, and its numbers."""
    (folder / "given").mkdir(parents=True)
    write(folder / "given", diverged)
    monkeypatch.chdir(folder)
    nothing = {"retrain": [], "none": [], "alone": False, "reader": "", "columns": [], "roles": ""}
    content, name = reading.load([read.write_study(["given"], **nothing, study="audit.yaml")])
    made = plan.make(reading.read({**content, "bootstrap": 100}, name))
    here.judge(made)
    (path,) = folder.glob("results/comparisons/*/verdicts.csv")
    said = {row["method"]: row for row in verdicts.read(path, verdicts.VERDICTS)}
    numbers = {case.method: rows.read(case.metrics) for case in made.cases}
    return said, {
        method: [row for row in part if getattr(row, "metric", "") != "remark"] for method, part in numbers.items()
    }


@pytest.mark.parametrize(
    ("write", "note"),
    [
        (logs, "1 of 1 models diverged (given/forget10_GradAscent/TOFU_EVAL.json: forget_Q_A_Prob.prob is NaN or "
         "infinite for 60 of 60 samples)"),
        (tables, "1 of 2 models diverged (given/losses.csv: loss is NaN or infinite for 120 of 120 samples)"),
    ],
)  # fmt: skip
def test_a_method_that_diverged_is_damaged_and_the_others_have_their_numbers(tmp_path, monkeypatch, write, note):
    verdicts_with, numbers = judged(tmp_path / "a", monkeypatch, write, True)
    damaged, (failure,) = verdicts_with.pop("gradascent"), numbers.pop("gradascent")
    assert (damaged["verdict"], failure.kind) == ("broken", "diverged")
    assert note in damaged["note"]
    np.testing.assert_equal((verdicts_with, numbers), judged(tmp_path / "b", monkeypatch, write, False))
