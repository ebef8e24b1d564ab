"""Metrics of a user's own: under any name, several times with other options, deciding, and failing in a sentence."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t
from unlearning_audit.evaluation import measuring as script
from unlearning_audit.evaluation.cohort import Targets
from unlearning_audit.evaluation.effects import DecisionRule, single
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.rows import Failure
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity, name_in_study, renamed

OWN = """
import numpy as np
from unlearning_audit.metrics import DecisionRule, Quantity, Settings, row, single, stats

QUANTITIES = (Quantity(""), Quantity("draw"))

class Options(Settings):
    shift: float = 0.0

def rows(evaluation, options, rng):
    values = evaluation.targets.phi.mean(axis=1) + options.shift
    draw = stats.empty(n=0, note=str(rng.random()))
    return [row(estimate=stats.mean_interval(values=values)), row(metric="draw", estimate=draw)]

def effects(evaluation, options):
    rule = DecisionRule(1, "0.5", ideal=0.0)
    return {"": single(value=evaluation.targets.phi.mean(axis=1), unit=evaluation.targets.block, rule=rule)}
"""


class Known(Evaluation):
    """A case of four models, two to a pair, whose φ is the number of the model."""

    targets = target = None
    membership = SimpleNamespace(seed=range(4), copied=None)

    def __init__(self):
        super().__init__("", [], [], [], seed=3)
        logits = np.zeros((4, 2, 2), np.float32)
        logits[:, :, 0] = np.arange(4)[:, None]
        sides = np.array([[True, False]] * 4)
        self.targets = Targets(
            logits, np.zeros(2, int), sides, ~sides, ~sides & sides, np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
        )


def evaluated(path, text, key="mine", **options):
    path.write_text(text)
    numbers = script.evaluate(key, {"name": key, "options": options}, str(path), Known(), {})
    return numbers.rows, numbers.effects


def test_a_metric_is_called_as_the_study_calls_it_and_decides(tmp_path):
    (mean, draw), parts = evaluated(tmp_path / "mine.py", OWN)
    assert (mean.metric, mean.value, mean.n, draw.metric) == ("mine", pytest.approx(1.5), 4, "draw")
    assert list(parts) == ["mine"]
    np.testing.assert_allclose(parts["mine"].value, [[0, 1, 2, 3]])
    assert (parts["mine"].unit.tolist(), parts["mine"].rule.margin) == ([0, 0, 1, 1], "0.5")


def test_the_same_file_twice_with_other_options_gives_other_names(tmp_path):
    (mean, draw), parts = evaluated(tmp_path / "mine.py", OWN, "other", shift=1.0)
    assert (mean.metric, mean.value, draw.metric, list(parts)) == ("other", pytest.approx(2.5), "other.draw", ["other"])
    (_, again), _ = evaluated(tmp_path / "mine.py", OWN, "other")
    (_, first), _ = evaluated(tmp_path / "mine.py", OWN)
    assert draw.note == again.note != first.note, "the generator is keyed by the name"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("return [row", "return rng, [row", "mine.py: rows must return a list of Row, it returned tuple"),
        ('return {"": single', 'return "", {"": single', "mine.py: effects must map names to Effect, it"),
        ('{"": single(', '{"": 1, "x": single(', "mine.py: effects must map names to Effect, it returned dict"),
        ("DecisionRule(1,", "DecisionRule(2,", "mine.py line 16, in effects: ValueError: direction is 2, but must"),
        ('row(metric="draw"', 'row(metric="q"', "mine.py: rows may not be called 'q', a name of the library's own"),
        ('row(metric="draw"', 'row(metric="new"', "mine.py: QUANTITIES must declare 'new', a row's name; it has"),
        ("options.shift", "options.shaft", "mine.py line 11, in rows: AttributeError: 'Options' object has no attr"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_no_number(tmp_path, old, new, sentence):
    assert old in OWN
    (failure,), parts = evaluated(tmp_path / "mine.py", OWN.replace(old, new))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.name, parts) == ("metric", "mine", {})
    assert sentence in failure.sentence
    if new == "options.shaft":  # a raise is kept with its file, line and calls
        assert failure.file.endswith("mine.py")
        assert (failure.line, "shaft" in failure.traceback) == (11, True)


VALUE = """
from unlearning_audit.metrics import DecisionRule

