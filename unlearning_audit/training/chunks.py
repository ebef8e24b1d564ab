"""Process rows in chunks that fit into memory."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from unlearning_audit.plugins.guard import OUT_OF_MEMORY

Result = TypeVar("Result")


def chunks(rows: int, size: int, work: Callable[[slice], Result]) -> Iterator[Result]:
    """Yield what ``work`` returns for one slice of ``size`` rows after another, until all of the ``rows`` are done (the
    last slice may end beyond them). When memory is exhausted, halve the size for the rest, rounding up, and try again
    from the same row on.

    Raises the error of ``work`` if memory does not suffice for a single row, or if the error is not about memory.
    """
    start = 0
    while start < rows:
        try:
            result = work(slice(start, start + size))
        except Exception as error:
            if size == 1 or not memory_is_exhausted(error):
                raise
            size = -(-size // 2)
        else:
            start += size
            yield result
            continue
        torch.cuda.empty_cache()  # after the except block: before, the error holds the memory of the failed call


def memory_is_exhausted(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, says that the memory of a card or of the machine is exhausted.

    Causes count because the error itself may only say that the recording of a CUDA graph was ended.
    """
    seen: list[BaseException] = []  # causes may form a cycle
    while error is not None and error not in seen:
        seen.append(error)
        says_so = any(words in str(error).lower() for words in OUT_OF_MEMORY)
        if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and says_so):
            return True
        error = error.__cause__ or error.__context__
    return False
