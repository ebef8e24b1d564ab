"""Train models again on some rows for a few steps, and record their predictions during it."""

import numpy as np

from unlearning_audit.training.optim import Optimiser
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows, Stream


def read_steps(last: int) -> np.ndarray:
    """Return the numbers of training steps after which `curves` records predictions: 0, the powers of 2 below
    ``last``, and ``last``, in rising order, int64 [points]."""
    powers = 2 ** np.arange(int(np.log2(last)) + 1 if last else 0)  # up to ``last``; none if it is 0
    return np.unique(np.r_[0, powers, last])


def curves(stack: ModelStack, taught: Rows, rows: np.ndarray, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Let copies of the models learn the rows ``taught`` for up to ``last`` steps, and return what they predict after
    some of these steps (`read_steps`).

    The optimiser is that of the models' recipe, at its ``lr`` without a schedule and without augmentation. The stack is
    unchanged.

    Parameters
    ----------
    stack : ModelStack
        The models.
    taught : Rows
        The samples that each model learns.
    rows : int64 [rows]
        The samples that are predicted.
    last : int
        The largest number of steps.

    Returns
    -------
    steps : int64 [points]
        The numbers of steps after which samples are predicted, 0 among them.
    phi : float32 [models, points, rows]
        The logit-scaled confidence.
    right : bool [models, points, rows]
        Whether the prediction is right.
    """
    settings = {name: getattr(stack.recipe, name) for name in Optimiser.model_fields}
    optimiser = Optimiser(**{**settings, "schedule": "constant", "milestones": (), "augment": "none"})
    steps_per_epoch = -(-len(taught) // optimiser.batch_size)
    steps, predictions = read_steps(last), []
    for step in steps.tolist():
        # Each point trains from the start: a stopped optimiser loses its momentum. Batches come in the same order.
        learner = stack.copy()
        if step:
            epochs = -(-step // steps_per_epoch)  # as many as ``step`` steps take
            learner.fit(Stream(taught), optimiser=optimiser, epochs=epochs, steps=step, purpose="relearn")
        predictions.append(learner.predictions(rows))
    phi, right = (np.stack(arrays, axis=1) for arrays in zip(*predictions, strict=True))
    return steps, phi, right
