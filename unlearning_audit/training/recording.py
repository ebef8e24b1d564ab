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


def run_step(recorder: "Recorder | None", number: int, step: Callable[[Inputs], None], inputs: Inputs) -> None:
    """Run one ``step`` of the pass with this ``number`` on ``inputs``. A ``recorder``, if there is one, may record the
    step as a CUDA graph, or replay it (`Recorder.run`)."""
    if recorder is None:
        step(inputs)
    else:
        recorder.run(number, step, inputs)


class Recorder:
    """The recorded steps of one group of models, as CUDA graphs on the group's CUDA stream, which is the current one.

    All recordings share one memory pool: they run one at a time, and none reads what another has left.
    ``_recordings``: kind of step → the tensors from which its CUDA graph reads the inputs, and the graph. It is None if
    a step of the kind was run, but none was recorded yet.
    """

    def __init__(self, cuda_stream: "torch.cuda.Stream") -> None:
        self.cuda_stream, self.pool = cuda_stream, torch.cuda.graph_pool_handle()
        self._recordings: dict[tuple[Any, ...], tuple[Inputs, torch.cuda.CUDAGraph] | None] = {}

    @property
    def has_recording(self) -> bool:
        """Whether a step has been recorded, so that the memory of steps is allocated."""
        return any(recording is not None for recording in self._recordings.values())

    def run(self, number: int, step: Callable[[Inputs], None], inputs: Inputs) -> None:
        """Run one ``step`` on ``inputs``. The first step of a kind runs normally, so that libraries choose kernels and
        allocate memory. The second is recorded as a CUDA graph and then replayed, and all later ones are replayed.

        Steps with the same ``number`` of their pass and inputs of the same shapes are of one kind. They must have
        jitter all or none. A later ``step`` is not called: the first recording is replayed, so all that a step reads
        besides its ``inputs`` must stay in the same tensors.
        """
        kind = (number, *(tuple(rows.shape) for rows, _ in inputs))
        if kind not in self._recordings:
            step(inputs)
            self._recordings[kind] = None
            return
        recording = self._recordings[kind]
        if recording is None:
            kept_inputs = [(rows.clone(), None if jitter is None else jitter.clone()) for rows, jitter in inputs]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self.pool, stream=self.cuda_stream):
                step(kept_inputs)  # only recorded, not computed
            recording = self._recordings[kind] = kept_inputs, graph
        kept_inputs, graph = recording
        # The graph reads its inputs from the same tensors in every replay.
        for (rows, jitter), (kept_rows, kept_jitter) in zip(inputs, kept_inputs, strict=True):
            kept_rows.copy_(rows)
            if jitter is not None and kept_jitter is not None:
                kept_jitter.copy_(jitter)
        graph.replay()

    def forget(self) -> None:
        """Drop all recordings. The card must have finished running them."""
        self._recordings.clear()
