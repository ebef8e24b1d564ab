"""Rows are worked on in smaller pieces where memory runs out, and the numbers stay."""

import numpy as np
import pytest
import torch
from unlearning_audit.training.chunks import chunks

from bank_cases import conv, fresh, rows
from pretended_card import pretended


def test_rows_are_worked_on_in_halves_where_memory_runs_out():
    rows_done, tried = [], []

    def work(part):
        tried.append(part.stop - part.start)
        if part.stop - part.start > 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        rows_done.extend(range(20)[part])

    chunks(20, 11, work)
    assert rows_done == list(range(20))
    assert tried == [11, 6, *[3] * 7]
    with pytest.raises(ValueError, match="shape"):
        chunks(20, 11, lambda part: (_ for _ in ()).throw(ValueError("shape")))
    with pytest.raises(torch.OutOfMemoryError):
        chunks(20, 11, lambda part: (_ for _ in ()).throw(torch.OutOfMemoryError("out of memory")))


def test_a_full_card_gives_the_same_logits_and_gradients():
    """On a card that holds a few rows at once beside the models."""
    bank = fresh(conv, range(2), backend="serial", dtype=torch.float64)
    forget, _ = rows(bank.seeds)
    logits, gradient = bank.logits(), bank.gradient(forget)
    with pretended(1 << 40) as card:
        on_card = fresh(conv, range(2), backend="serial", dtype=torch.float64, device="cuda")
        card.memory.capacity = card.memory.used() + 40_000
        np.testing.assert_allclose(on_card.logits(), logits, atol=1e-12)
        for name, value in on_card.gradient(forget).items():
            torch.testing.assert_close(value.cpu(), gradient[name], rtol=0, atol=1e-12)
        card.memory.capacity = card.memory.used() + 100
        with pytest.raises(torch.OutOfMemoryError):
            on_card.logits()
