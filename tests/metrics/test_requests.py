"""Sequences of requests: how they are drawn, and how they are read one by one."""

from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit.evaluation import scoring
from unlearning_audit.evaluation.arrays import Logits, Membership
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import requests, swap
from unlearning_audit.plugins import registry
from unlearning_audit.protocols import one_run
from unlearning_audit.protocols import swap as swap_protocol
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.store import tables

import metric_calls as call
from row_places import about
from ruli_cases import data

SETTINGS = {
    "metrics": {"swap": {}, "requests": {}},
    "paper_set": ["correctness"],
    "adaptive_set": ["correctness"],
    "seed": 0,
    "bootstrap": 200,
}


def draw(protocol=swap_protocol, **options):
    settings = protocol.Options(**({"alpha": 0.25} if protocol is not one_run else {}), **options)
    (population,) = protocol.blocks(settings)
    return protocol.draw(0, population, data(), settings, 1)


# ---------------------------------------------------------------- memberships


def test_the_newest_request_is_the_last_that_was_made():
    nobody = np.zeros((1, 5), bool)
    forget, request = np.array([[True, True, True, False, False]]), np.array([[1, 2, 2, 3, 0]])
    member = Membership(~nobody, forget, nobody, *np.zeros((3, 1), np.int64), nobody[:, 0], request=request)
    assert (member.request_count, replace(member, request=None).request_count) == (2, 1)
    assert member.newest.tolist() == [[False, True, True, False, False]]
    assert member.queries.tolist() == [[True, True, True, True, False]]
    assert replace(member, request=None).newest is forget


def test_every_request_is_swapped_between_the_splits_of_a_pair():
    member = draw(requests=3, models_per_split=1)
    first, second = np.flatnonzero(~member.shadow)
    for request in range(1, 4):
        part = member.part(request)
        np.testing.assert_array_equal(part.forget[first], part.heldout[second])
        np.testing.assert_array_equal(part.heldout[first], part.forget[second])


def test_what_was_asked_so_far_grows_by_one_request_at_a_time(tmp_path):
    whole = draw(requests=3)
    before = np.zeros_like(whole.forget)
    for request in range(1, 4):
        member = whole.until(request)
        member.write(tmp_path / f"{request}.npz")
        member = Membership.read(tmp_path / f"{request}.npz")
        assert member.request_count == request
        np.testing.assert_array_equal(member.newest, member.forget & ~before)
        np.testing.assert_array_equal(member.train, whole.train)
        np.testing.assert_array_equal(member.newest, whole.part(request).forget)
        before = member.forget
    np.testing.assert_array_equal(before, whole.forget)
    assert len({tuple(whole.until(request).unlearning_seeds()) for request in range(1, 4)}) == 3


def test_canaries_of_later_requests_are_no_pairs_yet():
    whole = draw(one_run, canaries=30, requests=3)
    for request in range(1, 4):
        member = whole.until(request)
        assert (member.pair >= 0).sum() == 20 * request
        assert sorted(np.unique(whole.part(request).pair[whole.part(request).pair >= 0])) == list(
            range(10 * request - 10, 10 * request)
        )


def test_canaries_must_be_divided_among_the_requests():
    with pytest.raises(ValueError, match=r"canaries \(30\) must be a multiple of requests \(4\)"):
        one_run.Options(canaries=30, requests=4)


# ---------------------------------------------------------------- numbers


def looked_up(tmp_path, whole, request):
    """A case of models that are look-up tables: right on what they keep, wrong on all else."""
    member, y = whole.until(request), data().y
    folder = tmp_path / str(request)
    folder.mkdir()
    data().write(folder / "data.npz")
    member.write(folder / "splits.npz")
    for name, mask in (("original", member.train), ("unlearned", member.retain)):
        logits = np.zeros((*mask.shape, 2), np.float32)
        np.put_along_axis(logits, np.broadcast_to(y, mask.shape)[..., None], np.where(mask, 9, -9)[..., None], -1)
        Logits(logits.astype(np.float32), np.arange(len(y)), y).write(folder / f"{name}.npz")
    paths = [str(folder / f"{name}.npz") for name in ("data", "splits", "original", "unlearned")]
    case = Evaluation(paths[0], *[[path] for path in paths[1:]])
    attack = {"name": "correctness", "options": {}}
    columns = list(scoring.scored(case, "correctness", registry.load("attacks", "correctness"), attack, 0))
    tables.write_scores(folder / "scores.parquet", {k: np.concatenate([c[k] for c in columns]) for k in columns[0]})
    return replace(case, scores_file=str(folder / "scores.parquet"))


