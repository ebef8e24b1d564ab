"""Methods for language models: the update of one full-batch step is the gradient of the loss as published."""

import numpy as np
import pytest
import torch
from torch.func import functional_call
from unlearning_audit.methods import _tokens
from unlearning_audit.randomness.keyed import seed_of
from unlearning_audit.training.streams import Batch

from text_cases import bank, rows, unlearned
from written_losses import (
    MODEL,
    Written,
    ce_u,
    flat,
    kl,
    logsigmoid,
    mean_nll,
    nll,
    npo_mean,
    npo_sum,
    satimp,
    simnpo,
    undial,
    wga,
)


@pytest.fixture(scope="module")
def original():
    return bank()


LOSSES = {
    "graddiff": ({"gamma": 0.5, "alpha": 2.0}, [(-0.5, mean_nll, "forget"), (2.0, mean_nll, "retain")]),
    "graddiff-kl": ({"gamma": 0.5, "retain_loss": "kl"}, [(-0.5, mean_nll, "forget"), (1.0, kl, "retain")]),
    "npo": ({"beta": 0.3}, [(1.0, npo_mean, "forget")]),
    "npo-sum": (
        {"beta": 0.3, "over": "sum", "retain_weight": 0.7}, [(1.0, npo_sum, "forget"), (0.7, mean_nll, "retain")]
    ),
    "npo-kl": (
        {"beta": 0.3, "retain_weight": 0.7, "retain_loss": "kl"}, [(1.0, npo_mean, "forget"), (0.7, kl, "retain")]
    ),
    "simnpo": (
        {"beta": 0.4, "delta": 0.7, "gamma": 0.2, "alpha": 0.3}, [(0.2, simnpo, "forget"), (0.3, mean_nll, "retain")]
    ),
    "undial": ({"beta": 2.0, "alpha": 0.3}, [(1.0, undial, "forget"), (0.3, mean_nll, "retain")]),
    "wga": ({"beta": 0.5, "gamma": 2.0}, [(2.0, wga, "forget"), (1.0, mean_nll, "retain")]),
    "ce_u": ({"alpha": 0.3}, [(1.0, ce_u, "forget"), (0.3, mean_nll, "retain")]),
    "pdu": ({"gamma": 0.5, "alpha": 0.7}, [(0.5, flat, "forget"), (0.7, mean_nll, "retain")]),
    # The divergence from the teacher has no gradient at the teacher itself.
    "scrub": ({"gamma": 0.8, "forget_batch_size": 100}, [(0.8, mean_nll, "retain")]),
    "satimp": ({"beta1": 2.0, "beta2": 3.0}, [(0.1, satimp, "forget"), (1.0, mean_nll, "retain")]),
}  # fmt: skip


