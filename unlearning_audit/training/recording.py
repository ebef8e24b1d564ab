"""Steps of a fit on a GPU: the first of a kind is an ordinary one, the second is recorded, the others are replays.

A small network's step takes less time than Python needs to launch its kernels; a replay launches them all at once. The
ordinary step lets libraries choose kernels and allocate workspaces, and makes what a loss keeps between steps (labels
that were drawn, a teacher's weights), so that the recording finds it on the card.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

#: Rows int64 [n, b] and jitter uint8 [n, b, 3] or None of each stream of a step.
Inputs = list[tuple[Tensor, Tensor | None]]


class Recorder:
    """Recorded steps of one group of models, on the CUDA stream ``queue``, which is the current one.

    All recordings take their memory from one pool: they run one after the other, and none reads what another left.
    """

    def __init__(self, queue: "torch.cuda.Stream") -> None:
        self.queue, self.pool = queue, torch.cuda.graph_pool_handle()
        self._kinds: dict[tuple[Any, ...], tuple[Inputs, torch.cuda.CUDAGraph] | None] = {}

    @property
    def recorded(self) -> bool:
        """Whether a step has been recorded, so that the memory of a step is taken."""
        return any(kind is not None for kind in self._kinds.values())

    def run(self, number: int, step: Callable[[Inputs], None], inputs: Inputs) -> None:
        """One ``step`` on ``inputs``; steps of the same ``number`` with inputs of the same shapes are of one kind."""
        kind = (number, *(tuple(rows.shape) for rows, _ in inputs))
        if kind not in self._kinds:
            step(inputs)
            self._kinds[kind] = None
            return
        made = self._kinds[kind]
        if made is None:
            places = [(rows.clone(), None if jitter is None else jitter.clone()) for rows, jitter in inputs]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self.pool, stream=self.queue):
                step(places)
            made = self._kinds[kind] = places, graph
        places, graph = made
        for (rows, jitter), (row_place, jitter_place) in zip(inputs, places, strict=True):
            row_place.copy_(rows)
            if jitter is not None and jitter_place is not None:
                jitter_place.copy_(jitter)
        graph.replay()

    def forget(self) -> None:
        """Drop all recordings, which the card must have run."""
        self._kinds.clear()
