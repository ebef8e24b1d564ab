"""Representations: the layers beneath the last one, which methods that change the last layer alone leave unchanged.

The last hidden layers of forgotten samples are compared with those of retrained models and of the models before
unlearning, by linear CKA (Kornblith et al. 2019). A new last layer, a linear probe (Alain & Bengio 2017), is learned
from retained samples, to see whether it still distinguishes forgotten from held-out ones.
"""

import warnings
from collections.abc import Iterator

import numpy as np

from unlearning_audit.metrics import NO_RETRAINED, Evaluation, Quantity, Row, no_value, privleak, row, splits, stats
from unlearning_audit.stats import alignment, crossed, levels
from unlearning_audit.store.files import NoAnswerError

NEEDS = ("forgotten", "weights", "features")

QUANTITIES = (
    Quantity(
        "cka_retrained", "CKA with retrained models", "higher",
        reading="Likeness of the last hidden layers of forgotten samples to those of retrained models: 1 = equal up to "
        "rotation and scale, 0 = nothing in common.",
    ),
    Quantity(
        "cka_gap", "CKA, beyond retraining", "higher", ideal=0.0,
        reading="That likeness less the one that two retrained models have: 0 = like another retraining, below = less.",
    ),
    Quantity(
        "cka_original", "CKA with the original",
        reading="Likeness of the last hidden layers of forgotten samples to those before unlearning: 1 = unchanged "
        "beneath the last layer.",
    ),
    Quantity(
        "probe_auc", "AUC of a new last layer",
        reading="Area under the ROC curve of forgotten against held-out samples by the confidence of a last layer that "
        "is learned anew from kept samples: 0.5 = chance.",
    ),
)  # fmt: skip


def rows(evaluation: Evaluation) -> list[Row]:
    """Return rows on the last hidden layers of the target models, each with an interval over models and samples.

    "probe_auc" is the AUC of forgotten against held-out samples by a new last layer that is learned from retained
    samples. "cka_retrained" is the similarity (CKA) on forgotten samples to retrained models, and "cka_gap" this
    similarity minus that of two retrained models; it is left out for retraining itself, and without a control.
    "cka_original" is the similarity to the models before unlearning. Other rows that cannot be computed have the reason
    in place of a number.
    Raises NoAnswerError if the models before unlearning failed.
    """
    before = _row(evaluation, "cka_original", cka(evaluation, evaluation.unlearned_files, evaluation.originals))
    return [probe_row(evaluation), *cka_rows(evaluation), before]


def cka_rows(evaluation: Evaluation) -> list[Row]:
    """Return the row "cka_retrained", the similarity of the last hidden layers of forgotten samples to those of
    retrained models, and "cka_gap", that minus the similarity of retrained models to the control, which was retrained
    independently.

    "cka_gap" is left out for retraining itself, and where there is no control. A row has the reason in place of a
    number where the models to compare with are missing or failed.
    """
    unlearned, retrained, control = evaluation.unlearned_files, evaluation.compared_files, evaluation.control_files
    metric, lines = "cka_retrained", []  # ``metric``: the row being computed, which an error is reported in
    if not retrained:
        return [no_value(metric, NO_RETRAINED, role="forget")]
    try:
        of_unlearned = cka(evaluation, unlearned, retrained)
        lines.append(_row(evaluation, metric, of_unlearned))
        is_retraining = unlearned in (evaluation.retrained_files, control)  # whether the method itself is retraining
        if control and not is_retraining:
            metric = "cka_gap"
            of_control = cka(evaluation, control, retrained)
            lines.append(_row(evaluation, metric, levels.difference(of_unlearned, of_control)))
    except NoAnswerError as error:
        lines.append(no_value(metric, str(error), role="forget"))
    return lines


def cka(evaluation: Evaluation, files: list[str], counterparts: list[str]) -> crossed.PerModel:
    """Return the linear CKA of the last hidden layers of forgotten samples between each target model and its
    counterpart, with influences [models, samples].

    The counterpart of a model has the same position in its files. NaN where a model has fewer than `alignment.LEAST`
    forgotten samples with layers, or one of the two has the same layer for all of them.

    Parameters
    ----------
    files, counterparts
        The models' files of logits, beside which their hidden layers lie.

    Raises
    ------
    NoAnswerError
        Where target models or counterparts failed.
    """
    forget = evaluation.membership[evaluation.target].forget
    value, influence = np.zeros(len(forget)), np.zeros(forget.shape)
    pairs = zip(_layers(evaluation, files), _layers(evaluation, counterparts), strict=True)
    for model, ((index, layer), (_, layer_of_counterpart)) in enumerate(pairs):
        forgotten = forget[model, index]
        value_and_influence = alignment.linear_cka(x=layer[forgotten], y=layer_of_counterpart[forgotten])
        value[model], influence[model, index[forgotten]] = value_and_influence
    return crossed.PerModel(value, influence, imagined=np.zeros((len(value), 2)))  # imaginary samples have no influence