@pytest.mark.parametrize("case", LOSSES)
def test_a_step_is_the_gradient_of_the_published_loss(case, original):
    options, terms = LOSSES[case]
    after = unlearned(original, case.split("-")[0], optimiser="sgd", weight_decay=0.0, **options)
    by_hand = Written(original)
    gradient = by_hand.gradient(
        sum(w * by_hand.per_sample(loss, getattr(by_hand, subset)) for w, loss, subset in terms)
    )
    assert max(float(g.abs().max()) for g in gradient.values()) > 1e-4
    for name, value in after.parameters.items():
        moved = original.parameters[name][MODEL] - value[MODEL]
        torch.testing.assert_close(moved, gradient[name], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", ["graddiff", "npo"])
def test_refining_is_training_on_what_is_kept(name, original):
    """Without an epoch of unlearning, one full-batch step on retain is all that moves; without refining, nothing."""
    plain = {"optimiser": "sgd", "weight_decay": 0.0, "epochs": 0}
    after, by_hand = unlearned(original, name, **plain, refine_epochs=1), Written(original)
    gradient = by_hand.gradient(by_hand.per_sample(mean_nll, by_hand.retain))
    for key, value in after.parameters.items():
        moved = original.parameters[key][MODEL] - value[MODEL]
        torch.testing.assert_close(moved, gradient[key], rtol=1e-7, atol=1e-10)
    still = unlearned(original, name, **plain)
    assert all(torch.equal(value, original.parameters[key]) for key, value in still.parameters.items())


def test_the_sum_is_a_mean_at_a_larger_beta_for_passages_of_one_length(original):
    same = original.copy()
    same.x = torch.where(same.x < 0, ~same.x, same.x)  # eight scored tokens in each
    plain = {"optimiser": "sgd", "epochs": 1}
    a = unlearned(same, "npo", beta=0.1, over="sum", **plain, lr=1.0)
    b = unlearned(same, "npo", beta=0.8, **plain, lr=8.0)
    for name, value in a.parameters.items():
        torch.testing.assert_close(value, b.parameters[name], rtol=0, atol=1e-9)


def test_graddiff_is_neggrad_plus_at_one_half_twice_as_fast(original):
    a = unlearned(original, "graddiff", optimiser="sgd", weight_decay=0.0)
    b = unlearned(original, "neggrad_plus", lr=2.0, momentum=0.0, beta=0.5, pass_over="forget")
    for name, value in a.parameters.items():
        torch.testing.assert_close(value, b.parameters[name], rtol=0, atol=1e-12)


def test_wga_and_satimp_without_weights_are_graddiff(original):
    plain = {"optimiser": "sgd", "weight_decay": 0.0}
    a = unlearned(original, "graddiff", **plain)
    for name, options in (("wga", {"beta": 0.0}), ("satimp", {"beta1": 0.0, "beta2": 0.0, "gamma": 1.0})):
        b = unlearned(original, name, **plain, **options)
        for k, value in a.parameters.items():
            torch.testing.assert_close(value, b.parameters[k], rtol=0, atol=1e-12)


def test_the_multipliers_of_pdu_follow_what_retain_has_above_its_limit(original):
    """Of two full-batch steps the second weighs retain by max(0, α + step·(NLL − limit)), each model by its own."""
    plain = {"optimiser": "sgd", "weight_decay": 0.0, "batch_size": 1000, "gamma": 0.0, "alpha": 0.2, "lr": 0.05}
    for limit, step in ((1.0, 0.3), (100.0, 1.0)):
        first = unlearned(original, "pdu", **plain, epochs=1, retain_limit=limit, dual_step=step)
        both = unlearned(original, "pdu", **plain, epochs=2, retain_limit=limit, dual_step=step)
        before, after = Written(original), Written(first)
        loss = before.per_sample(mean_nll, before.retain).item()
        price = max(0.0, 0.2 + step * (loss - limit))
        slope = after.gradient(price * after.per_sample(mean_nll, after.retain))
        for name, value in both.parameters.items():
            moved = first.parameters[name][MODEL] - value[MODEL]
            torch.testing.assert_close(moved, 0.05 * slope[name], rtol=1e-6, atol=1e-10)


def test_undial_at_zero_does_not_move(original):
    after = unlearned(original, "undial", optimiser="sgd", weight_decay=0.0, beta=0.0)
    for name, value in after.parameters.items():
        torch.testing.assert_close(value, original.parameters[name], rtol=0, atol=1e-12)


def test_a_task_vector_steps_back_by_what_more_training_learns(original):
    forward = original.copy()
    from unlearning_audit.training.optim import Optimiser
    from unlearning_audit.training.streams import Stream

    forward.fit(Stream(rows()[0]), optimiser=Optimiser(lr=0.1, batch_size=4), epochs=2, purpose="unlearn")
    back = unlearned(original, "task_vector", lr=0.1, batch_size=4, epochs=2, scale=0.5)
    for name, value in back.parameters.items():
        expected = original.parameters[name] - 0.5 * (forward.parameters[name] - original.parameters[name])
        torch.testing.assert_close(value, expected, rtol=0, atol=1e-12)
    assert np.all([(back.logits()[m, :6, 0] < original.logits()[m, :6, 0]).mean() > 0.5 for m in range(3)])


def test_scrub_and_bad_teacher_distil_the_vocabulary(original):
    by_hand, (forget, retain) = Written(original), rows()
    blank = original.copy()
    blank.reset("bad_teacher")
    by_hand.reference = dict(blank.extract(MODEL).named_parameters())
    # Of 6 + 14 samples in a step only the 6 follow the untrained teacher; the original itself has no gradient.
    gradient = by_hand.gradient(0.3 * by_hand.per_sample(kl, by_hand.forget))
    plain = {"optimiser": "sgd", "weight_decay": 0.0}
    after = unlearned(original, "bad_teacher", retain_share=1.0, **plain)
    for name, value in after.parameters.items():
        moved = original.parameters[name][MODEL] - value[MODEL]
        torch.testing.assert_close(moved, gradient[name], rtol=1e-7, atol=1e-10)
    # Scrub's second step away from the teacher: the first one, on retain, has left it.
    near = unlearned(original, "scrub", gamma=0.1, alpha=0.0, forget_batch_size=100, **plain)
    steps = {"gamma": 0.1, "alpha": 0.0, "forget_batch_size": 100, **plain, "epochs": 2, "msteps": 2}
    far = unlearned(original, "scrub", **steps)
    again = Written(near)
    again.reference = dict(original.extract(MODEL).named_parameters())
    away = again.gradient(again.per_sample(kl, again.forget))
    between = near.extract(MODEL)
    with torch.no_grad():
        for name, value in between.named_parameters():
            value += away[name]
    last = Written(near)
    last.leaves = {k: v.detach().requires_grad_() for k, v in between.named_parameters()}
    last_gradient = last.gradient(0.1 * last.per_sample(mean_nll, last.retain))
    for name, value in far.parameters.items():
        torch.testing.assert_close(value[MODEL], last.leaves[name] - last_gradient[name], rtol=1e-7, atol=1e-9)
    assert forget.index.shape[1] + retain.index.shape[1] == 20


def test_ce_u_has_the_gradient_of_ascent_times_the_probability(original):
    """∂/∂z of −Σ_v q_v log p_v, with q the prediction without token y, is p_y·(onehot(y) − q)."""
    z = torch.randn(7, dtype=torch.float64, requires_grad=True)
    token = torch.tensor([3])
    (gradient,) = torch.autograd.grad(ce_u(z[None], None, token), z)
    p = z.detach().softmax(-1)
    q = p.clone()
    q[3] = 0
    expected = p[3] * (torch.eye(7, dtype=torch.float64)[3] - q / q.sum())
    torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("skip", [1, 4, 20])
def test_ce_u_leaves_out_the_first_tokens_of_answers(original, skip):
    """As OpenUnlearning counts: the first token of a passage without a question, which nothing predicts, is one."""
    after = unlearned(original, "ce_u", optimiser="sgd", weight_decay=0.0, skip_first=skip)
    by_hand, loss = Written(original), 0.0
    pairs = by_hand.predictions(by_hand.leaves, by_hand.forget)
    for row, (z, tokens) in zip(by_hand.forget.tolist(), pairs, strict=True):
        counted = [t for t, token in enumerate(row) if token >= 0][skip:]
        places = [t for t in range(1, len(row)) if row[t] >= 0]
        late = [n for n, t in enumerate(places) if t in counted]
        if late:
            loss = loss + ce_u(z[late], None, tokens[late]) / len(pairs)
    gradient = by_hand.gradient(loss + 0 * pairs[0][0].sum())
    assert (max(float(g.abs().max()) for g in gradient.values()) > 1e-4) == (skip < 20)
    for name, value in after.parameters.items():
        moved = original.parameters[name][MODEL] - value[MODEL]
        torch.testing.assert_close(moved, gradient[name], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("layer", [1, 2])
def test_rmu_steers_the_states_of_one_layer(layer):
    original = bank(layers=2, epochs=1)
    plain = {"optimiser": "sgd", "weight_decay": 0.0}
    after = unlearned(original, "rmu", layer=layer, steering=1.5, alpha=0.7, **plain)
    model = original.extract(MODEL)
    leaves = {k: v.clone().requires_grad_() for k, v in model.trunk.named_parameters()}
    rng = torch.Generator().manual_seed(seed_of(original.seeds[MODEL], "rmu"))
    u = torch.rand(12, generator=rng, dtype=torch.float64)
    target = 1.5 * u / u.square().sum().sqrt()
    forget, _ = rows()
    total = 0.0
    for row in original.x[forget.index[MODEL]]:
        ids = torch.where(row < 0, ~row, row).long()[None]
        states = functional_call(model.trunk, leaves, (), {"input_ids": ids, "output_hidden_states": True})
        state = states.hidden_states[layer][0]
        places = [t - 1 for t in range(1, len(row)) if row[t] >= 0]
        total = total + sum((state[t] - target).square().sum() / 12 for t in places) / len(places)
    total = total / len(forget.index[MODEL])  # the retained states have no gradient where they are the original's
    gradients = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    moved = {k.removeprefix("trunk."): original.parameters[k][MODEL] - v[MODEL] for k, v in after.parameters.items()}
    for name, gradient in zip(leaves, gradients, strict=True):
        expected = torch.zeros_like(moved[name]) if gradient is None else gradient
        torch.testing.assert_close(moved[name], expected, rtol=1e-7, atol=1e-10)
    assert any(value.abs().max() > 1e-6 for value in moved.values())
    assert all(not moved[name].any() for name in moved if layer == 1 and name.startswith("h.1."))


def test_rmu_holds_what_is_kept_and_names_a_layer_that_is_not_there(original):
    gap = []
    for alpha in (0.0, 10.0):
        after = unlearned(original, "rmu", steering=5.0, alpha=alpha, optimiser="adam", lr=3e-3, epochs=10)
        index = rows()[1].index[MODEL]
        states = [b.answers(b.state(MODEL), b.x[torch.from_numpy(index)], "layer 1") for b in (original, after)]
        gap.append(float((states[0] - states[1]).norm()))
    assert gap[1] < 0.7 * gap[0]
    with pytest.raises(ValueError, match="layer: the model has 1 layers, not 2"):
        unlearned(original, "rmu", layer=2)


def with_refusals(original):
    """The same models; of each forgotten sample one of the last ten rows is the refusal."""
    models = original.copy()
    models.views = {"refusal": torch.full((30, 1), -1)}
    models.views["refusal"][:6, 0] = torch.tensor([25, 22, 29, 21, 20, 27])
    return models


def test_idk_dpo_prefers_each_samples_own_refusal(original):
    models = with_refusals(original)
    plain = {"optimiser": "sgd", "weight_decay": 0.0}
    near = unlearned(models, "idk_dpo", beta=0.3, alpha=0.5, **plain)
    after = unlearned(models, "idk_dpo", beta=0.3, alpha=0.5, epochs=2, **plain)
    forget, retain = rows()
    by_hand = Written(near)
    by_hand.reference = dict(original.extract(MODEL).named_parameters())

    def logp(weights, row):
        ((z, tokens),) = by_hand.predictions(weights, row[None])
        return -nll(z, tokens).sum()

    total = 0.0
    for number in forget.index[MODEL].tolist():
        answer, refusal = near.x[number], near.x[int(models.views["refusal"][number])]
        gains = [logp(by_hand.leaves, row) - logp(by_hand.reference, row).detach() for row in (refusal, answer)]
        total = total - 2 / 0.3 * logsigmoid(0.3 * (gains[0] - gains[1])) / forget.index.shape[1]
    gradient = by_hand.gradient(total + 0.5 * by_hand.per_sample(mean_nll, by_hand.retain))
    for name, value in after.parameters.items():
        moved = near.parameters[name][MODEL] - value[MODEL]
        torch.testing.assert_close(moved, gradient[name], rtol=1e-6, atol=1e-9)
    assert len(retain) == 14


def test_idk_dpo_needs_refusals_of_language_models_only(original):
    with pytest.raises(ValueError, match="set refusals: true under data"):
        unlearned(original, "idk_dpo")
    partial = with_refusals(original)
    partial.views["refusal"][3] = -1
    with pytest.raises(ValueError, match="a refusal for each sample"):
        unlearned(partial, "idk_dpo")
    partial.views["refusal"][3] = 0  # the first row may be one
    unlearned(partial, "idk_dpo")


def test_tokens_count_where_they_are_scored():
    """Token 0 is a token like any other; what is negative is a question or padding, and is not scored."""
    x = torch.tensor([[[5, 0, 3, -1], [4, ~7, 0, 2]]], dtype=torch.int32)
    batch = Batch(x, torch.zeros(1, 2), torch.zeros(1, 2), [0], reading="tokens")
    assert _tokens.labels(batch).tolist() == [[[0, 3, 0], [0, 0, 2]]]
    values = torch.tensor([[[1.0, 2.0, 100.0], [100.0, 4.0, 7.0]]])
    assert _tokens.averaged(values, batch).tolist() == [[1.5, 5.5]]
    plain = Batch(x, torch.tensor([[3, 1]]), torch.zeros(1, 2), [0])
    assert _tokens.labels(plain) is plain.labels
    assert _tokens.averaged(values, plain) is values
