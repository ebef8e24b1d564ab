"""Methods for language models: the update of one full-batch step is the gradient of the loss as published."""

import json

import pytest
import torch
from tokenizers import Tokenizer
from torch.func import functional_call
from unlearning_audit.data import prepare, question_answer
from unlearning_audit.randomness.keyed import seed_of
from unlearning_audit.training.optim import Optimiser
from unlearning_audit.training.streams import Stream

import written_losses as by_hand
from stack_cases import largest_gap, same
from text_cases import rows, stack, unlearned
from written_losses import MODEL, Written, assert_step, ce_u, kl, mean_nll

#: Plain descent, so that the update of a step is the gradient.
PLAIN = {"optimiser": "sgd", "weight_decay": 0.0}


@pytest.fixture(scope="module")
def original():
    return stack()


LOSSES = {
    "graddiff": ({"gamma": 0.5, "alpha": 2.0}, [(-0.5, mean_nll, "forget"), (2.0, mean_nll, "retain")]),
    "graddiff-kl": ({"gamma": 0.5, "retain_loss": "kl"}, [(-0.5, mean_nll, "forget"), (1.0, kl, "retain")]),
    "npo": ({"beta": 0.3}, [(1.0, by_hand.npo_mean, "forget")]),
    "npo-sum": (
        {"beta": 0.3, "over": "sum", "retain_weight": 0.7},
        [(1.0, by_hand.npo_sum, "forget"), (0.7, mean_nll, "retain")],
    ),
    "npo-kl": (
        {"beta": 0.3, "retain_weight": 0.7, "retain_loss": "kl"},
        [(1.0, by_hand.npo_mean, "forget"), (0.7, kl, "retain")],
    ),
    "simnpo": (
        {"beta": 0.4, "delta": 0.7, "gamma": 0.2, "alpha": 0.3},
        [(0.2, by_hand.simnpo, "forget"), (0.3, mean_nll, "retain")],
    ),
    "undial": ({"beta": 2.0, "alpha": 0.3}, [(1.0, by_hand.undial, "forget"), (0.3, mean_nll, "retain")]),
    "wga": ({"beta": 0.5, "gamma": 2.0}, [(2.0, by_hand.wga, "forget"), (1.0, mean_nll, "retain")]),
    "ce_u": ({"alpha": 0.3}, [(1.0, ce_u, "forget"), (0.3, mean_nll, "retain")]),
    "pdu": ({"gamma": 0.5, "alpha": 0.7}, [(0.5, by_hand.flat, "forget"), (0.7, mean_nll, "retain")]),
    "satimp": ({"beta1": 2.0, "beta2": 3.0}, [(0.1, by_hand.satimp, "forget"), (1.0, mean_nll, "retain")]),
    # Without an epoch of unlearning, one step of refining is all that moves.
    "graddiff-refined": ({"epochs": 0, "refine_epochs": 1}, [(1.0, mean_nll, "retain")]),
    "npo-refined": ({"epochs": 0, "refine_epochs": 1}, [(1.0, mean_nll, "retain")]),
}


@pytest.mark.parametrize("case", LOSSES)
def test_a_step_is_the_gradient_of_the_published_loss(case, original):
    options, terms = LOSSES[case]
    after, written = unlearned(original, case.split("-")[0], **PLAIN, **options), Written(original)
    loss = sum(weight * written.per_sample(term, getattr(written, subset)) for weight, term, subset in terms)
    assert_step(original, after, written.gradient(loss))


@pytest.mark.parametrize(("limit", "step"), [(1.0, 0.3), (100.0, 1.0)])
def test_the_multipliers_of_pdu_follow_what_retain_has_above_its_limit(original, limit, step):
    """Of two full-batch steps the second weighs retain by max(0, α + step·(NLL − limit)), each model by its own."""
    options = {**PLAIN, "gamma": 0.0, "alpha": 0.2, "lr": 0.05, "retain_limit": limit, "dual_step": step}
    first, both = (unlearned(original, "pdu", **options, epochs=epochs) for epochs in (1, 2))
    before, after = Written(original), Written(first)
    price = max(0.0, 0.2 + step * (before.per_sample(mean_nll, before.retain).item() - limit))
    if price:
        assert_step(first, both, after.gradient(price * after.per_sample(mean_nll, after.retain)), 0.05)
    else:
        assert same(first, both)


