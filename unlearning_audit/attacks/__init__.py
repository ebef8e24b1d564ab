"""Attacks, a file each: logits and membership in, one score and one decision per (model, sample) out.

``PROBABILITY = True`` in an attack's file declares that its score is the probability of membership. ``NEEDS`` names a
signal that it reads besides logits, one of `unlearning_audit.signals` or several: for the audited models it is
passed to ``score`` by this name, that of shadow models is in ``shadow``.

What attacks are written with is imported from here.
"""

from unlearning_audit.evaluation import density, per_sample, signals, thresholds
from unlearning_audit.evaluation.shadow import Score, Shadow
from unlearning_audit.plugins.settings import Settings

__all__ = ["Score", "Settings", "Shadow", "density", "per_sample", "signals", "thresholds"]
