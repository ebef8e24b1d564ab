"""A long training says in its log how far it is, and a short one nothing."""

import itertools

from unlearning_audit.training import heartbeat

from stack_cases import RECIPE, mlp, trained


def test_a_fit_says_where_it_is(monkeypatch, capsys):
    ticks = itertools.count(step=30.0)
    monkeypatch.setattr(heartbeat, "monotonic", lambda: next(ticks))
    trained(mlp, recipe=RECIPE.model_copy(update={"epochs": 2}))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("train: model")
    assert lines[0].endswith("of 8, epoch 1 of 2, step 2 of 6, after 1 min"), lines[0]
    assert any("epoch 2 of 2" in line for line in lines)
