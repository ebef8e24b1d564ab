"""Attacks, a file each: logits and membership in, one score and one decision per (model, sample) out.

``PROBABILITY = True`` in an attack's file says that its score is the probability of membership. ``NEEDS`` names what
it reads besides logits, one of `adversary.reference.SIGNALS`: it gets that of the audited models by this name, and of
its own models in the reference.
"""
