"""Accuracy on retained, forgotten, held-out and test samples."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.evaluation.evaluation import UNKNOWN, Evaluation
from unlearning_audit.metrics import Comparison, Estimate, Quantity, Row, _text, no_value, or_none, rates, row, splits
from unlearning_audit.stats.logits import lead

NEEDS = ("forgotten",)
DEFAULT = "forgotten"

QUANTITIES = (
    Quantity(
        "accuracy", "accuracy", reading="Share of samples that the model classifies as labelled.",
        printed="{role}_accuracy{on_target}",
        columns=_text.by_role(12, "accuracy"),
    ),
    Quantity(
        "accuracy_gap", ideal=0.0, printed="{role}_accuracy_gap{on_target}", unsigned=True,
        comparisons=(Comparison("accuracy gap", 12, ideal=0.0, two_sided=True, role="forget", retrained=True),),
    ),
    Quantity("majority_share"),
)  # fmt: skip


def rows(evaluation: Evaluation) -> list[Row]:
    """Return the accuracy of the target models on retained, forgotten, held-out and test samples, as rows with the
    field ``role``. The test part is judged by its clean labels.

    "majority_share" is the accuracy of always predicting the most frequent label, on retained samples. With retrained
    models, "accuracy_gap" follows: how much more often retrained models are right than the target models. [] if all
    samples have one label, as passages of text do. Imported models get a row "accuracy" with the reason, in place of a
    number, for a role that is not known.
    """
    table = of_models(evaluation, evaluation.target)
    if not table:
        return []
    roles = {line.role for line in table}
    unknown = UNKNOWN.items() if evaluation.imported else ()
    return table + [no_value("accuracy", why, role=role) for role, why in unknown if role not in roles]


def of_models(evaluation: Evaluation, models: np.ndarray) -> list[Row]:
    """Return rows "accuracy", "majority_share" and "accuracy_gap" of some ``models`` bool [models], for each role.

    Accuracy is the mean over models of each model's share of right predictions (a NaN logit is wrong). Its interval
    covers samples, the same ones in all models together, and models. "majority_share" is the accuracy of always
    predicting the most frequent label among retained samples. "accuracy_gap" is how much more often retrained models
    are right than the given ``models``. [] if all samples have one label. Roles without samples have no row.
    """
    if np.ptp(evaluation.labels) == 0:
        return []
    places, roles = splits(evaluation.membership[models]), roles_and_labels(evaluation, models)
    predicted = evaluation.outputs(evaluation.unlearned_files).predicted(models)
    table = [
        row(metric="accuracy", role=role, estimate=rates.rate(hit=predicted == labels, rows=rows, **places))
        for role, (rows, labels) in roles.items()
    ]
    table.append(row(metric="majority_share", role="retain", estimate=_majority(*roles["retain"])))
    retrained = or_none(evaluation.outputs, evaluation.compared_files)
    if retrained is not None:
        of_retrained = retrained.predicted(models)
        for role, (rows, labels) in roles.items():
            gap = rates.rate(hit=of_retrained == labels, less=predicted == labels, rows=rows, **places)
            table.append(row(metric="accuracy_gap", role=role, estimate=gap))
    return [line for line in table if line.n]


def roles_and_labels(evaluation: Evaluation, models: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return role → which samples each model has in it, and the labels that are right: bool and int [models, samples].

    The right labels are those that the models were trained with, and for the test part the clean ones.

    Parameters
    ----------
    models
        bool [all models]: the models to return.
    """
    member = evaluation.membership[models]
    trained_with = np.broadcast_to(evaluation.labels_of(models), member.forget.shape)
    clean = np.broadcast_to(evaluation.data.y_clean, member.forget.shape)
    samples = _text.roles(evaluation.data.part == 1, member)
    roles = ("retain", "forget", "heldout", "test")
    return {role: (samples[role], clean if role == "test" else trained_with) for role in roles}


#: Accuracy as utility, compared with that of retrained models.
UTILITY = DecisionRule(-1, "accuracy", deciding=False, lowest=0.0, highest=1.0)

