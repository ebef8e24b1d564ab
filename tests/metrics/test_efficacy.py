"""Efficacy by hand, the interval of a median, rows of a case, and an attack that learns from a model's own rows."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special
from unlearning_audit.attacks import art
from unlearning_audit.evaluation import rows as rows_of
from unlearning_audit.evaluation.arrays import Data, Logits, Membership
from unlearning_audit.evaluation.shadow import Shadow
from unlearning_audit.metrics import efficacy
from unlearning_audit.metrics.efficacy import evaluate
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.store import tables
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

import metric_calls as call
from row_places import about
from stage_runs import run

NORMS = np.array([[1.0, 3.0], [4.0, 4.0], [0.0, 16.0]])  # ι: 2, 4, 8


def over_models(norms, of_mean):
    """metric → row, without those of single models."""
    return {row.metric: row for row in evaluate(norms, np.array(of_mean)) if row.model is None}


def test_rows_are_means_deviations_and_medians_over_models():
    rng = np.random.default_rng(0)
    norms, of_mean = rng.exponential(size=(5, 7)), 0.1 * rng.random(5)
    truth, rows = norms.mean(axis=1), over_models(norms, of_mean)
    half = special.stdtrit(4, 0.975) * truth.std(ddof=1) / math.sqrt(5)
    assert {name: row.value for name, row in rows.items() if "information" not in name} == pytest.approx({
        "efficacy": (1 / truth).mean(), "efficacy_sd": (1 / truth).std(ddof=1), "efficacy_median": np.median(1 / truth),
        "efficacy_upper_bound": (1 / of_mean).mean(), "efficacy_upper_bound_sd": (1 / of_mean).std(ddof=1),
        "efficacy_upper_bound_median": np.median(1 / of_mean),
    })  # fmt: skip
    row = rows["information"]
    assert (row.value, row.ci_low, row.ci_high) == pytest.approx(truth.mean() + half * np.array([0, -1, 1]))
    assert {row.n for row in rows.values()} == {5}
    assert rows["efficacy_median"].note == "5 values are too few for a limit on one side"


def test_no_information_is_infinite_efficacy_and_is_named():
    rows = over_models(np.array([[0.0, 0.0], [1.0, 3.0], [2.0, 2.0]]), [0.0, 1.0, 2.0])
    assert rows["information"].value == pytest.approx(4 / 3)
    for name in ("efficacy", "efficacy_sd"):
        assert (math.isnan(rows[name].value), rows[name].n) == (True, 3)
        assert rows[name].note == "efficacy is infinite in 1 of 3 models"
    assert rows["efficacy_median"].value == 0.5
    assert over_models(NORMS, [0.0, 0, 1])["efficacy_upper_bound_median"].value == np.inf


def test_rounding_puts_no_bound_below_efficacy_and_gradients_that_cannot_be_are_refused():
    norms = np.array([[2.0, 2.0], [2.0, 2.0], [0.0, 0.0]])
    bounds = [row.value for row in evaluate(norms, np.array([1.0, 2.0019, 1e-31])) if row.model is not None]
    assert bounds[-3:] == [1, 0.5, np.inf]
    for wrong in (-norms, norms * np.nan):
        with pytest.raises(ValueError, match="negative or NaN"):
            evaluate(wrong, np.zeros(3))


def case(norms=NORMS, scores=None):
    """Three targets after a shadow model; each keeps samples 0 to 2, forgets 3 and 4, and is tested on 5 to 7."""
    number, part = np.arange(8), np.array([0, 0, 0, 0, 0, 1, 1, 1])
    forget, train = np.tile((number == 3) | (number == 4), (4, 1)), np.tile(part == 0, (4, 1))
    models = np.arange(4)
    member = Membership(train, forget, ~train, models, split=0 * models, block=0 * models, shadow=models == 0)
    y = number % 2
    right = np.array([
        [1, 1, 0, 1, 1, 1, 1, 1],
        [1, 1, 1, 0, 1, 1, 0, 0],
        [0, 1, 0, 0, 0, 1, 1, 0],
    ], bool)  # fmt: skip
    clean = np.where(number == 7, 0, y)  # of the test part, the truth counts; of what was taught, the labels that were
    guess = np.where(right, y, 1 - y)
    return SimpleNamespace(
        gradients=(norms, norms.mean(1) / 4), membership=member, target=~member.shadow, unlearned_files=["own"],
        scores=scores or {}, labels_of=lambda models: y,
        data=SimpleNamespace(part=part, y_clean=clean),
        outputs=lambda files: SimpleNamespace(predicted=lambda models: guess),
    )  # fmt: skip


def by_name(rows):
    table = {(row.attack, row.metric, about(row)): row for row in rows}
    assert len(table) == len(rows)
    return table


def test_rows_of_a_case():
    table = by_name(call.rows(efficacy, case(), {}))
    for metric, values in {"efficacy": [1 / 2, 1 / 4, 1 / 8], "efficacy_upper_bound": [2, 1, 1 / 2]}.items():
        assert [table["", metric, f"model={m}"].value for m in range(3)] == values
    row = table["", "information", "model=2"]
    np.testing.assert_array_equal([row.value, row.n, row.ci_low, row.ci_high], [8, 1, np.nan, np.nan])
    # shares that are right: retain 2/3, 1, 1/3; forget 1, 1/2, 0; test 2/3, 2/3, 1
    spread = {about(row): row.value for row in table.values() if row.metric == "accuracy_sd"}
    assert spread == pytest.approx({"role=retain": 1 / 3, "role=forget": 1 / 2, "role=test": math.sqrt(1 / 27)})
    assert not [metric for _, metric, _ in table if metric.startswith("attack_probability")]
    without = case()
    without.data.part, without.membership.forget[2] = np.zeros(8), False
    assert list(by_name(efficacy._accuracy_spread(without))) == [("", "accuracy_sd", "role=retain")]


def test_attacks_give_the_mean_probability_of_the_forgotten():
    score = np.full((3, 8), np.nan)
    score[:, 3:5] = [[0.0, 1.0], [0.5, 1.0], [0.25, 0.75]]
    example = case(scores={("a", "trained"): (score, score > 0)})
    table = by_name(call.rows(efficacy, example, {}))
    assert [table["a/trained", "attack_probability", f"model={m}"].value for m in range(3)] == [0.5, 0.75, 0.5]
    assert table["a/trained", "attack_probability", ""].value == pytest.approx(1.75 / 3)
    for wrong in (-0.1, 1.1, np.nan):
        score[1, 3] = wrong
        with pytest.raises(ValueError, match="outside"):
            call.rows(efficacy, example, {})


def test_effects_are_logarithms_of_every_model():
    part = call.parts(efficacy, case(), {})["efficacy"]
    np.testing.assert_allclose(part.value, -np.log([[2.0, 4, 8]]))
    assert part.unit.tolist() == [0, 1, 2]
    assert call.parts(efficacy, case(NORMS * [[1], [0], [1]]), {}) == {}


STUDY = {
    "study": "tiny",
    "defaults": {
        "data": {"name": "digits", "per_class": 20, "test_size": 150},
        "model": {"name": "mlp", "hidden": [16]},
        "recipe": {"epochs": 15, "lr": 0.2, "batch_size": 32},
        "protocol": {"name": "efficacy", "target_class": 3, "models_per_block": 6, "fraction": 0.5},
        "methods": {"none": {}, "retrain": {"same_start": True}},
        "attacks": {"art": {"model": "lr", "rows": None}},
        "controls": False,
    },
    "scenarios": {"share": {}},
}  # fmt: skip


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """method → (files of the case, its memberships, its data, folder), all made."""
    folder = tmp_path_factory.mktemp("run")
    whole = plan.make(reading.read(STUDY, "study.yaml"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(whole)
        return {
            case.method: (case, Membership.read(case.splits[0]), Data.read(case.data), folder) for case in whole.cases
        }


FORMS = [("none", "own", "retain"), ("none", "seen", "train"), ("retrain", "own", "retain")]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "form", "members"), FORMS)
def test_the_attack_on_a_model_learns_from_its_own_rows(cases, method, form, members):
    """Members: what it still holds, and for originals in another form all that they saw; non-members: the test part."""
    case, membership, data, folder = cases[method]
    logits, test, expected = Logits.read(folder / case.unlearned[0]).logits, data.part == 1, []
    for model, member in enumerate(getattr(membership, members)):
        rows, forget = np.flatnonzero(member | test), membership.forget[model]
        shadow = Shadow(logits[model][None, rows], data.y[rows], member[None, rows], test[None, rows])
        options, rng = art.Options(model="lr", rows=None), generator(0, "attack", "art", form, model)
        value, _ = art.score(logits[model][None, forget], data.y[forget], shadow, options, rng)
        expected.append(value[0])
    scores = tables.read_scores(folder / case.scores)
    assert list(scores) == [("art", variant) for name, variant, _ in FORMS if name == method]
    np.testing.assert_array_equal(scores["art", form]["score"].reshape(6, -1), np.array(expected))
    assert set(scores["art", form]["role"]) == {"forget"}
    probabilities = {
        row.model: row.value for row in rows_of.read(folder / case.metrics)
        if (row.metric, row.attack) == ("attack_probability", f"art/{form}")
    }  # fmt: skip
    of_models = dict(enumerate(np.mean(expected, axis=1)))
    assert probabilities == pytest.approx({None: np.mean(expected), **of_models})
