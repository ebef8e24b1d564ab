"""Unlearning methods: one file each, which reads like its paper.

A method defines ``class Options(Settings)`` and ``unlearn(bank, forget, retain, options)``, which changes the
models of the bank so that they forget the rows ``forget`` and keep the rows ``retain``.

Defaults suit small problems (a few hundred samples, a small network): enough steps to have an effect there.
Where a paper or its code prints another value, the options say so, and the studies of that paper set it.
"""
