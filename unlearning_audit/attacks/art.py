"""ART: the learned black-box attack of the Adversarial Robustness Toolbox, the library itself (Nicolae et al. 2018)."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from unlearning_audit.attacks import Score, Settings, Shadow, signals

LIBRARIES = ("art.attacks.inference.membership_inference",)

#: The score is the probability of membership.
PROBABILITY = True


class Options(Settings):
    """What ``MembershipInferenceBlackBox`` is given: the type of its ``model`` (``nn`` is a network and the library's
    default, the others are scikit-learn's) and of its ``scaler``; ``epochs``, ``batch_size`` and ``lr`` of the network.

    Beside the label the model sees ``features`` of a sample: log-probabilities, probabilities or the ``logits``
    unchanged. ``balanced``: equally many members and non-members, drawn at random; false: all rows. ``rows``: at most
    so many members and so many non-members; null: all. Becker & Liebig 2022 (ART 1.9.1): ``nn`` on logits, no scaler,
    not balanced, all rows.
    """

    model: Literal["nn", "rf", "gb", "lr", "dt", "knn", "svm"] = "nn"
    features: Literal["log_probabilities", "probabilities", "logits"] = "log_probabilities"
    scaler: Literal["standard", "minmax", "robust", "none"] = "standard"
    epochs: PositiveInt = 100
    batch_size: PositiveInt = 100
    lr: PositiveFloat = 1e-4
    balanced: bool = True
    rows: PositiveInt | None = 1000


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options, rng: np.random.Generator) -> Score:
    """Return as the score the probability of membership that ART infers, in [0, 1]; the decision is whether the score
    exceeds one half. ``rng`` draws the rows to learn from, and ART's seed.

    Raises ValueError if logits and labels do not fit each other, if the shadow models have other classes than the
    audited models, or if they have no members or no non-members.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits and labels of models with known members, on which the attack learns.
    """
    statistic = partial(features, kind=options.features)
    # Features, labels and memberships of the shadow models' samples.
    examples = signals.statistics(statistic, shadow, classes=logits.shape[-1])
    rows = sampled_rows(examples.member, options, rng)
    with seeded(int(rng.integers(2**31))):
        attack = fitted(examples.value[rows], examples.label[rows], examples.member[rows], logits.shape[-1], options)
        # The samples themselves (None) are not needed, since predictions are given.
        probability = signals.per_model(
            lambda z, label: attack.infer(None, label, pred=statistic(z, label), probabilities=True).ravel(), logits, y
        )
    return probability, probability > 0.5


def features(logits: np.ndarray, y: np.ndarray, kind: str) -> np.ndarray:
    """Return the model outputs that ART is given, float32 [n, classes], from ``logits`` [n, classes]: by ``kind``, the
    option ``features``, the logits, the probabilities, or else the log-probabilities. The labels ``y`` are not used."""
    if kind == "logits":
        return np.asarray(logits, np.float32)
    log_p = signals.log_probabilities(logits)
    return (np.exp(log_p) if kind == "probabilities" else log_p).astype(np.float32)


def sampled_rows(member: np.ndarray, options: Options, rng: np.random.Generator) -> np.ndarray:
    """Return the numbers of the rows from which ART learns, int64 [rows], members before non-members.

    At most ``options.rows`` members and at most as many non-members are taken. If ``options.balanced``, no more of
    either kind are taken than there are of the rarer one. Of a kind that has more rows, some are drawn by ``rng``; a
    kind that is taken whole keeps its order.

    Parameters
    ----------
    member
        bool [n]: which rows of the shadow models are members.
    """
    kinds = [np.flatnonzero(member), np.flatnonzero(~member)]
    most = min(map(len, kinds)) if options.balanced else max(map(len, kinds))
    if options.rows:
        most = min(most, options.rows)
    return np.concatenate([kind if len(kind) <= most else rng.permutation(kind)[:most] for kind in kinds])


def fitted(value: np.ndarray, label: np.ndarray, member: np.ndarray, classes: int, options: Options) -> Any:
    """Return ART's attack, fitted to the features of rows that are members or not.

    Parameters
    ----------
    value, label
        float32 [n, classes] and int64 [n]: the features and the label of each row.
    member
        bool [n]: which rows are members.
    """
    from art.attacks.inference.membership_inference import MembershipInferenceBlackBox
    from art.estimators.classification import BlackBoxClassifier

    class Attack(MembershipInferenceBlackBox):  # type: ignore[misc]  # ART has no types
        """ART's attack, with a data set from which torch's loader takes the rows of a batch at once: the same rows in
        the same order, only faster."""

        def _get_attack_dataset(self, f_1: np.ndarray, f_2: np.ndarray, label: np.ndarray | None = None) -> Any:
            """Return ART's data set with the method that torch's loader calls for a batch, if there is one."""
            data = super()._get_attack_dataset(f_1, f_2, label)
            columns = data.x_1, data.x_2, data.y
            data.__getitems__ = lambda rows: list(zip(*(column[rows] for column in columns), strict=True))
            return data

    # ART requires a classifier; its predictions are never used, because all are passed in.
    classifier = BlackBoxClassifier(lambda x: x, input_shape=(classes,), nb_classes=classes)
    attack = Attack(
        classifier, attack_model_type=options.model, scaler_type=None if options.scaler == "none" else options.scaler,
        nn_model_epochs=options.epochs, nn_model_batch_size=options.batch_size, nn_model_learning_rate=options.lr,
    )  # fmt: skip
    attack.fit(y=label[member], test_y=label[~member], pred=value[member], test_pred=value[~member])
    return attack


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators of NumPy and torch, from which ART draws, and let torch use one thread; restore both
    afterwards."""
    import torch

    state, threads = np.random.get_state(), torch.get_num_threads()
    np.random.seed(seed)
    torch.set_num_threads(1)  # more threads would change the last bits of sums
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
        np.random.set_state(state)
