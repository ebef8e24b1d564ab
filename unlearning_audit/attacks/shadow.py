"""A classifier of membership, trained on the outputs of shadow models (Shokri et al. 2017)."""

import warnings
from collections.abc import Callable
from typing import Literal

import numpy as np

from unlearning_audit.attacks import Reference, Score, Settings, signals
from unlearning_audit.evaluation import logistic

BOUND = 20.0
"""Log-probabilities below −20 and |phi| above 20 say the same thing: certain; unclipped they would be leverage."""


class Options(Settings):
    """``classifier``: ``logistic`` (no import beyond numpy), ``forest`` or ``mlp`` (scikit-learn);
    ``labels``: ``one_hot`` is one classifier that also sees the label, ``separate`` one classifier for each
    class, as in the paper (classes with fewer than ten members or non-members use one fitted on all rows).
    """

    classifier: Literal["logistic", "forest", "mlp"] = "logistic"
    labels: Literal["one_hot", "separate"] = "one_hot"


def score(logits: np.ndarray, y: np.ndarray, reference: Reference, options: Options, rng: np.random.Generator) -> Score:
    """Return as the score the log-odds of membership at equal priors, by the chosen classifier; the decision is whether
    it exceeds 0.

    Members and non-members weigh the same in the fit. The generator seeds the forest and the network.
    """
    classes = logits.shape[-1]
    seed = int(rng.integers(2**31))
    rows = signals.statistics(lambda z, label: features(z, label, options.labels), reference, classes=classes)
    general = _fit(rows.value, rows.member, options.classifier, seed)
    by_class = [general] * classes
    if options.labels == "separate":
        for c in range(classes):
            of_class = rows.label == c
            if min(rows.member[of_class].sum(), (~rows.member[of_class]).sum()) >= 10:
                by_class[c] = _fit(rows.value[of_class], rows.member[of_class], options.classifier, seed)

    def log_odds(z: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Return the log-odds of membership of the logits ``z`` [n, classes] with these labels, float64 [n]."""
        x = features(z, label, options.labels)
        if options.labels == "one_hot":
            return general(x)
        value = np.empty(len(label))
        for c in np.unique(label):
            value[label == c] = by_class[c](x[label == c])
        return value

    value = signals.per_model(log_odds, logits, y)
    return value, value > 0


def features(logits: np.ndarray, y: np.ndarray, labels: str) -> np.ndarray:
    """Return the inputs of the classifier, float64 [n, classes + 1 (+ classes)].

    Each row holds the log-probabilities from the largest to the smallest, then phi, all cut at ``BOUND``. If ``labels``
    is "one_hot", the label follows, one-hot.
    """
    log_p = -np.sort(-np.maximum(signals.log_probabilities(logits), -BOUND), axis=1)
    columns = [log_p, np.clip(signals.phi(logits, y), -BOUND, BOUND)[:, None]]
    if labels == "one_hot":
        columns.append(np.eye(logits.shape[1])[y])
    return np.concatenate(columns, axis=1)


def leaf(rows: int) -> int:
    """Return the fewest rows in a leaf of the forest: five, or one in 400 if that is more."""
    return max(5, rows // 400)


def steps(rows: int) -> tuple[int, int]:
    """Return the rows in a batch of the network, and its epochs: about 2000 steps, in at least 20 and at most 200
    epochs."""
    batch = min(256, rows)
    return batch, min(max(2000 * batch // rows, 20), 200)


def _fit(x: np.ndarray, member: np.ndarray, classifier: str, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """Fit a classifier to the features ``x`` [n, features] and ``member`` bool [n]; return a function from features to
    log-odds."""
    if classifier == "logistic":
        return logistic.fit(x, member).log_odds
    weight = np.where(member, 0.5 / member.mean(), 0.5 / (~member).mean())
    if classifier == "forest":
        from sklearn.ensemble import RandomForestClassifier

        model = RandomForestClassifier(
            n_estimators=50, max_depth=8, min_samples_leaf=leaf(len(x)), max_samples=0.25, random_state=seed
        ).fit(x, member, sample_weight=weight)
    else:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        batch, epochs = steps(len(x))
        network = MLPClassifier((64,), batch_size=batch, max_iter=epochs, n_iter_no_change=epochs, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is fixed on purpose
            model = make_pipeline(StandardScaler(), network)
            model.fit(x, member, mlpclassifier__sample_weight=weight)

    def log_odds(rows: np.ndarray) -> np.ndarray:
        p = np.clip(model.predict_proba(rows)[:, 1], 1e-12, 1.0 - 1e-12)
        return np.asarray(np.log(p) - np.log1p(-p))

    return log_odds
