"""Protocols: every one is a way to draw who saw what.

A protocol defines ``class Options(Settings)``; ``blocks(options)``, how many blocks each population has;
and ``draw(block, population, data, options, seed)``, the memberships of one block. A block is the smallest
set of models that is balanced in itself; block i depends on (seed, i) only, so that more blocks never
change the earlier ones.

It also says what is computed from its models: ``METRICS`` (names in metrics/), ``ATTACKED`` (whether attacks
score them first), ``COUNTS`` (options that count blocks and change none of them), ``GRADIENTS`` (whether
gradient norms of the forget set are kept with the logits) and ``REFERENCES`` (methods, retrain and an
independent retrain, whose logits the metrics compare with). ``FORGETS = False`` means that nothing is unlearned;
``OWN_ROWS = True`` that attacks may be named although there are no shadow models: each learns from rows of the audited
model itself. ``ALSO`` names metrics that are computed only where a scenario names them under ``metrics``,
``SYSTEM`` the system of evaluation that the protocol is a part of, if it is not one by itself.

A protocol with ``SELECTS`` names a metric whose ``select(case, settings)`` tells which samples its models memorise. One
with ``selects_from(options)``, the name of such a scenario, gets that `Selection` as the last argument of ``draw``.
"""
