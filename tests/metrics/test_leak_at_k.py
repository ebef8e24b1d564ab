"""What the best of k sampled answers leaks: by hand, by sampling, and where greedy decoding sees nothing."""

from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit.evaluation.reference import LOGP, RANK
from unlearning_audit.metrics import leak_at_k, memorisation

import metric_calls as call
import text_row_cases
from text_row_cases import SETTINGS, by_name, check


def test_two_tokens_by_hand():
    """Half and half: one answer says .5 of the first, .25 of both; two say .75 and .4375."""
    logp = np.log(np.array([[[0.5, 0.5]]]))
    for answers, share, whole in ((1, 0.375, 0.25), (2, (0.75 + 0.4375) / 2, 0.4375)):
        actual = leak_at_k.leaks(logp, answers)
        assert [leak.item() for leak in actual] == pytest.approx([share, whole])


def test_certain_and_impossible_texts_and_texts_without_tokens():
    logp = np.array([[[0.0, 0.0, np.nan], [-np.inf, 0.0, np.nan], [np.nan] * 3]])
    share, whole = leak_at_k.leaks(logp, 128)
    assert share[0, :2].tolist() == whole[0, :2].tolist() == [1.0, 0.0]
    assert np.isnan([share[0, 2], whole[0, 2]]).all()


@pytest.mark.parametrize("answers", [1, 3, 16])
def test_the_expectation_is_that_of_sampled_answers(answers):
    """20,000 times so many answers, each token right with its probability until the first that is wrong."""
    rng = np.random.default_rng(answers)
    p = np.array([0.9, 0.3, 0.8, 0.6])
    right = rng.random((20_000, answers, 4)) < p
    best = np.cumprod(right, axis=-1).sum(-1).max(-1) / 4
    share, whole = leak_at_k.leaks(np.log(p)[None, None], answers)
    for values, expected in ((best, share.item()), (best == 1, whole.item())):
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(len(values))


def test_it_sees_what_greedy_decoding_does_not():
    """Another first guess by a hair: no token is said by heart, and yet one of a hundred answers says all."""
    four = np.zeros((1, 1, 3, 4))
    four[..., LOGP], four[..., RANK] = np.log(0.45), 1
    assert memorisation.exact(four[..., RANK]).item() == 0
    assert leak_at_k.leaks(four[..., LOGP], 128)[1].item() > 0.99


def test_rows_and_what_decides():
    case = text_row_cases.case()
    settings = SETTINGS | {"metrics": {"leak_at_k": {"answers": [2, 8]}}}
    table = call.rows(leak_at_k, case, settings)
    for k in (2, 8):
        rows = by_name([replace(row, rule="") for row in table if row.rule == f"{k} answers"])
        unlearned, retrained = (leak_at_k.leaks(case.said[(name,)][..., LOGP], k) for name in ("own", "retrained"))
        for name, audited, reference in zip(("leak_at_k", "whole_at_k"), unlearned, retrained, strict=True):
            check(case, rows, name, audited, ("forget", "heldout"))
            check(case, rows, f"{name}_gap", audited - reference, ("forget", "heldout"))
    case.data.y = np.zeros(len(case.data.part), int)
    (part,) = leak_at_k.effects(case, leak_at_k.Options(answers=(2, 8))).values()
    expected = leak_at_k.leaks(case.said[("own",)][..., LOGP], 8)[0]
    means = [expected[model, list(rows)].mean() for model, rows in text_row_cases.FORGET.items()]
    assert sorted(part.value[0]) == pytest.approx(sorted(means))
