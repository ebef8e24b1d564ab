"""What attacks share: the case that is judged, signals, thresholds, densities, and who may learn from whom."""
