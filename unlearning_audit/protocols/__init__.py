"""Protocols, a file each: how memberships are drawn, and what is computed from the models.

A protocol defines ``class Options(Settings)``; ``blocks(options)``, how many blocks each population has;
``draw(block, population, data, options, seed)``, the memberships of one block; and ``PROTOCOL``, a record of what is
computed from its models (`plugins.declarations.Protocol`). A block is the smallest set of models that is balanced in
itself; block i depends on (seed, i) only, so that more blocks never change the earlier ones.

A protocol may define ``selects_from(options)``, the name of a scenario whose selection it needs; it gets that
`Selection` as the last argument of ``draw``.
"""
