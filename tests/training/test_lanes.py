"""Lanes, the way of plain training on a GPU: what they leave is what the ordinary fit leaves. Without a GPU the same
lanes run their steps unrecorded, so that all but the recording itself is tested everywhere."""

import pytest
import torch
from unlearning_audit.plugins import registry
from unlearning_audit.training import lanes
from unlearning_audit.training.chunks import chunks, memory_is_exhausted
from unlearning_audit.training.fitting import Fit

from pretended_card import pretended
from slow_cases import slow
from stack_cases import RECIPE, SEEDS, conv, fit, fresh, home, largest_gap, mlp, same, trained, twins, unlearned


@pytest.mark.parametrize(("at_once", "schedule"), [("1", "cosine"), *slow(("3", "one_cycle"))])
@pytest.mark.parametrize(
    ("build", "backend", "augment"),
    [(mlp, "stacked", "none"), (conv, "serial", "crop_flip"), *slow((conv, "serial", "none"))],
)
def test_lanes_leave_what_the_ordinary_fit_leaves(monkeypatch, build, backend, augment, at_once, schedule):
    monkeypatch.setenv("UNLEARNING_IN_FLIGHT", at_once)
    recipe = RECIPE.model_copy(update={"schedule": schedule, "augment": augment})
    plain, laned = twins(build, optimiser=recipe, backend=backend, dtype=torch.float64)
    start = fresh(build, backend=backend, dtype=torch.float64)
    assert largest_gap(plain, laned) < 1e-12 < 1e-3 < largest_gap(start, laned)


# ---------------------------------------------------------------- memory that is measured


@pytest.mark.parametrize(("left", "expected"), [(115, 2), *slow((105, 1), (330, 3), (2000, 4))])
def test_as_many_lanes_as_the_card_holds(monkeypatch, caplog, left, expected):
    """The first lane takes 100 bytes; of those ``left``, others may take nine tenths. No number depends on it."""
    counts, admit, free = [], lanes.Scheduler.admit, iter([left + 100, left])

    def admitted(traffic):
        admit(traffic)
        counts.append(len(traffic.lanes))

    plain = fresh(conv, backend="serial", dtype=torch.float64)
    fit(plain).run()
    monkeypatch.setattr(lanes.Scheduler, "admit", admitted)
    with pretended():
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (next(free), 1 << 33))
        stack = fresh(conv, backend="serial", device="cuda", dtype=torch.float64)
        lanes.run(fit(stack))
        home(stack)
        monkeypatch.undo()
    assert largest_gap(plain, stack) < 1e-6
    assert (max(counts), counts[0]) == (expected, 1)
    assert ("groups of models train at once" in caplog.text) == (expected < 4)


# ---------------------------------------------------------------- memory that runs out


@pytest.fixture
def limited(monkeypatch):
    """A function after whose call a lane finds no memory for a step where ``full(lane)`` says so; it returns the list
    to which every step adds ``note(lane)``."""

    def limit(full, note=id):
        advance, notes = lanes.Lane.take_step, []

        def attempt(lane):
            notes.append(note(lane))
            if full(lane):
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            advance(lane)

        monkeypatch.setattr(lanes.Lane, "take_step", attempt)
        return notes

    return limit


@pytest.mark.parametrize("limit", [1, *slow(3)])
def test_lanes_that_do_not_fit_together_train_fewer_at_once(monkeypatch, limited, limit):
    """A card that holds ``limit`` lanes, though more seemed to fit: the others come later."""
    traffic, original_init = [], lanes.Scheduler.__init__

    def init(self, fit):
        original_init(self, fit)
        self.room = self.most
        traffic.append(self)

    monkeypatch.setattr(lanes.Scheduler, "__init__", init)
    # In the midst of an epoch.
    sizes = limited(lambda lane: len(traffic[0].lanes) > limit and lane.steps == 2, lambda _: len(traffic[0].lanes))
    plain, laned = twins(conv, backend="serial")
    assert same(plain, laned)
    assert list(dict.fromkeys(sizes)) == [4, 2, 1]


