"""Attacks, a file each: logits and membership in, one score and one decision per (model, sample) out.

``PROBABILITY = True`` in an attack's file declares that its score is the probability of membership. ``NEEDS`` names a
signal that it reads besides logits, one of `unlearning_audit.signals` or several: for the audited models it is
passed to ``score`` by this name, for shadow models it is in the reference.
"""
