"""Signals: what attacks and metrics read of models beyond their logits, a file each, named in their ``NEEDS``.

A user's own signal lies beside the attack or metric that needs it, and defines ``measure(network, x, y)``, which
returns an array [samples, …] for one network and some samples. A file in this folder may ask for more.

A signal that is computed from a stack of models defines ``read(stack, member, rows, settings)``, which returns an array
[models, rows, …]. ``rows`` int64 [rows] are the samples that some model forgets or that are held out, or what the
signal's own ``about(member, data, settings)`` returns. Shadow models are queried as well. Attacks and metrics get the
array by `Evaluation.signal`, with NaN for samples that were not queried.

A signal that follows from results that exist defines ``values(evaluation, files, models, rows)`` instead, which returns
float64 [models, rows, …]. ``models`` bool [models] selects models whose logits are in ``files``; ``rows`` int64 [rows]
selects samples of the data.

A signal that is not an array of samples is kept as a ``RECORD``, the type that its ``read`` returns. Only metrics read
it, and only of the defender's models. It needs a ``ROLE``, the name by which a metric's job gets it, and
``without_models(rows, settings)``, which returns the record of a batch that has only shadow models. One with
``asked(options)``, which returns its settings from the options of all metrics that need it, is read of retrained models
too. ``OF_TEXTS = True``: only language models can be queried.

What signals are written with is imported from here.
"""

from unlearning_audit.evaluation.arrays import ArtifactError, Data, Membership
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.training.lazy import ModelStack

__all__ = ["ArtifactError", "Data", "Evaluation", "Membership", "ModelStack"]
