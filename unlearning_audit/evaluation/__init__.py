"""What attacks and metrics are computed from: the files of stages, `Evaluation` which joins them, signals, rows of
numbers."""
