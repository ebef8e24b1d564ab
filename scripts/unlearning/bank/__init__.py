"""N models trained and edited together, each as if it were alone: engines, loop, private training, curvature."""
