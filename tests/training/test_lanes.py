"""Lanes, the way of plain training on a GPU: what they leave is what the ordinary fit leaves. Without a GPU the same
lanes run their steps unrecorded, so that all but the recording itself is tested everywhere."""

import pytest
import torch
from unlearning_audit.plugins import registry
from unlearning_audit.training import fitting, lanes
from unlearning_audit.training.chunks import used_up
from unlearning_audit.training.fitting import Fit
from unlearning_audit.training.streams import Stream

from bank_cases import GPU, RECIPE, SEEDS, conv, fresh, largest_gap, mlp, rows, same, trained, unlearned
from pretended_card import pretended

COSINE = RECIPE.model_copy(update={"schedule": "cosine"})


def fit(bank, **changed):
    """A fit of ``bank`` as `Bank.train` asks for it; 31 rows in batches of 8, so that the last batch is smaller."""
    retain = rows(bank.seeds)[1]
    defaults = {"optimiser": COSINE, "epochs": 3, "purpose": "train", "passes": ((Stream(retain),),)}
    nothing = dict.fromkeys(("only", "mask", "scale", "penalty", "record"))
    return fitting.Fit(bank=bank, **(nothing | defaults | changed))


@pytest.mark.parametrize(("at_once", "schedule"), [("1", "cosine"), ("3", "one_cycle")])
@pytest.mark.parametrize(
    ("build", "backend", "augment"), [(mlp, "stacked", "none"), (conv, "serial", "none"), (conv, "serial", "crop_flip")]
)
def test_lanes_leave_what_the_ordinary_fit_leaves(monkeypatch, build, backend, augment, at_once, schedule):
    monkeypatch.setenv("UNLEARNING_IN_FLIGHT", at_once)
    plain, laned = (fresh(build, backend=backend, dtype=torch.float64) for _ in range(2))
    start = laned.copy()
    recipe = RECIPE.model_copy(update={"schedule": schedule, "augment": augment})
    fit(plain, optimiser=recipe).run()
    laned.model.train()
    request = fit(laned, optimiser=recipe)
    lanes.run(request)
    assert largest_gap(plain, laned) < 1e-12 < 1e-3 < largest_gap(start, laned)


def on_card(left, models=SEEDS):
    """The bank after training on a pretended card of which so many bytes are left beside its models, back in main
    memory; bytes that training took at most, and how many lanes were in flight at each step."""
    with pretended(1 << 40) as card:
        bank = fresh(conv, models, backend="serial", device="cuda", dtype=torch.float64)
        bank.model.train()
        start, most = card.memory.used(), []
        card.memory.capacity, card.memory.peak = start + left, start
        really = lanes.Lane.advance

        def advance(lane):
            most.append(sum(lane.course is not None for lane in traffic[-1].lanes))
            really(lane)

        traffic, original_init = [], lanes.Traffic.__init__

        def init(self, fit):
            original_init(self, fit)
            traffic.append(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lanes.Lane, "advance", advance)
            patch.setattr(lanes.Traffic, "__init__", init)
            lanes.run(fit(bank))
        peak = card.memory.peak - start
        for state in (bank.parameters, bank.buffers):
            state.update({name: value.cpu() for name, value in state.items()})
    return bank, peak, most