RULE = DecisionRule(direction=-1, margin="0.5")

def value(models):
    return models.phi.mean(axis=1)
"""


def test_a_number_that_is_said_once_is_row_and_effect(tmp_path):
    (mean,), effects = evaluated(tmp_path / "mine.py", VALUE)
    # Two blocks whose means are 1/2 and 5/2: t₁ · √2 · ½ · √2 on either side of 3/2.
    assert (mean.metric, mean.value, mean.n) == ("mine", pytest.approx(1.5), 4)
    half = t.ppf(0.975, 1) * np.std([0.5, 2.5], ddof=1) / np.sqrt(2)
    assert (mean.ci_low, mean.ci_high) == pytest.approx((1.5 - half, 1.5 + half))
    np.testing.assert_allclose(effects["mine"].value, [[0, 1, 2, 3]])
    assert (effects["mine"].unit.tolist(), effects["mine"].rule.direction) == ([0, 0, 1, 1], -1)
    assert evaluated(tmp_path / "other.py", VALUE.replace("RULE", "NO_RULE"), "mine") == ([mean], {})


def test_a_metric_gets_the_signals_that_it_names(tmp_path, monkeypatch):
    (tmp_path / "lengths.py").write_text("def measure(x): return x.norm(dim=1)\n")
    signal = np.arange(8.0).reshape(4, 2)
    monkeypatch.setattr(Known, "signal", lambda self, name, files, models, rows: {"lengths": signal}[name][:, rows])
    text = 'NEEDS = "lengths"\ndef value(lengths, models): return lengths[models.forget]\n'
    assert evaluated(tmp_path / "mine.py", text)[0][0].value == signal[:, 0].mean()


def test_one_model_has_a_number_without_limits():
    one = {"value": np.ones(1), "unit": np.zeros(1, int), "rule": DecisionRule(1, "0.5")}
    assert np.isnan(single(**one).estimate().low)
    of_samples = single(**one, influence=np.array([[0.1, -0.1]])).estimate()
    assert of_samples.low < 1 < of_samples.high


@pytest.mark.parametrize("wrong", ["models.phi", "models.phi.mean()", "models.phi.mean(axis=1) / 0", "None"])
def test_a_metric_gives_one_finite_number_for_each_model(tmp_path, wrong):
    (failure,), effects = evaluated(tmp_path / "mine.py", VALUE.replace("models.phi.mean(axis=1)", wrong))
    assert "value must return an array of 4 finite numbers, one for each model, it returned" in failure.sentence
    assert not effects


def test_names_stand_before_quantities_only_where_the_file_is_called_otherwise():
    assert [name_in_study(*names) for names in (("", "a", "b"), ("q", "a", "a"), ("q", "a", "b"))] == ["a", "q", "a.q"]
    record = Quantity(
        "gap", "Gap", columns=(Column(1, "gap"),), comparisons=(Comparison("gap", per_model="of_seed", attack="x"),)
    )
    assert renamed(record, "a", "a") == record
    result = renamed(record, "my_tail", "a")
    assert (result.name, result.label, result.columns[0].head) == ("my_tail.gap", "Gap (my tail)", "gap (my tail)")
    assert (result.comparisons[0].name, result.comparisons[0].per_model) == ("gap (my tail)", "my_tail.of_seed")
    (bare,) = renamed(Quantity("mean_gap", columns=(Column(1),)), "my_tail", "a").columns
    assert bare.head == "mean gap (my tail)"


def test_a_file_without_options_and_labels_has_none(tmp_path):
    path = tmp_path / "least.py"
    path.write_text("def rows(evaluation, options, rng):\n    return []\n")
    assert registry.options("metrics", "least", str(path)).model_fields == {}
    assert [quantity.name for quantity in registry.quantities("least", str(path), "mine")] == ["mine"]
