"""Comparisons across methods: distance from retraining, and what each metric is worth."""
