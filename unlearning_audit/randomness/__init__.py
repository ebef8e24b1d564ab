"""Keyed random generators. They are not in stats/, so that changes of statistics do not change the keys of data, splits
and models."""
