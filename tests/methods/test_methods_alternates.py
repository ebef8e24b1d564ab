"""AltPO: what is preferred to an answer, and the data that it comes from."""

import json

import pytest
import torch
from tokenizers import Tokenizer
from torch import nn
from torch.nn.functional import log_softmax
from unlearning_audit.data import prepare, question_answer

from bank_cases import SEEDS, trained
from plain_loop import Plain, assert_plain
from text_cases import bank, rows, unlearned
from written_losses import MODEL, Written, logsigmoid, mean_nll, nll


@pytest.fixture(scope="module")
def original():
    return bank()


def with_alternates(models):
    """The same models; forgotten samples have two of the last ten rows as alternates, the fourth has one."""
    copy = models.copy()
    copy.views = {"alternate": torch.full((30, 2), -1)}
    copy.views["alternate"][:6] = torch.tensor([[25, 22], [22, 23], [29, 20], [21, -1], [20, 28], [27, 26]])
    return copy


def test_a_step_is_the_gradient_of_the_mean_over_a_samples_alternates(original):
    models, plain = with_alternates(original), {"optimiser": "sgd", "weight_decay": 0.0, "beta": 0.3, "alpha": 0.5}
    before, after = (unlearned(models, "altpo", **plain, epochs=epochs) for epochs in (1, 2))
    written = Written(before)
    written.reference = dict(original.extract(MODEL).named_parameters())

    def logp(weights, row):
        ((z, own),) = written.predictions(weights, row[None])
        return -nll(z, own).sum()

    forget, _ = rows()
    samples = forget.index[MODEL].tolist()
    total = 0.0
    for sample in samples:
        alternates = [number for number in models.views["alternate"][sample].tolist() if number >= 0]
        for number in alternates:
            gains = [
                logp(written.leaves, row) - logp(written.reference, row).detach()
                for row in (models.x[number], models.x[sample])
            ]
            preference = -2 / 0.3 * logsigmoid(0.3 * (gains[0] - gains[1]))
            total = total + preference / len(alternates) / len(samples)
    gradient = written.gradient(total + 0.5 * written.per_sample(mean_nll, written.retain))
    for name, value in after.parameters.items():
        moved = before.parameters[name][MODEL] - value[MODEL]
        torch.testing.assert_close(moved, gradient[name], rtol=1e-6, atol=1e-9)
    assert any(value.abs().max() > 1e-4 for value in gradient.values())


def test_a_sample_to_forget_without_an_alternate_is_refused(original):
    with pytest.raises(ValueError, match=r"altpo needs an alternate answer .* a column alternate"):
        unlearned(original, "altpo")
    partial = with_alternates(original)
    partial.views["alternate"][3] = -1
    with pytest.raises(ValueError, match="altpo needs an alternate answer"):
        unlearned(partial, "altpo")
    partial.views["alternate"][3, 0] = 0  # the first row may be one
    unlearned(partial, "altpo")


def test_of_labels_the_alternate_is_the_one_that_the_original_finds_likeliest_of_the_others():
    models = trained(seeds=SEEDS[:2], dtype=torch.float64)

    def loop(models, number):
        plain, reference = Plain(models, number, lr=0.05), models.extract(number)
        losing = [index for epoch in plain.read("forget", "unlearn/0.0", 8, 2) for index in epoch]
        keeping = [index for epoch in plain.read("retain", "unlearn/0.1", 8, 1) for index in epoch]
        for lose, keep in zip(losing, keeping, strict=True):
            then = log_softmax(plain.logits(lose, reference), -1).detach()
            now = log_softmax(plain.logits(lose, plain.model), -1)
            labels = plain.y[lose].tolist()
            alternates = [
                max((value, label) for label, value in enumerate(sample.tolist()) if label != own)[1]
                for sample, own in zip(then, labels, strict=True)
            ]
            samples = range(len(lose))
            gains = [(now - then)[samples, targets] for targets in (alternates, labels)]
            preference = -2 / 0.7 * torch.log(torch.sigmoid(0.7 * (gains[0] - gains[1])))
            plain.step(preference.mean() + 0.5 * nn.functional.cross_entropy(plain.logits(keep), plain.y[keep]))
        return plain

    assert_plain(models, "altpo", loop, optimiser="sgd", lr=0.05, weight_decay=0.0, batch_size=8, epochs=2, beta=0.7,
                 alpha=0.5)  # fmt: skip


def test_alternates_of_questions_are_read_from_their_column(tmp_path):
    lines = [
        {"question": f"Who wrote book {i}?", "answer": f"Author {i} wrote it.", "other": [f"Ann {i}.", f"Bob {i}."]}
        for i in range(20)
    ]
    for line in lines[::2]:
        line["other"] = line["other"][0]
    (tmp_path / "books.jsonl").write_text("\n".join(map(json.dumps, lines)))
    options = question_answer.Options(path="books.jsonl", alternate="other", public=0.3, length=60)
    data = prepare(question_answer.load(options, tmp_path), seed=0)
    tokenizer = Tokenizer.from_str(data.tokenizer.tobytes().decode())
    alternates = data.views("alternate")
    assert data.views("perturbed").shape[1] == 0
    for sample in range(14):
        answer, *others = (
            tokenizer.decode([token for token in data.x[row] if token >= 0])
            for row in (sample, *(row for row in alternates[sample] if row >= 0))
        )
        number = int(answer.split()[1])
        assert others == [f"Ann {number}.", f"Bob {number}."][: 1 + number % 2]
