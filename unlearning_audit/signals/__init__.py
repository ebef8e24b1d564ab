"""Signals: what attacks and metrics read of models beyond their logits, a file each, named in their ``NEEDS``.

A signal that models are asked for defines ``read(bank, member, rows, settings)``, an array [models, rows, …], where
``rows`` int64 [rows] are the samples that some model forgets or that are held out, or what its own ``about(member,
data, settings)`` says. Shadow models are asked as well. Attacks and metrics get it by `Evaluation.signal`, with NaN
for samples that nobody asked about.

One that follows from what is known already defines ``values(case, files, models, rows)`` instead, float64 [models,
rows, …], of some ``models`` bool [models] whose logits are in ``files``, for ``rows`` int64 [rows] of the data.

What is no array of samples is kept as a ``RECORD``, which ``read`` returns and metrics alone read, of the defender's
models alone; it needs a ``ROLE`` of its own among `unlearning_audit.workflow.nodes.ROLES` and ``nothing(rows,
settings)``, of no model. ``OF_TEXTS = True``: only language models can be asked.
"""
