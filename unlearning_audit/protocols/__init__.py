"""Protocols, a file each: they draw which models see and forget which samples.

A protocol defines four things: ``class Options(Settings)``; ``blocks(options)``, the number of blocks of each
population; ``draw(block, population, data, options, seed)``, the memberships of one block; and ``PROTOCOL``, which
declares what is computed from its models (`plugins.declarations.Protocol`). A block is the smallest set of models that
is balanced in itself. Block i depends only on (seed, i), so that more blocks never change the earlier ones.

A protocol may define ``selects_from(options)``, which returns the name of a scenario whose selection it needs. Then
``draw`` gets that `Selection` as its last argument.
"""
