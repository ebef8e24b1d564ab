"""Small artifacts: read as they were written, refused by field where they break a promise, and never changed."""

import numpy as np
import pytest
from unlearning_audit.evaluation import readings, verdicts, views
from unlearning_audit.evaluation.arrays import ArtifactError
from unlearning_audit.evaluation.features import Features
from unlearning_audit.evaluation.generations import Generations
from unlearning_audit.evaluation.readings import BySample, Gradients
from unlearning_audit.evaluation.relearned import Relearned
from unlearning_audit.evaluation.selection import Selection
from unlearning_audit.store.files import FailedError, write_arrays, write_failure

SELECTION = {"vulnerable": np.array([True, False, False]), "protected": np.array([False, False, True]),
             "ratio": np.array([1.5, 0.0, -2.0])}  # fmt: skip
RELEARNED = {"steps": np.array([0, 1, 4]), "phi": np.arange(12, dtype=np.float32).reshape(2, 3, 2),
             "right": np.arange(12).reshape(2, 3, 2) % 2 == 0, "taught": np.array([[True, False], [False, True]]),
             "index": np.array([7, 5])}  # fmt: skip
GENERATIONS = {"tokens": np.array([[[3, 4], [5, -1]], [[1, -1], [-1, -1]]], np.int32),
               "index": np.array([[0, 9, -1], [0, -1, -1]])[:, :2]}  # fmt: skip
GRADIENTS = {"squared_norms": np.ones((2, 3)), "mean_squared_norm": np.ones(2)}
BY_SAMPLE = {"signal": np.array("tokens"), "index": np.array([2, 0, 3]),
             "values": np.where(np.arange(120) % 7, np.arange(120.0), np.nan).reshape(2, 3, 5, 4)}  # fmt: skip
FEATURES = {
    "features": np.arange(24, dtype=np.float32).reshape(2, 4, 3),
    "index": np.array([[0, 2, 3, -1], [1, 2, 3, 0]]),
}
KINDS = {"features": (Features, FEATURES), "selection": (Selection, SELECTION), "relearned": (Relearned, RELEARNED),
         "generations": (Generations, GENERATIONS), "gradients": (Gradients, GRADIENTS),
         "by_sample": (BySample, BY_SAMPLE)}  # fmt: skip
#: What a reader is told: models, samples.
SIZES = {"selection": (3,), "features": (2, 4)}


def read(kind, path):
    if kind in ("gradients", "by_sample"):
        return readings.read(path, models=2, samples=4)
    return KINDS[kind][0].read(path, *SIZES.get(kind, ()))


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_is_read(tmp_path, kind):
    cls, arrays = KINDS[kind]
    cls(**arrays).write(tmp_path / "a.npz")
    actual = read(kind, tmp_path / "a.npz")
    for name, value in arrays.items():
        np.testing.assert_array_equal(getattr(actual, name), value, strict=True)


@pytest.mark.parametrize(
    ("kind", "field", "value", "problem"),
    [
        ("selection", "vulnerable", np.array([True, False, True]), "'protected' holds samples that are vulnerable"),
        ("selection", "ratio", np.zeros(2), r"'ratio' has shape \(2,\), expected \(3\)"),
        ("selection", "protected", np.zeros(3, int), "'protected' has dtype int64"),
        ("relearned", "steps", np.array([1, 2, 4]), "'steps' must rise from 0"),
        ("relearned", "steps", np.array([-1, 0, 4]), "'steps' must rise from 0"),
        ("relearned", "steps", np.array([0, 4, 4]), "'steps' must rise from 0"),
        ("relearned", "steps", np.array([0, 1]), r"'phi' has shape \(2, 3, 2\), expected \(any, 2, any\)"),
        ("relearned", "right", np.zeros((2, 3, 1), bool), r"'right' has shape \(2, 3, 1\), expected \(2, 3, 2\)"),
        ("relearned", "taught", np.zeros((3, 2), bool), r"'taught' has shape \(3, 2\), expected \(2, 2\)"),
        ("relearned", "taught", np.zeros((2, 3), bool), r"'taught' has shape \(2, 3\), expected \(2, 2\)"),
        ("relearned", "index", np.arange(3), r"'index' has shape \(3,\), expected \(2\)"),
        ("gradients", "squared_norms", np.ones(2), r"'squared_norms' has shape \(2,\), expected \(2, any\)"),
        ("gradients", "squared_norms", np.full((2, 3), np.inf), "'squared_norms' has 6 values that are NaN"),
        ("gradients", "mean_squared_norm", np.ones(3), r"'mean_squared_norm' has shape \(3,\)"),
        ("by_sample", "index", np.arange(2), r"'values' .*expected \(2, 2, any, any\)"),
        ("by_sample", "index", np.array([2, 0, 0]), "'index' names a sample twice"),
        ("by_sample", "index", np.array([2, 0, 9]), "'index' names a sample twice, or one that the data"),
        (
            "features",
            "features",
            np.zeros((2, 3, 3), np.float32),
            r"'features' has shape \(2, 3, 3\), expected \(2, 4,",
        ),
        ("features", "index", np.zeros((3, 4), int), r"'index' has shape \(3, 4\), expected \(2, any\)"),
        ("features", "index", np.full((2, 4), 4), r"'index' has samples outside 0 … 3, which the data do not have"),
        ("generations", "index", np.array([[0, 1], [0, 0]]), "'index' names a sample twice for one model"),
        ("generations", "tokens", np.zeros((2, 3, 4), int), r"'tokens' has shape \(2, 3, 4\), expected \(2, 2, any\)"),
    ],
)
def test_a_broken_promise_is_told_by_field(tmp_path, kind, field, value, problem):
    write_arrays(tmp_path / "a.npz", **{**KINDS[kind][1], field: value})
    with pytest.raises(ArtifactError, match=f"a.npz: field {problem}"):
        read(kind, tmp_path / "a.npz")


