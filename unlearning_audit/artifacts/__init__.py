"""File formats between stages: every file is written whole or not at all, and checked when it is read."""