def probe_row(evaluation: Evaluation) -> Row:
    """Return the row "probe_auc": the AUC of forgotten against held-out samples by φ of a last layer that is learned
    from retained samples, as a mean over target models.

    Samples whose label no retained sample of the model has are left out. The row has the reason in place of a number if
    the retained samples of a model have one label, or if a model has no forgotten or no held-out sample left.
    """
    member, labels = evaluation.membership[evaluation.target], evaluation.labels_of(evaluation.target)
    labels = np.broadcast_to(labels, member.forget.shape)
    score = np.full(labels.shape, np.nan)
    for model, (index, features) in enumerate(_layers(evaluation, evaluation.unlearned_files)):
        y, retained = labels[model, index], member.retain[model, index]
        classes = np.unique(y[retained])
        query = ~retained & np.isin(y, classes)  # the samples to score
        if len(classes) < 2:
            return no_value("probe_auc", "kept samples have a single label, of which no last layer can be learned")
        if query.any():
            score[model, index[query]] = probe(features[retained], y[retained], features[query], y[query])
    scored, score = ~np.isnan(score), np.nan_to_num(score)
    forget, heldout = member.forget & scored, member.heldout & scored
    if not (forget.any(axis=1) & heldout.any(axis=1)).all():
        return no_value("probe_auc", "a model has no forgotten or no held-out samples with a label that kept ones have")
    return row(metric="probe_auc", estimate=privleak.auc(score, forget, heldout, **splits(member)))


def probe(retained: np.ndarray, y: np.ndarray, query: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return φ, the confidence in the ``labels``, by a logistic regression on features: float64 [query].

    The regression is multinomial, with a ridge of 1, on features in standard deviations of the retained samples.

    Parameters
    ----------
    retained
        float [retained, features]: features of the retained samples, from which the regression is learned.
    y
        int64 [retained]: the labels of these samples.
    query
        float [query, features]: the samples to judge.
    labels
        int64 [query]: the labels of the samples to judge.
    """
    from sklearn.exceptions import ConvergenceWarning  # slow to import, and seldom needed
    from sklearn.linear_model import LogisticRegression

    retained, query = retained.astype(np.float64), query.astype(np.float64)
    centre, spread = retained.mean(axis=0), retained.std(axis=0)
    retained, query = ((x - centre) / np.where(spread > 0, spread, 1.0) for x in (retained, query))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # after 1,000 steps nothing moves that a rank could show
        model = LogisticRegression(max_iter=1000).fit(retained, y)
    logits = model.decision_function(query)
    if logits.ndim == 1:  # of two classes, scikit-learn returns the log-odds of the second alone
        logits = np.stack([np.zeros(len(logits)), logits], axis=1)
    return stats.phi(logits=logits, y=np.searchsorted(model.classes_, labels))


def _layers(evaluation: Evaluation, files: list[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each target model the numbers of the queried samples int64 [rows], and its last hidden layer for them,
    float32 [rows, width]. ``files``: the models' files of logits. Rows that fill up a batch, whose number is −1, are
    left out."""
    for batch in evaluation.features(files):
        for features, index in zip(batch.features, batch.index, strict=True):
            yield index[index >= 0], features[index >= 0]


def _row(evaluation: Evaluation, metric: str, values: crossed.PerModel) -> Row:
    """Return the row of a ``metric``: the mean over models of its ``values``, with an interval over samples, models and
    pairs; without a number where a model's value is NaN."""
    if np.isnan(values.value).any():
        why = f"a model has the same features for all forgotten samples, or fewer than {alignment.LEAST} of these"
        return no_value(metric, why, role="forget")
    member = evaluation.membership[evaluation.target]
    n = int(member.forget.any(axis=0).sum())
    estimate = levels.mean(values, **splits(member), n=n, bounds=(-1, 1), units=True)
    return row(metric=metric, role="forget", estimate=estimate)