@pytest.fixture(scope="module")
def lane_bytes():
    """Bytes that a single lane takes of the pretended card."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNLEARNING_IN_FLIGHT", "1")
        return on_card(1 << 40, models=SEEDS[:2])[1]


@pytest.fixture(scope="module")
def plain():
    bank = fresh(conv, backend="serial", dtype=torch.float64)
    bank.model.train()
    fit(bank).run()
    return bank


@pytest.mark.parametrize(("room", "expected"), [(1.05, 1), (2.2, 2), (3.3, 3), (20, 4)])
def test_as_many_lanes_as_the_card_holds(lane_bytes, plain, room, expected, caplog):
    """Measured by the first: nothing runs out of memory, and no number depends on it."""
    bank, peak, most = on_card(int(lane_bytes * room))
    assert largest_gap(plain, bank) < 1e-6
    assert (max(most), "used up" in caplog.text, peak <= lane_bytes * room) == (expected, False, True)
    assert ("groups of models train at once" in caplog.text) == (expected < 4)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_lanes_that_do_not_fit_together_train_fewer_at_once(monkeypatch, limit):
    """A card that holds ``limit`` lanes, though more seemed to fit: the others come later."""
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    traffic, sizes, original_init, advance = [], [], lanes.Traffic.__init__, lanes.Lane.advance

    def init(self, fit):
        original_init(self, fit)
        self.room = self.most
        traffic.append(self)

    def limited(self):
        count = len(traffic[-1].lanes)
        sizes.append(count)
        if count > limit and self.steps == 2:  # in the midst of an epoch
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        advance(self)

    plain, laned = (fresh(conv, backend="serial") for _ in range(2))
    for bank in (plain, laned):
        bank.model.train()
    fit(plain).run()
    monkeypatch.setattr(lanes.Traffic, "__init__", init)
    monkeypatch.setattr(lanes.Lane, "advance", limited)
    lanes.run(fit(laned))
    assert same(plain, laned)
    assert sorted(set(sizes), reverse=True) == {1: [4, 2, 1], 2: [4, 2, 1], 3: [4, 2, 1]}[limit]


def full(*_):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def test_one_model_that_does_not_fit_is_the_machines_fault(monkeypatch):
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(lanes.Lane, "advance", full)
    for build, backend in ((conv, "serial"), (mlp, "stacked")):
        with pytest.raises(torch.OutOfMemoryError):
            lanes.run(fit(fresh(build, backend=backend)))


def test_a_group_that_does_not_fit_is_divided(monkeypatch):
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    advance, sizes = lanes.Lane.advance, []

    def limited(self):
        sizes.append(len(self.group))
        if len(self.group) > 3:
            full()
        advance(self)

    plain, laned = (fresh(mlp, SEEDS[:7], dtype=torch.float64) for _ in range(2))
    fit(plain).run()
    monkeypatch.setattr(lanes.Lane, "advance", limited)
    lanes.run(fit(laned))
    assert largest_gap(plain, laned) < 1e-12
    assert list(dict.fromkeys(sizes)) == [7, 3, 4, 2]


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names("methods"))
def test_models_that_begin_again_are_as_if_they_had_not_begun(monkeypatch, name):
    """Every method, of whose models each group finds no memory in its third step once."""
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(Fit, "run", lanes.run)
    before = trained(mlp, SEEDS[:2], backend="serial")
    plain, advance, stopped = unlearned(before, name), lanes.Lane.advance, set()

    def limited(self):
        if self.steps == 2 and (id(self.fit), *self.group) not in stopped:
            stopped.add((id(self.fit), *self.group))
            full()
        advance(self)

    monkeypatch.setattr(lanes.Lane, "advance", limited)
    monkeypatch.setattr(lanes.Traffic, "halve", begin_again)
    assert same(plain, unlearned(before, name))


def begin_again(traffic, lane, trouble):
    """As `Traffic.halve`, where a lane is alone and its model fits the second time."""
    traffic._drop(lane)
    traffic.waiting.insert(0, lane.group)


def test_a_batch_that_does_not_fit_is_worked_on_in_pieces(monkeypatch):
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    advance, pieces = lanes.Lane.advance, []

    def limited(self):
        pieces.append(self.fit.pieces)
        if self.fit.pieces < 4:
            full()
        advance(self)

    plain, laned = (fresh(mlp, SEEDS[:2], backend="serial", dtype=torch.float64) for _ in range(2))
    fit(plain).run()
    monkeypatch.setattr(lanes.Lane, "advance", limited)
    lanes.run(fit(laned))
    assert largest_gap(plain, laned) < 1e-12
    assert list(dict.fromkeys(pieces)) == [1, 2, 4]


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
    pieces = unlearned(before, name)
    assert largest_gap(plain, pieces) < 1e-9
    # Of the latter two, one of two losses needs its whole batch.
    assert set(divided) <= {3} or name in ("classic", "competition_first", "pdu")


@pytest.mark.parametrize(
    ("group", "parts"), [([0, 1, 2, 3, 4], [[0, 1], [2, 3, 4]]), ([3, 4], [[3, 3], [4, 4]]), ([5, 5], [[5, 5]]),
                         ([6], [[6]])],
)  # fmt: skip
def test_halves_have_ghosts_where_one_model_would_be_alone(group, parts):
    assert lanes.halves(group) == parts


def test_a_recording_that_ends_for_want_of_memory_is_known_by_where_it_came_from():
    late, plain = (RuntimeError("operation failed due to a previous error during capture") for _ in range(2))
    late.__context__ = torch.OutOfMemoryError("CUDA out of memory.")
    assert (used_up(late), used_up(plain), used_up(MemoryError())) == (True, False, True)


def test_a_lane_does_not_depend_on_the_others(monkeypatch):
    ends = []
    for at_once in ("1", "4"):
        monkeypatch.setenv("UNLEARNING_IN_FLIGHT", at_once)
        bank = fresh(conv, backend="serial")
        bank.model.train()
        lanes.run(fit(bank))
        ends.append(bank)
    assert same(*ends)


@GPU
@pytest.mark.parametrize(("build", "backend"), [(mlp, "stacked"), (conv, "serial"), (conv, "stacked")])
def test_recorded_training_on_a_gpu_agrees_with_the_processor(build, backend):
    cpu_bank, gpu_bank = (fresh(build, backend=backend, dtype=torch.float64, device=d) for d in ("cpu", "cuda"))
    for bank in (cpu_bank, gpu_bank):
        bank.train(rows(bank.seeds)[1])
    gpu_bank.parameters, gpu_bank.buffers = (
        {k: v.cpu() for k, v in s.items()} for s in (gpu_bank.parameters, gpu_bank.buffers)
    )
    assert largest_gap(cpu_bank, gpu_bank) < 1e-6  # learning rates are rounded to single precision there
