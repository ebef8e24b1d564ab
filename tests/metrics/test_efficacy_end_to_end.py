"""Efficacy from a study's text to its numbers, by the functions of the scripts, in one process and in seconds."""

import numpy as np
import pytest
from unlearning_audit.attacks import art
from unlearning_audit.evaluation import rows as rows_of
from unlearning_audit.evaluation.arrays import Data, Logits, Membership
from unlearning_audit.evaluation.reference import Reference
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.store import tables
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

from stage_runs import run

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


@pytest.mark.parametrize(("method", "form", "members"), FORMS)
def test_the_attack_on_a_model_learns_from_its_own_rows(cases, method, form, members):
    """Members: what it still holds, and for originals in another form all that they saw; non-members: the test part."""
    case, membership, data, folder = cases[method]
    logits, test, expected = Logits.read(folder / case.unlearned[0]).logits, data.part == 1, []
    for model, member in enumerate(getattr(membership, members)):
        rows, forget = np.flatnonzero(member | test), membership.forget[model]
        reference = Reference(logits[model][None, rows], data.y[rows], member[None, rows], test[None, rows])
        options, rng = art.Options(model="lr", rows=None), generator(0, "attack", "art", form, model)
        value, _ = art.score(logits[model][None, forget], data.y[forget], reference, options, rng)
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
