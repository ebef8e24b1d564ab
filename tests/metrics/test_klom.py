"""KLOM of unlearned models and its null: which models are held against which, by the statistic itself."""

import numpy as np
import pytest
from unlearning_audit.metrics import _klom, competition
from unlearning_audit.stats import klom

OPTIONS = competition.Options()
DRAW = np.random.default_rng(0).normal
U, R, CONTROL = DRAW(1, 1, (12, 9)), DRAW(0, 1, (12, 9)), DRAW(0, 1, (12, 9))


def mean(u, r, **bins):
    return klom.divergence(margin=u, reference=r, **bins).mean()


@pytest.mark.parametrize(
    ("independent", "reference", "control"),
    [(None, R[:6], R[6:]), (CONTROL, R[:6], CONTROL[:6])],
    ids=["halves", "others"],
)
def test_unlearned_models_and_others_are_held_against_the_same_retrained_ones(independent, reference, control):
    values = {row.metric: row.value for row in _klom.rows(U, R, independent, OPTIONS)}
    assert values["klom"] == pytest.approx(mean(U[:6], reference))
    assert values["klom_null"] == pytest.approx(mean(control, reference))
    sides = (U[:6], R[:6], R[6:]) if independent is None else (U, R, CONTROL)
    coarse = [mean(side, sides[1], **_klom.DECIDING) for side in (sides[0], sides[2])]
    assert [values["klom_coarse"], values["klom_coarse_null"]] == pytest.approx(coarse)
    assert values["klom_over_null"] == pytest.approx(coarse[0] - coarse[1])


@pytest.mark.parametrize(("retrained", "independent"), [(R[:5], None), (R, CONTROL[:2])])
def test_two_models_of_a_kind_say_nothing(retrained, independent):
    assert _klom.rows(U, retrained, independent, OPTIONS) == []
    assert _klom.contributions(U, retrained, independent, np.arange(9), OPTIONS) == {}