def value(rows, metric, setting, attack=""):
    (row,) = [r for r in rows if (r.metric, about(r), r.attack) == (metric, setting, attack)]
    return row.value


@pytest.mark.parametrize("request_made", [1, 2, 3])
def test_look_up_tables_know_what_was_not_asked_yet_and_nothing_else(tmp_path, request_made):
    whole = draw(requests=3)
    case = looked_up(tmp_path, whole, request_made)
    rows = call.rows(requests, case, SETTINGS)
    for request in (1, 2, 3):
        expected = float(request > request_made)
        for form in ("trained", "unlearned"):
            assert value(rows, "advantage", f"request={request}", f"correctness/{form}") == expected
        assert value(rows, "q", f"request={request}", "adaptive") == 1 - expected
        assert value(rows, "accuracy", f"request={request};role=forget") == expected
        assert value(rows, "accuracy", f"request={request};role=heldout") == 0.0
    assert value(call.rows(swap, case, SETTINGS), "advantage", "", "correctness/trained") == 0.0


def test_the_numbers_of_one_request_among_several_are_those_of_a_game_with_it_alone(tmp_path):
    case = looked_up(tmp_path, draw(requests=3), 3)
    member = case.membership[case.target]
    alone = swap.read(call.with_settings(case, SETTINGS), member.part(2), generator(SETTINGS["seed"], "swap"))
    rows = call.rows(requests, case, SETTINGS)
    assert value(rows, "q", "request=2", "extended") == value(alone, "q", "", "extended")


def test_canaries_are_audited_request_by_request(tmp_path):
    members = [
        one_run.draw(b, "models", data(), one_run.Options(canaries=60, models=4, requests=3), 1) for b in range(4)
    ]
    case = looked_up(tmp_path, Membership.concatenate([replace(m, shadow=m.shadow) for m in members]), 2)
    rows = call.rows(requests, replace(case, scores_file=None), SETTINGS)
    assert {about(row) for row in rows if row.metric == "right_guesses"} == {"request=1", "request=2"}
    # Both canaries of a pair are equally wrong: the pair ties, and pairs that tie abstain.
    assert np.isnan(value(rows, "right_guesses", "request=1", "phi"))
    assert value(rows, "one_run_p", "request=1", "phi") == 1


@pytest.mark.parametrize("request_made", [1, 2])
def test_every_request_that_was_made_may_decide_by_itself(tmp_path, request_made):
    case = call.with_settings(looked_up(tmp_path, draw(requests=3), request_made), SETTINGS)
    assert requests.contributions(case, requests.Options()) == {}
    parts = requests.contributions(case, requests.Options(decides=True))
    assert list(parts) == [f"advantage_request_{i + 1}" for i in range(request_made)]
    assert [part.value.max() for part in parts.values()] == [0.0] * request_made
    whole = swap.contributions(case, swap.Options())["advantage"]
    member = case.membership[case.target]
    for i, part in enumerate(parts.values()):
        assert part.standard == swap.DECIDES["advantage"]
        assert (
            part.index.tolist()
            == np.flatnonzero((member.part(i + 1).forget | member.part(i + 1).heldout).any(axis=0)).tolist()
        )
        assert set(part.index.tolist()) <= set(whole.index.tolist())


def test_a_request_that_is_still_known_is_found_by_itself(tmp_path):
    """Scores that know the first of three requests: its own advantage is 1, and .33 that of all together."""
    case = call.with_settings(looked_up(tmp_path, draw(requests=3), 3), SETTINGS)
    member = case.membership[case.target]
    first = member.part(1).forget
    knows = {("mine", "trained"): (first * 1.0, first)}
    case.__dict__["scores"] = knows
    parts = requests.contributions(case, requests.Options(decides=True))
    assert [part.value.mean() for part in parts.values()] == [1.0, 0.0, 0.0]
    assert swap.contributions(case, swap.Options())["advantage"].value.mean() == pytest.approx(1 / 3)


def test_requests_that_only_the_control_was_asked_about_decide_nothing(tmp_path):
    case = call.with_settings(looked_up(tmp_path, draw(requests=3), 3), SETTINGS)
    first = case.membership[case.target].part(1).forget
    case.__dict__["scores"] = {("random", "trained"): (first * 1.0, first)}
    assert requests.contributions(case, requests.Options(decides=True)) == {}
