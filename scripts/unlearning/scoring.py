"""From logits to scores: what the adversary learns from its shadow models, asked about every target sample."""

from collections.abc import Iterator
from types import ModuleType

import numpy as np

from unlearning.attacks import Reference
from unlearning.case import Case
from unlearning.keyed import generator


def scored(case: Case, name: str, module: ModuleType, chosen: dict, seed: int) -> Iterator[dict[str, np.ndarray]]:
    """Yield the columns of `tables.write_scores` for one attack, once for each form of its knowledge.

    Raises ValueError if the attack returns a value that is not finite for a row it was asked about.
    """
    membership, target = case.membership, case.target
    shadow = membership[~target]
    for form, logits, member in (
        ("trained", case.original, shadow.train),
        ("unlearned", case.unlearned, shadow.forget),
    ):
        known = np.flatnonzero((member | shadow.heldout).any(0))
        reference = Reference(
            logits[~target][:, known], case.labels_of(~target)[..., known], member[:, known], shadow.heldout[:, known]
        )
        yield columns(case, name, form, module, chosen, reference, seed)


def asked(case: Case) -> np.ndarray:
    """The samples that attacks are asked about: forgotten or held out by some target model, int64 [rows]."""
    target = case.membership[case.target]
    return np.flatnonzero((target.forget | target.heldout).any(0))


def columns(
    case: Case, name: str, form: str, module: ModuleType, chosen: dict, reference: Reference, seed: int
) -> dict[str, np.ndarray]:
    """What one attack that learned from ``reference`` says about every target model. Raises ValueError as `scored`."""
    membership, rows = case.membership[case.target], asked(case)
    value, decision = module.score(
        case.unlearned[case.target][:, rows],
        case.labels_of(case.target)[..., rows],
        reference,
        module.Options(**chosen["options"]),
        generator(seed, "attack", name, form),
    )
    model, column = np.nonzero((membership.forget | membership.heldout)[:, rows])
    if not np.isfinite(value[model, column]).all():
        raise ValueError(f"attack {name!r} ({form}) returned scores that are not finite; mend its score function")
    return {
        "attack": np.full(len(model), name),
        "form": np.full(len(model), form),
        "model": model.astype(np.int32),
        "index": rows[column].astype(np.int32),
        "role": np.where(membership.forget[model, rows[column]], "forget", "heldout"),
        "score": value[model, column].astype(np.float64),
        "decision": decision[model, column],
    }
