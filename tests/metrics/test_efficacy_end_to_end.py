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
        "recipe": {"epochs": 15, "lr": 0.2, "batch_size": 32, "record_updates": True},
        "protocol": {"name": "efficacy", "target_class": 3, "models_per_block": 6, "fraction": 0.5},
        "methods": {"none": {}, "retrain": {"same_start": True}, "amnesiac": {}},
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


def rows_of_models(case, folder, metric) -> np.ndarray:
    """The metric's value of every model."""
    rows = rows_of.read(folder / case.metrics)
    return np.array([row.value for row in rows if row.metric == metric and row.model is not None])


def gradients(weights, model, x, y):
    """The gradient of log p of the label ``y`` by all parameters of one model, float64, by a plain forward pass."""
    import torch

    names = sorted(name for name in weights if name[0].isdigit())
    flat = [weights[name][model].requires_grad_() for name in names]
    h = torch.from_numpy(x).float().flatten() / (255 if x.dtype == np.uint8 else 1)
    for i in range(0, len(flat), 2):  # biases come before weights
        h = flat[i + 1] @ (h if i == 0 else h.relu()) + flat[i]
    return torch.cat([g.flatten() for g in torch.autograd.grad(h.log_softmax(0)[y], flat)]).double()


@pytest.mark.parametrize("method", ["none", "amnesiac"])
def test_information_is_that_of_a_plain_loop_over_samples(cases, method):
    from safetensors.torch import load_file

    case, membership, data, folder = cases[method]
    weights = load_file((folder / case.unlearned[0]).with_name("models.safetensors"))
    information, bound = (rows_of_models(case, folder, name) for name in ("information", "efficacy_upper_bound"))
    for model, forget in enumerate(membership.forget):
        vectors = [gradients(weights, model, data.x[row], data.y[row]) for row in np.flatnonzero(forget)]
        mean = sum(vectors) / len(vectors)
        assert information[model] == pytest.approx(np.mean([float(v @ v) for v in vectors]), rel=1e-4)
        assert bound[model] == pytest.approx(1 / float(mean @ mean), rel=1e-3)


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