#: Accuracy on the forget set, which is higher before unlearning than after retraining.
FORGOTTEN = replace(UTILITY, direction=1, deciding=True)


def effects(evaluation: Evaluation, forgotten: bool = False) -> dict[str, Effect]:
    """Return "accuracy_retain" and "accuracy_test" → the accuracy of each target model on its retained and on the test
    samples. Verdicts read them as utility.

    If all samples have one label, the models are language models, and the mean negative log-likelihood takes the place
    of accuracy ("nll_…"). If the test part is empty, "accuracy_heldout" replaces "accuracy_test". With ``forgotten``,
    "accuracy_forget" follows. A role that is empty for some model is left out.
    """
    if np.ptp(evaluation.labels) == 0:
        return _text.utilities(evaluation, forgotten)
    units = _text.units(evaluation.membership[evaluation.target])
    outputs = evaluation.outputs(evaluation.unlearned_files)
    every_role = roles_and_labels(evaluation, evaluation.target)  # role → (samples, labels), [target models, samples]
    unseen = "test" if every_role["test"][0].any() else "heldout"  # a destroyed model is wrong on what no model saw
    names = ("retain", unseen, "forget") if forgotten else ("retain", unseen)
    roles = {role: every_role[role] for role in names if every_role[role][0].any(axis=1).all()}
    predicted = outputs.predicted(evaluation.target)
    latent = _latent(outputs.by_model(evaluation.target), roles)
    accuracies = {}
    for role, (rows, labels) in roles.items():
        columns = np.flatnonzero(rows.any(axis=0))
        share = _text.mean((predicted == labels)[:, columns], rows[:, columns])
        rule = FORGOTTEN if role == "forget" else UTILITY
        accuracies[f"accuracy_{role}"] = single(**vars(share), **units, index=columns, rule=rule, latent=latent[role])
    return accuracies


def accuracies_by_role(evaluation: Evaluation) -> dict[str, Effect]:
    """Return "accuracy_retain", "accuracy_test" and "accuracy_forget" → the accuracy of each target model on these
    samples; of language models "nll_…", the mean negative log-likelihood (`effects` with ``forgotten``).

    Tuning uses it where a method must match the accuracies of retraining (Naderloui et al. 2025, appendix A.2).
    """
    return effects(evaluation, forgotten=True)


def _latent(by_model: Iterable[np.ndarray], roles: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return role → the mean lead of each model divided by the standard deviation of its leads: float64 [models].

    A sample's lead is the logit of its label minus the largest other logit. If leads were normal, the result would be
    the probit of the accuracy. The result also distinguishes models that all have an accuracy of 1.

    Parameters
    ----------
    by_model
        The logits of each model, [samples, classes].
    roles
        Role → which samples each model has in it, and the labels that are right: bool and int [models, samples].
    """
    latent: dict[str, list[float]] = {role: [] for role in roles}
    for model, logits in enumerate(by_model):
        for role, (rows, labels) in roles.items():
            leads = lead(logits=logits[rows[model]], y=labels[model, rows[model]])
            mean, spread = float(leads.mean()), float(leads.std())
            # The least spread keeps the quality finite where all leads are equal.
            latent[role].append(mean / max(spread, 1e-9 * max(abs(mean), 1.0)))
    return {role: np.array(values) for role, values in latent.items()}


def _majority(rows: np.ndarray, y: np.ndarray) -> Estimate:
    """Return the mean over models of the share of the most frequent label, with limits that equal it, because it is
    counted. NaN if no model has a sample.

    Parameters
    ----------
    rows
        bool [models, samples]: the samples of each model that count.
    y
        int [models, samples]: the labels.
    """
    shares = [np.bincount(labels[mask]).max() / mask.sum() for labels, mask in zip(y, rows, strict=True) if mask.any()]
    value = float(np.mean(shares)) if shares else np.nan
    return Estimate(value, low=value, high=value, n=int(rows.any(axis=0).sum()))
