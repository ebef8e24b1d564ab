"""Keyed random generators; apart from stats/, so that statistics are not in the keys of data, splits and models."""
