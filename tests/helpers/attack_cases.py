"""Logits with a known phi, and references drawn from known distributions of it."""

import numpy as np
from unlearning_audit.evaluation.shadow import Shadow
from unlearning_audit.plugins import registry


def logits_of(phi, y, classes=3):
    """Logits float32 [models, samples, classes] whose label has exactly this phi and whose others are equal."""
    phi = np.asarray(phi, dtype=np.float64)
    y = np.broadcast_to(y, phi.shape)
    logits = np.zeros((*phi.shape, classes), dtype=np.float32)
    np.put_along_axis(logits, y[..., None], (phi + np.log(classes - 1))[..., None].astype(np.float32), axis=-1)
    return logits


def two_gaussians(rng, models, samples, *, d, classes=3, share=0.5):
    """phi ~ N(d, 1) for members and N(0, 1) for non-members: logits, y [samples], member."""
    y = rng.integers(classes, size=samples)
    member = rng.random((models, samples)) < share
    return logits_of(rng.normal(size=(models, samples)) + d * member, y, classes), y, member


def shadow_of(logits, y, member):
    return Shadow(logits=logits, y=y, member=member, nonmember=~member)


def run(attack, logits, y, shadow, seed=0, signals=None, **options):
    """Score and decision of an attack with some options, which reads ``signals`` of the audited models."""
    given = logits, y, shadow, getattr(attack, "Options", dict)(**options), np.random.default_rng(seed)
    return registry.call("attacks", attack, "score", *given, **signals or {})


def same_order(first, second, *, beyond=1e-5):
    """Whether ``first`` grows with ``second``; falls of less than ``beyond`` are rounding between neighbours."""
    return bool((np.diff(first.ravel()[np.argsort(second, axis=None)]) > -beyond).all())


def advantage(decision, member):
    return decision[member].mean() - decision[~member].mean()
