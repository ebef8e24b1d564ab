"""A long training says in its log how far it is, and a short one nothing."""

import itertools

import numpy as np
import pytest
from unlearning_audit.training import heartbeat
from unlearning_audit.training.recipe import Privacy
from unlearning_audit.training.streams import Rows

from bank_cases import RECIPE, SEEDS, fresh, masks, mlp, trained


@pytest.fixture
def clock(monkeypatch):
    """Seconds that have passed, in a list of one; 0 at first."""
    seconds = [0.0]
    monkeypatch.setattr(heartbeat, "monotonic", lambda: seconds[0])
    return seconds


def test_lines_come_after_a_minute_and_ever_more_seldom(clock, capsys):
    beats = heartbeat.Heartbeat("train", 8, 30)
    minutes, printed = [], []
    for second in range(10 * 3600):
        clock[0] = float(second)
        beats.beat([0, 1], 11, 4, 71)
        if text := capsys.readouterr().out:
            minutes.append(second / 60)
            printed.append(text)
    assert minutes[:9] == list(range(1, 10))
    assert np.diff(minutes)[-5:] == pytest.approx(0.1 * np.array(minutes[-6:-1]), rel=0.01)
    assert printed[9] == "train: models 1 to 2 of 8, epoch 12 of 30, step 5 of 71, after 10 min\n"


def test_a_fit_says_where_it_is(monkeypatch, capsys):
    ticks = itertools.count(step=30.0)
    monkeypatch.setattr(heartbeat, "monotonic", lambda: next(ticks))
    trained(mlp, recipe=RECIPE.model_copy(update={"epochs": 2}))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("train: model")
    assert lines[0].endswith("of 8, epoch 1 of 2, step 2 of 6, after 1 min"), lines[0]
    assert any("epoch 2 of 2" in line for line in lines)


def test_a_short_fit_says_nothing(capsys):
    trained(mlp)
    assert capsys.readouterr().out == ""


def test_private_training_says_where_it_is(monkeypatch, capsys):
    ticks = itertools.count(step=30.0)
    monkeypatch.setattr(heartbeat, "monotonic", lambda: next(ticks))
    bank = fresh(mlp, recipe=RECIPE.model_copy(update={"epochs": 1, "dp": Privacy(epsilon=8.0)}))
    bank.train(Rows.where(masks(SEEDS)[0]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "private training: models 1 to 8 of 8, epoch 1 of 1, step 2 of 4, after 1 min"
