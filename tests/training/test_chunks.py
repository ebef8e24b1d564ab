"""Rows are worked on in smaller pieces where memory runs out, and the numbers stay."""

import pytest
import torch
from unlearning_audit.training.chunks import chunks


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
    with pytest.raises(ValueError, match="shape"):
        next(chunks(20, 11, lambda part: (_ for _ in ()).throw(ValueError("shape"))))
    with pytest.raises(torch.OutOfMemoryError):
        next(chunks(20, 11, lambda part: (_ for _ in ()).throw(torch.OutOfMemoryError("out of memory"))))
