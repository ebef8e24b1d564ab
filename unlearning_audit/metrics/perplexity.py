"""Perplexity of language models on retained, forgotten, held-out and test text.

Perplexity on retained and test text is the utility of a model in every verdict (`accuracy.effects`). The loss on
forgotten text enters verdicts through the attacks that use it, and not by itself.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from unlearning_audit.metrics import Estimate, Evaluation, Membership, Quantity, Row, _text, levels, splits, table

NEEDS = ("fair_draw",)

QUANTITIES = (
    Quantity(
        "nll", "NLL",
        reading="Mean negative log-likelihood per token in nats: the lower, the better the model knows the text.",
    ),
    Quantity(
        "perplexity",
        reading="e to the power of the mean negative log-likelihood per token: between how many tokens the model is in "
        "doubt. Lower on forgotten than on held-out text = still known; higher on test = the model is harmed.",
        columns=_text.by_role(16, "perplexity"),
    ),
    _text.above_retraining("nll_gap", "NLL", "Mean negative log-likelihood per token", "NLL gap", 30),
)  # fmt: skip


def rows(evaluation: Evaluation) -> list[Row]:
    """Return rows "nll", "perplexity" and, with retrained models, "nll_gap" for each role of samples that occurs:
    forget, heldout, retain and test.

    "nll" is the mean over models and samples of the negative log-likelihood per scored token in nats, and "perplexity"
    is e to that power. "nll_gap" is nll minus that of retrained models of the same splits: 0 = as if retrained. For
    retraining itself, "nll_gap" is the difference from its control, which shows the effect of chance. The rows of all
    target models come first. If target models are several swapped pairs (two splits, of which one forgets what the
    other never saw), the rows of each pair follow, with its number in the field ``pair``. Intervals cover models and
    samples. Raises ValueError for models that are not language models.
    """
    audited, files = _text.nll(evaluation.unlearned[evaluation.target]), _text.compared_files(evaluation)
    retrained = None if files is None else _text.nll(evaluation.outputs(files).logits[evaluation.target])

    def of_models(models: np.ndarray, member: Membership) -> list[Row]:
        """Return the rows of some ``models`` bool [target models], whose memberships are ``member``. ``audited`` and
        ``retrained`` have the negative log-likelihoods of all target models and of their retrained models or None."""
        roles = {name: mask for name, mask in _text.roles(evaluation.data.part == 1, member).items() if mask.any()}
        of_retrained = None if retrained is None else retrained[models]
        return loss_rows(audited[models], of_retrained, roles, **splits(member))

    return _text.rows_by_pair(evaluation, of_models)


def loss_rows(
    audited: np.ndarray, retrained: np.ndarray | None, roles: dict[str, np.ndarray], **places: Any
) -> list[Row]:
    """Return rows "nll", "perplexity" and "nll_gap" for each of ``roles``, with intervals over models and samples.
    Models with fewer than two samples of a role are left out; if no model is left, the rows are NaN with the reason.

    Parameters
    ----------
    audited, retrained
        float64 [models, samples]: the mean negative log-likelihood of each sample by audited and by retrained models;
        without retrained models there is no gap.
    roles
        Name of a role → which samples have it, bool [models, samples].
    places
        int64 [models]: "split", "block" and "copied" (each model's original; None without copies), from `splits`.
    """
    lines = []
    for name, mask in roles.items():
        mean = levels.level(value=audited, rows=mask, **places, low=0.0)
        estimates = {"nll": mean, "perplexity": exponential(mean)}
        if retrained is not None:
            estimates["nll_gap"] = levels.level(value=audited - retrained, rows=mask, **places)
        lines += table(estimates, role=name)
    return lines


def exponential(estimate: Estimate) -> Estimate:
    """Return e to the power of an estimate and of its limits. The interval covers as often, because e^x rises with x.
    Powers above 700 are cut to 700, because e to a larger power may be infinite."""
    value, low, high = (math.exp(min(power, 700.0)) for power in (estimate.value, estimate.low, estimate.high))
    return replace(estimate, value=value, low=low, high=high)
