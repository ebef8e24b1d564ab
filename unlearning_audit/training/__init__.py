"""N models, trained and edited together yet independent of each other: engines, loop, private training, curvature."""
