"""Record the steps of a fit on a GPU: the first step of a kind runs normally, the second is recorded, the others are
replayed.

A small network's step takes less time than Python needs to launch its kernels; a replay launches them all at once. The
normal step lets libraries choose kernels and allocate workspaces. It also makes what a loss keeps between steps (drawn
labels, a teacher's weights), so that the recording finds it on the card.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

#: Rows int64 [n, b] and jitter uint8 [n, b, 3] or None of each stream of a step.
Inputs = list[tuple[Tensor, Tensor | None]]


def taken(recorder: "Recorder | None", number: int, step: Callable[[Inputs], None], inputs: Inputs) -> None:
    """Run one ``step`` of the pass ``number`` on ``inputs``, through the ``recorder`` if there is one: it records the
    step, or replays a recording of it (`Recorder.run`)."""
    if recorder is None:
        step(inputs)
    else:
        recorder.run(number, step, inputs)


class Recorder:
    """The recorded steps of one group of models, on the CUDA stream ``queue``, which is the current one.

    All recordings share one memory pool: they run one at a time, and none reads what another has left. ``_kinds``: kind
    of step → the tensors from which its recording reads its inputs, and the recording; None after the first such step.
    """

    def __init__(self, queue: "torch.cuda.Stream") -> None:
        self.queue, self.pool = queue, torch.cuda.graph_pool_handle()
        self._kinds: dict[tuple[Any, ...], tuple[Inputs, torch.cuda.CUDAGraph] | None] = {}

    @property
    def recorded(self) -> bool:
        """Whether a step has been recorded, and so its memory is allocated."""
        return any(kind is not None for kind in self._kinds.values())

    def run(self, number: int, step: Callable[[Inputs], None], inputs: Inputs) -> None:
        """Run one ``step`` on ``inputs``: the first of its kind normally, the second while recording it, all later ones
        by replay.

        Steps with the same ``number`` and inputs of the same shapes are of one kind.
        """
        kind = (number, *(tuple(rows.shape) for rows, _ in inputs))
        if kind not in self._kinds:
            step(inputs)
            self._kinds[kind] = None
            return
        recording = self._kinds[kind]
        if recording is None:
            places = [(rows.clone(), None if jitter is None else jitter.clone()) for rows, jitter in inputs]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self.pool, stream=self.queue):
                step(places)
            recording = self._kinds[kind] = places, graph
        places, graph = recording
        for (rows, jitter), (row_place, jitter_place) in zip(inputs, places, strict=True):
            row_place.copy_(rows)
            if jitter is not None and jitter_place is not None:
                jitter_place.copy_(jitter)
        graph.replay()

    def forget(self) -> None:
        """Drop all recordings. The card must have finished running them."""
        self._kinds.clear()