@pytest.mark.parametrize("kind", ["relearned", "generations", "gradients"])
def test_models_that_were_never_made_are_a_result(tmp_path, kind):
    write_failure(tmp_path / "a.npz", "method", "it diverged")
    with pytest.raises(FailedError, match=r"^it diverged$") as error:
        read(kind, tmp_path / "a.npz")
    assert error.value.part == "method"


# ---------------------------------------------------------------- views


PART, PARENT, VIEW = np.array([0, 1, 2, 2, 2]), np.array([-1, -1, 0, 1, 0]), np.array([0, 0, 1, 4, 1])


@pytest.mark.parametrize(
    ("parent", "view", "problem"),
    [
        (None, None, ""),
        (PARENT, VIEW, ""),
        (PARENT, None, "belong together"),
        (PARENT[:4], VIEW, "must hold one whole number for each of 5 rows"),
        (PARENT, VIEW[:4], "must hold one whole number for each of 5 rows"),
        (PARENT.astype(float), VIEW, "must hold one whole number for each of 5 rows"),
        (PARENT.astype(np.uint8), VIEW, "must hold one whole number for each of 5 rows"),
        (np.array([-1, 0, 0, 1, 0]), VIEW, "exactly where part is 2"),
        (np.array([-1, -1, 0, 1, -1]), VIEW, "exactly where part is 2"),
        (PARENT, np.array([0, 1, 1, 4, 1]), "exactly where part is 2"),
        (PARENT, np.array([0, 0, 1, 4, 0]), "exactly where part is 2"),
        (np.array([-1, -1, 0, 5, 0]), VIEW, "must name rows that are no views themselves"),
        (np.array([-1, -1, 0, 2, 0]), VIEW, "must name rows that are no views themselves"),
        (PARENT, np.array([0, 0, 1, 6, 1]), "view has values above 5"),
    ],
)
def test_views_name_their_parents(parent, view, problem):
    message = views.wrong(PART, parent, view)
    assert problem in message if problem else message == ""


def test_views_of_a_sample_come_in_their_order():
    assert views.VIEWS == {"paraphrase": 1, "perturbed": 2, "refusal": 3, "neighbour": 4, "alternate": 5}
    parent, view = np.array([2, -1, -1, 1, 2, 1, 2]), np.array([1, 0, 0, 1, 1, 3, 1])
    assert views.of("paraphrase", parent, view, 7).tolist() == [
        [-1] * 3, [3, -1, -1], [0, 4, 6], [-1] * 3, [-1] * 3, [-1] * 3, [-1] * 3,
    ]  # fmt: skip
    assert views.of("refusal", parent, view, 2).tolist() == [[-1], [5]]
    assert views.of("perturbed", parent, view, 3).shape == (3, 0)
    assert views.of("perturbed", None, None, 3).shape == (3, 0)


# ---------------------------------------------------------------- tables of a comparison


def test_tables_of_a_comparison_are_read_as_numbers_and_text(tmp_path):
    path = tmp_path / "ranks.csv"
    path.write_text("metric,method,distance,best,worst,methods,ahead\nauc,ga,-0.5,1,,3,0\nauc,npo,0,2,2,3,1\n")
    first, second = verdicts.read(path, verdicts.RANKS)
    assert (first["metric"], first["method"], first["distance"], first["best"]) == ("auc", "ga", -0.5, 1.0)
    assert np.isnan(first["worst"])
    assert second["distance"] == 0.0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the columns are not metric, method, distance, best, worst, methods, ahead"),
        ("metric,method\n", "the columns are not metric, method, distance, best, worst, methods, ahead"),
        (
            "metric,method,distance,best,worst,methods,ahead\na,b,1,1,1,1,0\na,b,1,x,1,1,0\n",
            "'x'",
        ),
        ("metric,method,distance,best,worst,methods,ahead\na,b,1,1\n", "argument 2 is shorter"),
    ],
)
def test_a_wrong_table_of_a_comparison_is_told(tmp_path, text, problem):
    (tmp_path / "ranks.csv").write_text(text)
    with pytest.raises(ArtifactError, match=f"ranks.csv: this file is damaged.*{problem}"):
        verdicts.read(tmp_path / "ranks.csv", verdicts.RANKS)
