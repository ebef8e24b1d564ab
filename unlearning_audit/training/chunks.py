"""Rows that are worked on a chunk after the other, of as many as memory holds."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from unlearning_audit.plugins.guard import MEMORY

Result = TypeVar("Result")


def chunks(rows: int, size: int, work: Callable[[slice], Result]) -> Iterator[Result]:
    """What ``work`` returns for slices of ``rows``, of ``size`` each, and of half as many from where memory is used up.

    Raises the error of ``work`` if one row is too many.
    """
    start = 0
    while start < rows:
        try:
            result = work(slice(start, start + size))
        except Exception as error:
            if size == 1 or not used_up(error):
                raise
            size = -(-size // 2)
        else:
            start += size
            yield result
            continue
        torch.cuda.empty_cache()  # here, where the error no longer holds what the step had taken


def used_up(error: BaseException | None) -> bool:
    """Whether memory is used up, a card's or the machine's: by the error itself or by the one that it came from, as
    where a recording ends for want of memory and torch says that it ended."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        if isinstance(error, MemoryError) or (
            isinstance(error, RuntimeError) and any(words in str(error).lower() for words in MEMORY)
        ):
            return True
        error = error.__cause__ or error.__context__
    return False
