"""Randomness by name: a room of its own, so that statistics are no part of the key of data, splits and models."""
