"""Rows are worked on in smaller pieces where memory runs out, and the numbers stay."""

import pytest
import torch
from unlearning_audit.training.chunks import chunks, used_up


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
    assert (used_up(late), used_up(plain), used_up(MemoryError())) == (True, False, True)