def test_a_task_vector_steps_back_by_what_more_training_learns(original):
    forward, expected = original.copy(), original.copy()
    forward.fit(Stream(rows()[0]), optimiser=Optimiser(lr=0.1, batch_size=4), epochs=2, purpose="unlearn")
    back = unlearned(original, "task_vector", lr=0.1, batch_size=4, epochs=2, scale=0.5)
    expected.edit(lambda name, value: value - 0.5 * (forward.parameters[name] - value))
    assert largest_gap(back, expected) < 1e-12
    assert (back.logits()[:, :6, 0].mean(1) < original.logits()[:, :6, 0].mean(1)).all()


def test_bad_teacher_distils_the_vocabulary(original):
    blank = original.copy()
    blank.reset("bad_teacher")
    written = Written(original, blank)
    # Of 6 + 14 samples in a step only the 6 follow the untrained teacher; the original itself has no gradient.
    gradient = written.gradient(0.3 * written.per_sample(kl, written.forget))
    assert_step(original, unlearned(original, "bad_teacher", retain_share=1.0, **PLAIN), gradient)


def test_scrub_distils_the_vocabulary(original):
    """The first step away from the teacher has no gradient; the first one on retain leaves it; the second two do."""
    options = {**PLAIN, "gamma": 0.1, "alpha": 0.4, "forget_batch_size": 100}
    near, far = (unlearned(original, "scrub", **options, epochs=epochs, msteps=2) for epochs in (1, 2))
    first, second = Written(original), Written(near, original)
    assert_step(original, near, first.gradient(0.1 * first.per_sample(mean_nll, first.retain)))
    between = near.copy()
    for name, away in second.gradient(second.per_sample(kl, second.forget)).items():
        between.parameters[name][MODEL] += away
    last = Written(between, original)
    loss = 0.1 * last.per_sample(mean_nll, last.retain) + 0.4 * last.per_sample(kl, last.retain)
    assert_step(between, far, last.gradient(loss))


# ---------------------------------------------------------------- CE-U


@pytest.mark.parametrize("skip", [1, 4, 20])
def test_ce_u_leaves_out_the_first_tokens_of_answers(original, skip):
    """As OpenUnlearning counts: the first token of a passage without a question, which nothing predicts, is one."""
    after, written, loss = unlearned(original, "ce_u", **PLAIN, skip_first=skip), Written(original), 0.0
    pairs = written.predictions(written.leaves, written.forget)
    for row, (z, tokens) in zip(written.forget.tolist(), pairs, strict=True):
        counted = [t for t, token in enumerate(row) if token >= 0][skip:]
        places = [t for t in range(1, len(row)) if row[t] >= 0]
        late = [n for n, t in enumerate(places) if t in counted]
        if late:
            loss = loss + ce_u(z[late], None, tokens[late]) / len(pairs)
    if skip == 20:
        assert same(after, original)
    else:
        assert_step(original, after, written.gradient(loss))


# ---------------------------------------------------------------- RMU


@pytest.mark.parametrize("layer", [1, 2])
def test_rmu_steers_the_states_of_one_layer(layer):
    original = stack(layers=2, epochs=1)
    after, written = unlearned(original, "rmu", layer=layer, steering=1.5, alpha=0.7, **PLAIN), Written(original)
    rng = torch.Generator().manual_seed(seed_of(original.seeds[MODEL], "rmu"))
    u = torch.rand(12, generator=rng, dtype=torch.float64)
    target = 1.5 * u / u.square().sum().sqrt()
    total = 0.0
    for row in written.forget:
        states = functional_call(written.model, written.leaves, (row[None],), {"reading": f"layer {layer}"})[0]
        total = total + (states - target)[row[1:] >= 0].square().mean()
    # The retained states have no gradient where they are the original's.
    gradient = written.gradient(total / len(written.forget))
    assert_step(original, after, gradient)
    assert layer == 2 or not any(value.any() for name, value in gradient.items() if ".h.1." in name)


