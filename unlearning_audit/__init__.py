"""Measure whether a model really forgot: the command ``audit``."""
