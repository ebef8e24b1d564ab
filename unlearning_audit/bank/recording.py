"""Steps of a fit on a GPU: the first of a kind is an ordinary one, the second is recorded, the others are replays.

A small network's step takes less time than Python needs to launch its kernels; a replay launches them all at once. What
a loss keeps between steps (labels that were drawn, a teacher's weights) is made by the ordinary step, so that the
recording finds it on the card.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

#: Rows int64 [n, b] and jitter uint8 [n, b, 3] or None of each stream of a step.
Inputs = list[tuple[Tensor, Tensor | None]]


class Recorder:
    """Recorded steps of one group of models, on a CUDA stream of their own."""

    def __init__(self) -> None:
        self.queue = torch.cuda.Stream()
        self._kinds: dict[tuple, tuple[Inputs, object] | None] = {}

    @contextmanager
    def queued(self) -> Iterator[None]:
        """Within, all is computed on the recorder's stream; the end waits for it."""
        self.queue.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.queue):
            yield
        self.forget()

    def run(self, number: int, step: Callable[[Inputs], None], inputs: Inputs) -> None:
        """One ``step`` on ``inputs``; steps of the same ``number`` with inputs of the same shapes are of one kind."""
        kind = (number, *(tuple(rows.shape) for rows, _ in inputs))
        if kind not in self._kinds:
            step(inputs)
            self._kinds[kind] = None
            return
        if self._kinds[kind] is None:
            places = [(rows.clone(), None if jitter is None else jitter.clone()) for rows, jitter in inputs]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.queue):
                step(places)
            self._kinds[kind] = places, graph
        places, graph = self._kinds[kind]
        for (rows, jitter), (row_place, jitter_place) in zip(inputs, places, strict=True):
            row_place.copy_(rows)
            if jitter is not None:
                jitter_place.copy_(jitter)
        graph.replay()

    def forget(self) -> None:
        """Drop all recordings, once the card has run them."""
        self.queue.synchronize()
        self._kinds.clear()
