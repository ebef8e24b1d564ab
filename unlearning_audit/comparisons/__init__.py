"""Comparisons of all methods of a scenario: distances from retraining, verdicts and ranks, and the quality of each
metric."""
