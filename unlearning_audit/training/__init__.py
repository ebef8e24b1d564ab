"""Train and edit N independent models together: engines, training loop, private training, curvature."""
