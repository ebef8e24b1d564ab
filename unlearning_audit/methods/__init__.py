"""Unlearning methods: one file each, in the notation of its paper.

A method defines ``class Options(Settings)`` and ``unlearn(stack, forget, retain, options)``, which changes the
models of the stack so that they forget the rows ``forget`` and keep the rows ``retain``.

Defaults are for small problems (a few hundred samples, a small network). Where a paper or its code has other
values, the docstring of the options names them, and the study of that paper sets them.
"""