@pytest.mark.parametrize(("build", "backend"), [(conv, "serial"), (mlp, "stacked")])
def test_one_model_that_does_not_fit_is_the_machines_fault(limited, build, backend):
    limited(lambda lane: True)
    with pytest.raises(torch.OutOfMemoryError):
        lanes.run(fit(fresh(build, backend=backend)))


@pytest.mark.parametrize(
    ("models", "backend", "full", "note", "expected"),
    [
        (7, "stacked", lambda lane: len(lane.group) > 3, lambda lane: len(lane.group), [7, 3, 4, 2]),
        (2, "serial", lambda lane: lane.fit.pieces < 4, lambda lane: lane.fit.pieces, [1, 2, 4]),
    ],
    ids=["models", "samples"],
)
def test_a_group_or_a_batch_that_does_not_fit_is_divided(limited, models, backend, full, note, expected):
    sizes = limited(full, note)
    plain, laned = twins(mlp, SEEDS[:models], backend=backend, dtype=torch.float64)
    assert largest_gap(plain, laned) < 1e-12
    assert list(dict.fromkeys(sizes)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names("methods"))
def test_models_that_begin_again_are_as_if_they_had_not_begun(monkeypatch, limited, name):
    """Every method, of whose models each group finds no memory in its third step once; the second time it does."""
    monkeypatch.setattr(Fit, "run", lanes.run)
    before, stopped = trained(mlp, SEEDS[:2], backend="serial"), set()
    plain = unlearned(before, name)

    def once(lane):
        first = lane.steps == 2 and (key := (id(lane.fit), *lane.group)) not in stopped
        if first:
            stopped.add(key)
        return first

    def begin_again(traffic, lane, trouble):
        traffic.drop(lane)
        traffic.waiting.insert(0, lane.group)

    limited(once)
    monkeypatch.setattr(lanes.Scheduler, "halve_lanes", begin_again)
    assert same(plain, unlearned(before, name))


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names("methods"))
def test_pieces_of_a_batch_are_the_batch(monkeypatch, name):
    """Every method whose batches may be divided, in thirds."""
    before, whole = trained(mlp, SEEDS[:2], backend="serial", dtype=torch.float64), Fit.begin
    plain, divided = unlearned(before, name), []

    def begin(self):
        whole(self)
        self.pieces = 3 if self.divisible() else 1
        divided.append(self.pieces)

    monkeypatch.setattr(Fit, "begin", begin)
    assert largest_gap(plain, unlearned(before, name)) < 1e-9
    # Of the latter two, one of two losses needs its whole batch.
    assert set(divided) <= {3} or name in ("classic", "competition_first", "pdu")


@pytest.mark.parametrize(
    ("group", "parts"),
    [([0, 1, 2, 3, 4], [[0, 1], [2, 3, 4]]), ([3, 4], [[3, 3], [4, 4]]), ([5, 5], [[5, 5]]), ([6], [[6]])],
)
def test_halves_have_ghosts_where_one_model_would_be_alone(group, parts):
    assert lanes.split_group(group) == parts


# ---------------------------------------------------------------- rows in chunks


def test_rows_are_worked_on_in_halves_where_memory_runs_out():
    rows_done, tried = [], []

    def work(part):
        tried.append(part.stop - part.start)
        if part.stop - part.start > 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        rows_done.extend(range(20)[part])

    list(chunks(20, 11, work))
    assert rows_done == list(range(20))
    assert tried == [11, 6, *[3] * 7]


@pytest.mark.parametrize("error", [ValueError("shape"), torch.OutOfMemoryError("out of memory")])
def test_other_errors_and_rows_too_large_alone_are_raised(error):
    with pytest.raises(type(error)):
        next(chunks(20, 11, lambda part: (_ for _ in ()).throw(error)))


def test_a_recording_that_ends_for_want_of_memory_is_known_by_where_it_came_from():
    late, plain = (RuntimeError("operation failed due to a previous error during capture") for _ in range(2))
    late.__context__ = torch.OutOfMemoryError("CUDA out of memory.")
    assert [memory_is_exhausted(error) for error in (late, plain, MemoryError())] == [True, False, True]
