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

from row_places import about
from stage_runs import run

METHODS = ("none", "initial", "retrain", "fisher", "fisher_becker", "amnesiac")
STUDY = {
    "study": "tiny",
    "defaults": {
        "data": {"name": "digits", "per_class": 20, "test_size": 150},
        "model": {"name": "mlp", "hidden": [16]},
        "recipe": {"epochs": 15, "lr": 0.2, "batch_size": 32, "record_updates": True},
        "protocol": {"name": "efficacy", "target_class": 3, "models_per_block": 6},
        "methods": {
            "none": {}, "initial": {}, "retrain": {"same_start": True}, "fisher": {},
            "fisher_becker": {"name": "fisher", "variant": "becker"}, "amnesiac": {},
        },
        "attacks": {"art": {"model": "lr", "rows": None}},
        "controls": False,
    },
    "scenarios": {
        "shares": {"vary": {"protocol.fraction": [0.05, 0.5, 1.0]}},
        "whole_batches": {"recipe": {"batch_size": 200}, "methods": ["none", "initial", "amnesiac"], "attacks": []},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """(scenario, fraction, method) → (case, folder), all made."""
    folder = tmp_path_factory.mktemp("run")
    whole = plan.make(reading.read(STUDY, "study.yaml"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(whole)
    return {(c.scenario.name, c.scenario.axes.get("fraction", ""), c.method): (c, folder) for c in whole.cases}


def numbers(cases, *key) -> dict[tuple[str, str], dict]:
    """(metric, setting) → row."""
    case, folder = cases[key]
    return {(r.metric, about(r)): r for r in rows_of.read(folder / case.metrics)}


def of_models(rows, metric) -> np.ndarray:
    """The metric's value of every model."""
    return np.array([row.value for (name, setting), row in rows.items() if name == metric and "model=" in setting])


FRACTIONS = ("0.05", "0.5", "1")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_the_upper_bound_is_no_smaller_than_efficacy_for_any_model(cases, fraction, method):
    rows = numbers(cases, "shares", fraction, method)
    value, bound = (of_models(rows, name) for name in ("efficacy", "efficacy_upper_bound"))
    assert value.shape == bound.shape == (6,)
    assert (bound >= value).all()
    assert rows["efficacy_median", ""].value == pytest.approx(np.median(value))
    if fraction == "0.05":  # one sample: its gradient is the mean gradient
        np.testing.assert_allclose(bound, value, rtol=1e-4)
    else:
        assert (bound > value).all()


@pytest.mark.parametrize("method", ["none", "amnesiac"])
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_information_is_that_of_a_plain_loop_over_samples(cases, fraction, method):
    import torch
    from safetensors.torch import load_file

    case, folder = cases["shares", fraction, method]
    data, membership = Data.read(folder / case.data), Membership.read(folder / case.splits[0])
    weights = load_file((folder / case.unlearned[0]).with_name("models.safetensors"))
    value = of_models(numbers(cases, "shares", fraction, method), "information")
    bound = of_models(numbers(cases, "shares", fraction, method), "efficacy_upper_bound")
    for model in range(6):
        layers = [
            (weights[f"{i}.weight"][model].requires_grad_(), weights[f"{i}.bias"][model].requires_grad_())
            for i in sorted({int(n.split(".")[0]) for n in weights if n[0].isdigit()})
        ]
        flat = [parameter for layer in layers for parameter in layer]
        rows = np.flatnonzero(membership.forget[model])
        total, mean = 0.0, 0.0
        for row in rows:
            h = torch.from_numpy(data.x[row]).float().flatten()
            h = h / 255 if data.x.dtype == np.uint8 else h
            for i, (weight, bias) in enumerate(layers):
                h = weight @ h + bias
                h = h.relu() if i < len(layers) - 1 else h
            gradient = torch.autograd.grad(h.log_softmax(0)[data.y[row]], flat)
            gradient = torch.cat([g.flatten() for g in gradient]).double()
            total, mean = total + float(gradient @ gradient), mean + gradient / len(rows)
        assert value[model] == pytest.approx(total / len(rows), rel=1e-4)
        assert bound[model] == pytest.approx(1 / float(mean @ mean), rel=1e-3)


def test_as_many_of_the_class_are_forgotten_as_the_fraction_says(cases):
    for fraction, count in zip(FRACTIONS, (1, 10, 20), strict=True):
        case, folder = cases["shares", fraction, "none"]
        data, membership = Data.read(folder / case.data), Membership.read(folder / case.splits[0])
        first = np.flatnonzero((data.part == 0) & (data.y == 3))[:count]
        assert all(np.array_equal(np.flatnonzero(forget), first) for forget in membership.forget)
        left = membership.retain[0] & (data.y == 3)
        assert left.sum() == 20 - count


FORMS = [("none", "own", "retain"), ("none", "seen", "train"), ("retrain", "own", "retain")]


@pytest.mark.parametrize(("method", "form", "members"), FORMS)
def test_the_attack_on_a_model_learns_from_its_own_rows(cases, method, form, members):
    """Members: what it still holds, and for originals in another form all that they saw; non-members: the test part."""
    case, folder = cases["shares", "0.5", method]
    data, membership = Data.read(folder / case.data), Membership.read(folder / case.splits[0])
    logits = Logits.read(folder / case.unlearned[0]).logits
    test = data.part == 1
    expected = []
    for model in range(6):
        member = getattr(membership, members)[model]
        rows = np.flatnonzero(member | test)
        reference = Reference(logits[model][None, rows], data.y[rows], member[None, rows], test[None, rows])
        forget = np.flatnonzero(membership.forget[model])
        value, _ = art.score(
            logits[model][None, forget], data.y[forget], reference, art.Options(model="lr", rows=None),
            generator(0, "attack", "art", form, model),
        )  # fmt: skip
        expected.append(value[0])
    scores = tables.read_scores(folder / case.scores)
    assert list(scores) == [("art", variant) for name, variant, _ in FORMS if name == method]
    np.testing.assert_array_equal(scores["art", form]["score"].reshape(6, -1), np.array(expected))
    assert set(scores["art", form]["role"]) == {"forget"}
    rows = rows_of.read(folder / case.metrics)
    probabilities = [r for r in rows if (r.metric, r.attack) == ("attack_probability", f"art/{form}")]
    np.testing.assert_allclose([r.value for r in probabilities if about(r)], np.mean(expected, axis=1), rtol=1e-12)
    assert next(r for r in probabilities if not about(r)).value == pytest.approx(np.mean(expected))
