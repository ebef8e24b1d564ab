"""What only several methods side by side can tell: how far each is from retraining, and what each metric is worth."""
