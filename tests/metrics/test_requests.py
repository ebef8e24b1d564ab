"""Sequences of requests: how they are drawn, and how they are read one by one."""

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import requests, swap
from unlearning_audit.protocols import one_run
from unlearning_audit.protocols import swap as swap_protocol

import metric_calls as call
from row_places import about, only
from ruli_cases import Folder, data

SETTINGS = {"paper_set": ["correctness"], "adaptive_set": ["correctness"], "seed": 0, "bootstrap": 200}


def draw(protocol=swap_protocol, **options):
    settings = protocol.Options(**({"alpha": 0.25} if protocol is not one_run else {}), **options)
    (population,) = protocol.blocks(settings)
    return protocol.draw(0, population, data(), settings, 1)


# ---------------------------------------------------------------- memberships


def test_canaries_of_later_requests_are_no_pairs_yet():
    whole = draw(one_run, canaries=30, requests=3)
    for request in range(1, 4):
        assert (whole.until(request).pair >= 0).sum() == 20 * request
        of_part = whole.of_request(request).pair
        assert np.unique(of_part[of_part >= 0]).tolist() == list(range(10 * request - 10, 10 * request))


# ---------------------------------------------------------------- numbers


def looked_up(tmp_path, whole, request):
    """A case of models that are look-up tables: right on what they keep, wrong on all else."""
    folder = Folder(tmp_path, [whole.until(request)])
    original = folder.add("original", lambda member: np.where(member.train, 40.0, -40.0))
    evaluation = folder.evaluation(
        original, folder.add("unlearned", lambda member: np.where(member.retain, 40.0, -40.0))
    )
    right = evaluation.membership[evaluation.target].retain
    vars(evaluation)["scores"] = {("correctness", form): (right * 1.0, right) for form in ("trained", "unlearned")}
    return call.with_settings(evaluation, SETTINGS)


@pytest.mark.parametrize("request_made", [1, 2, 3])
def test_look_up_tables_know_what_was_not_asked_yet_and_nothing_else(tmp_path, request_made):
    evaluation = looked_up(tmp_path, draw(requests=3), request_made)
    rows = call.rows(requests, evaluation, SETTINGS)
    for request in (1, 2, 3):
        place, known = f"request={request}", float(request > request_made)
        for form in ("trained", "unlearned"):
            assert only(rows, "advantage", place, f"correctness/{form}").value == known
        assert only(rows, "q", place, "adaptive").value == 1 - known
        assert only(rows, "accuracy", f"{place};role=forget").value == known
        assert only(rows, "accuracy", f"{place};role=heldout").value == 0.0
    assert only(call.rows(swap, evaluation, SETTINGS), "advantage", "", "correctness/trained").value == 0.0


def test_canaries_are_audited_request_by_request(tmp_path):
    options = one_run.Options(canaries=60, models=4, requests=3)
    members = [one_run.draw(block, "models", data(), options, 1) for block in range(4)]
    evaluation = looked_up(tmp_path, Membership.concatenate(members), 2)
    vars(evaluation)["scores"] = {}
    rows = call.rows(requests, evaluation, SETTINGS)
    assert {about(row) for row in rows if row.metric == "right_guesses"} == {"request=1", "request=2"}
    share = only(rows, "right_guesses", "request=1", "phi")
    assert share.n == 80
    assert share.ci_low <= 0.5 <= share.ci_high, "both canaries of a pair are equally wrong"


@pytest.mark.parametrize("request_made", [1, 2])
def test_every_request_that_was_made_may_decide_by_itself(tmp_path, request_made):
    evaluation = looked_up(tmp_path, draw(requests=3), request_made)
    assert requests.effects(evaluation, requests.Options()) == {}
    parts = requests.effects(evaluation, requests.Options(decides=True))
    assert list(parts) == [f"advantage_request_{i + 1}" for i in range(request_made)]
    member = evaluation.membership[evaluation.target]
    for i, part in enumerate(parts.values(), 1):
        assert (part.value.max(), part.rule) == (0.0, swap.DECIDES["advantage"])
        samples = (member.of_request(i).forget | member.of_request(i).heldout).any(axis=0)
        np.testing.assert_array_equal(part.index, np.flatnonzero(samples))


def test_a_request_that_is_still_known_is_found_by_itself_and_the_control_decides_nothing(tmp_path):
    """Scores that know the first of three requests: its own advantage is 1, and .33 that of all together."""
    evaluation = looked_up(tmp_path, draw(requests=3), 3)
    first = evaluation.membership[evaluation.target].of_request(1).forget
    vars(evaluation)["scores"] = {("mine", "trained"): (first * 1.0, first)}
    parts = requests.effects(evaluation, requests.Options(decides=True))
    assert [part.value.mean() for part in parts.values()] == [1.0, 0.0, 0.0]
    assert swap.effects(evaluation)["advantage"].value.mean() == pytest.approx(1 / 3)
    vars(evaluation)["scores"] = {("random", "trained"): (first * 1.0, first)}
    assert requests.effects(evaluation, requests.Options(decides=True)) == {}
