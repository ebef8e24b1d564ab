"""Long trainings with layers that torch's compiler fuses: they leave what the others leave. The compiler's own front is
tried everywhere; its kernels for cards where a card is."""

import pytest
import torch
from unlearning_audit.training import fusion

from stack_cases import GPU, KEPT, RECIPE, SEEDS, conv, fit, fresh, largest_gap, mlp, rows, twins

#: 31 rows of each of eight models in batches of 8, three times.
STEPS = 4 * 3 * len(SEEDS)


@pytest.fixture
def compiled(monkeypatch):
    """Fused layers are requested, of which the compiler makes plain ones; counts how often, and for how many."""
    torch._dynamo.reset()
    monkeypatch.setenv("UNLEARNING_COMPILE", "1")
    monkeypatch.setattr(fusion, "LONG", STEPS)
    compiler, counts = torch.compile, {"traces": 0, "batches": 0}

    def traced(graph, inputs):
        counts["traces"] += 1
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    def compile(function, **settings):
        run = compiler(function, backend=traced, **settings)

        def counted(*arguments):
            counts["batches"] += 1
            return run(*arguments)

        return counted

    monkeypatch.setattr(torch, "compile", compile)
    return counts


@pytest.mark.slow  # importing the compiler takes as long as the room
def test_fused_layers_leave_what_the_others_leave(compiled):
    plain, fused = twins(conv, backend="serial", dtype=torch.float64)
    assert largest_gap(plain, fused) < 1e-12
    # One trace for all models, whose weights are inputs; one step more to try it; smaller batches go the ordinary way.
    assert compiled == {"traces": 1, "batches": KEPT // RECIPE.batch_size * 3 * len(SEEDS) + 1}
    assert fused.engine.fusion is None


def test_where_the_compiler_fails_training_goes_on(compiled, monkeypatch, caplog):
    def refuse(*_):
        raise RuntimeError("no compiler for this card\nwith advice for its makers")

    monkeypatch.setattr(torch, "compile", lambda *_, **__: refuse)
    plain, fused = twins(conv, backend="serial", dtype=torch.float64)
    assert largest_gap(plain, fused) < 1e-12
    assert caplog.messages == ["layers are not fused, for torch's compiler failed: no compiler for this card"]


@pytest.mark.parametrize(
    "request_of",
    [
        lambda: fit(fresh(conv, backend="serial"), epochs=2),
        lambda: fit(fresh(conv, SEEDS[:7], backend="serial")),
        lambda: fit(fresh(conv, backend="stacked")),
        lambda: fit(fresh(mlp, backend="serial")),
    ],
    ids=["few epochs", "few models", "stacked", "vectors"],
)
def test_only_long_training_of_networks_for_images_is_compiled(compiled, request_of):
    assert fusion.suitable(fit(fresh(conv, backend="serial")))
    assert not fusion.suitable(request_of())


@GPU
def test_fused_kernels_of_a_card_leave_what_the_others_leave(monkeypatch):
    monkeypatch.setattr(fusion, "LONG", STEPS)
    stacks = []
    for compiled in ("0", "1"):
        monkeypatch.setenv("UNLEARNING_COMPILE", compiled)
        stacks.append(fresh(conv, backend="serial", device="cuda", dtype=torch.float64))
        stacks[-1].train(rows(SEEDS)[1])
    assert largest_gap(*stacks) < 1e-9
