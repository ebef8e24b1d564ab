"""Long trainings with layers that torch's compiler fuses: they leave what the others leave. The compiler's own front is
tried everywhere; its kernels for cards where a card is."""

import pytest
import torch
from torch import nn
from unlearning_audit.training import card, fusion, lanes

from stack_cases import GPU, KEPT, RECIPE, SEEDS, conv, fit, fresh, largest_gap, mlp, rows

#: 31 rows of each of eight models in batches of 8, three times.
STEPS = 4 * 3 * len(SEEDS)


class Counted(fusion.Fusion):
    """Counts the batches that go through fused layers, and how often they are traced."""

    batches, traces = 0, 0

    def __call__(self, weights, x):
        type(self).batches += 1
        return super().__call__(weights, x)


@pytest.fixture
def requested(monkeypatch):
    """Fused layers are requested, without the kernels that a compiler for C++ would make."""
    torch._dynamo.reset()
    monkeypatch.setenv("UNLEARNING_COMPILE", "1")
    monkeypatch.setenv("UNLEARNING_IN_FLIGHT", "3")
    monkeypatch.setattr(fusion, "LONG", STEPS)
    monkeypatch.setattr(fusion, "Fusion", Counted)
    compiler = torch.compile

    def traced(function, **settings):
        def counted(graph, inputs):
            Counted.traces += 1
            return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

        return compiler(function, backend=counted, **settings)

    monkeypatch.setattr(torch, "compile", traced)
    Counted.batches = Counted.traces = 0


@pytest.mark.parametrize("only", [None, {"0.weight", "5.bias"}])
def test_fused_layers_leave_what_the_others_leave(requested, only):
    plain, fused = (fresh(conv, backend="serial", dtype=torch.float64) for _ in range(2))
    start = fused.copy()
    fit(plain, only=only).run()
    lanes.run(fit(fused, only=only))
    assert largest_gap(plain, fused) < 1e-12 < 1e-3 < largest_gap(start, fused)
    whole = KEPT // RECIPE.batch_size
    assert Counted.batches == whole * 3 * len(SEEDS) + 1  # the rehearsal; the smaller batches go the ordinary way
    assert Counted.traces == 1  # one for all models, whose weights are inputs
    assert fused.engine.fusion is None


def test_where_the_compiler_fails_training_goes_on(requested, monkeypatch, caplog):
    def refuse(*_):
        raise RuntimeError("no compiler for this card\nwith advice for its makers")

    monkeypatch.setattr(torch, "compile", lambda *_, **__: refuse)
    plain, fused = (fresh(conv, backend="serial", dtype=torch.float64) for _ in range(2))
    fit(plain).run()
    lanes.run(fit(fused))
    assert largest_gap(plain, fused) < 1e-12
    assert "layers are not fused, for torch's compiler failed: no compiler for this card" in caplog.text
    assert "advice" not in caplog.text


def test_memory_that_the_compiler_lacks_is_the_machines_fault(requested, monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch, "compile", lambda *_, **__: full)
    with pytest.raises(torch.OutOfMemoryError):
        lanes.run(fit(fresh(conv, backend="serial")))


def dropping():
    """A stack of images whose network drops some of what it reads while it trains."""
    stack = fresh(conv, backend="serial")
    stack.model = nn.Sequential(*conv()[:5], nn.Dropout(0.5), conv()[5])
    return stack


def frozen():
    """A fit that leaves running statistics as they are."""
    request = fit(fresh(conv, backend="serial"))
    request.stack.model.eval()
    return request


@pytest.mark.parametrize(
    "request_of",
    [
        lambda: fit(fresh(conv, backend="serial"), epochs=2),
        lambda: fit(fresh(conv, SEEDS[:7], backend="serial")),
        lambda: fit(fresh(conv, backend="stacked")),
        lambda: fit(fresh(mlp, backend="serial")),
        frozen,
        lambda: fit(dropping()),
    ],
    ids=["few epochs", "few models", "stacked", "vectors", "frozen statistics", "dropout"],
)
def test_only_long_training_of_networks_for_images_is_compiled(requested, request_of):
    assert fusion.suitable(fit(fresh(conv, backend="serial")))
    assert not fusion.suitable(request_of())


@pytest.mark.parametrize(
    ("compiled", "deterministic", "expected"),
    [(None, None, False), ("0", None, False), ("", "0", False), ("1", None, True), ("1", "0", True), ("1", "1", False)],
)
def test_fused_layers_have_to_be_requested_and_repeat_no_bits(monkeypatch, compiled, deterministic, expected):
    for name, value in (("UNLEARNING_COMPILE", compiled), ("UNLEARNING_DETERMINISTIC", deterministic)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert card.compiled() is expected


@GPU
def test_fused_kernels_of_a_card_leave_what_the_others_leave(monkeypatch):
    monkeypatch.setattr(fusion, "LONG", STEPS)
    stacks = []
    for compiled in ("0", "1"):
        monkeypatch.setenv("UNLEARNING_COMPILE", compiled)
        stacks.append(fresh(conv, backend="serial", device="cuda", dtype=torch.float64))
        stacks[-1].train(rows(SEEDS)[1])
    assert largest_gap(*stacks) < 1e-9
