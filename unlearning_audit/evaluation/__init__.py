"""What attacks and metrics are computed from: files of stages, the case that joins them, signals, rows of numbers."""
