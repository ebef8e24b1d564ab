"""A folder's populations as cases that need no files."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.cohort import Group
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.plugins import registry

import metric_calls as call
from held_answers import Held

Y = np.tile([0, 1, 2], 5)
PART = (np.arange(15) >= 12).astype(np.uint8)
SETTINGS = {
    "design": "given",
    "metrics": {"phi": {"fpr": [0.25]}, "competition": {"groups": 3}},
    "seed": 0, "bootstrap": 50, "paper_set": ["a"], "adaptive_set": ["a"],
}  # fmt: skip


def pair(models: int = 2) -> Membership:
    """A swapped pair: samples 0 to 2 against 3 to 5, of which models of either split keep 6 to 11."""
    split = np.repeat([0, 1], models)
    first, second = np.arange(15) < 3, (np.arange(15) >= 3) & (np.arange(15) < 6)
    forget = np.where(split[:, None] == 0, first, second)
    heldout = np.where(split[:, None] == 0, second, first)
    train = ~heldout & (PART == 0)
    count = 2 * models
    return Membership(train, forget, heldout, np.arange(count), split, np.zeros(count, int), np.zeros(count, bool))


def population(member: Membership, seed: int = 0, *, y=Y, trace: float = 0.0, scores=None, others=None) -> Evaluation:
    """Random logits in which forgotten samples are surer by ``trace``."""
    logits = np.random.default_rng(seed).normal(size=(*member.train.shape, 3))
    logits += trace * member.forget[..., None] * np.eye(3)[y]
    evaluation = Evaluation(
        "", [], [], ["own"], imported=True, scores_file=scores and "scores",
        others={name: Group(other, ["own"]) for name, other in (others or {}).items()},
    )  # fmt: skip
    evaluation.__dict__.update(
        data=SimpleNamespace(y=y, part=PART, y_clean=y, x=np.zeros((len(y), 0))), membership=member, unlearned=logits,
        scores=scores or {}, updates={}, failed_attacks={}, selection=None, published=None,
        outputs=lambda files: Held(logits),
    )  # fmt: skip
    return evaluation


def same_forget(models: int = 3, samples=(0, 1, 2)) -> Membership:
    """Models that all forget the same samples and keep six others."""
    member = pair(models)[np.arange(models)]
    forget = np.tile(np.isin(np.arange(15), samples), (models, 1))
    return replace(member, forget=forget, train=member.train | forget, heldout=member.heldout & ~forget)


def parts(evaluation: Evaluation, settings: dict) -> dict:
    """The effects of all metrics that are computed without being named."""
    together = {}
    for name in registry.defaults(registry.protocol("external").offers):
        module = registry.load("metrics", name)
        if hasattr(module, "effects") and "published" not in module.NEEDS:
            together |= call.parts(module, evaluation, settings)
    return evaluation.for_verdicts(together)
