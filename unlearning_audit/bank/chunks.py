"""Rows that are worked on a chunk after the other, of as many as memory holds."""

from collections.abc import Callable

import torch

from unlearning_audit.plugins.guard import used_up


def chunks(rows: int, size: int, work: Callable[[slice], None]) -> None:
    """Call ``work`` with slices of ``rows``, of ``size`` each, and of half as many from where memory is used up.

    ``work`` must leave nothing behind where it fails. Raises its error if one row is too many.
    """
    start = 0
    while start < rows:
        try:
            work(slice(start, start + size))
        except Exception as error:
            if size == 1 or not used_up(error):
                raise
            size = -(-size // 2)
        else:
            start += size
            continue
        torch.cuda.empty_cache()  # here, where the error no longer holds what the step had taken
