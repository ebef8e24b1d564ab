"""What attacks share: the audited case, signals, thresholds, densities, and what the adversary may learn from."""