def test_rmu_holds_what_is_kept_and_names_a_layer_that_is_not_there(original):
    gap, index = [], torch.from_numpy(rows()[1].index[MODEL])
    for alpha in (0.0, 10.0):
        after = unlearned(original, "rmu", steering=5.0, alpha=alpha, optimiser="adam", lr=3e-3, epochs=10)
        states = [b.output(b.state(MODEL), b.x[index], "layer 1") for b in (original, after)]
        gap.append(float((states[0] - states[1]).norm()))
    assert gap[1] < 0.7 * gap[0]
    with pytest.raises(ValueError, match="layer: the model has 1 layers, not 2"):
        unlearned(original, "rmu", layer=2)


# ---------------------------------------------------------------- preferred answers

#: Method → the kind of views, those of the six forgotten samples among the last ten rows, and what is said without.
VIEWS = {
    "idk_dpo": ("refusal", [[25], [22], [29], [21], [20], [27]], "set refusals: true under data"),
    "altpo": (
        "alternate", [[25, 22], [22, 23], [29, 20], [21, -1], [20, 28], [27, 26]],
        "altpo needs an alternate answer .* a column alternate",
    ),
}  # fmt: skip


def with_views(models, name):
    """The same models, and the views of their samples, int64 [30, views]."""
    kind, views, _ = VIEWS[name]
    copy, table = models.copy(), torch.full((30, len(views[0])), -1)
    table[:6] = torch.tensor(views)
    copy.views = {kind: table}
    return copy, table


@pytest.mark.parametrize("name", VIEWS)
def test_a_samples_own_views_are_preferred_to_its_answer(original, name):
    """The mean over views; the second epoch, in which the model has left the original."""
    models, views = with_views(original, name)
    near, after = (unlearned(models, name, beta=0.3, alpha=0.5, epochs=epochs, **PLAIN) for epochs in (1, 2))
    written, total = Written(near, original), 0.0
    for sample in range(6):
        own = written.rise(near.x[sample])
        gains = [written.rise(near.x[row]) - own for row in views[sample].tolist() if row >= 0]
        total = total - 2 / 0.3 * sum(by_hand.logsigmoid(0.3 * gain) for gain in gains) / len(gains) / 6
    assert_step(near, after, written.gradient(total + 0.5 * written.per_sample(mean_nll, written.retain)))


@pytest.mark.parametrize("name", VIEWS)
def test_a_sample_to_forget_without_a_view_is_refused(original, name):
    models, views = with_views(original, name)
    views[3] = -1
    for without in (original, models):
        with pytest.raises(ValueError, match=VIEWS[name][2]):
            unlearned(without, name)
    views[3, 0] = 0  # the first row may be one
    unlearned(models, name)


def test_alternates_of_questions_are_read_from_their_column(tmp_path):
    lines = [
        {"question": f"Who wrote book {i}?", "answer": f"Author {i} wrote it.",
         "other": [f"Ann {i}.", f"Bob {i}."] if i % 2 else f"Ann {i}."} for i in range(20)
    ]  # fmt: skip
    (tmp_path / "books.jsonl").write_text("\n".join(map(json.dumps, lines)))
    options = question_answer.Options(path="books.jsonl", alternate="other", public=0.3, length=60)
    data = prepare(question_answer.load(options, tmp_path), seed=0)
    tokenizer = Tokenizer.from_str(data.tokenizer.tobytes().decode())
    assert data.views("perturbed").shape[1] == 0
    for sample, views in enumerate(data.views("alternate")[:14]):
        answer, *others = (
            tokenizer.decode([token for token in data.x[row] if token >= 0]) for row in (sample, *views[views >= 0])
        )
        number = int(answer.split()[1])
        assert others == [f"Ann {number}.", f"Bob {number}."][: 1 + number % 2]
