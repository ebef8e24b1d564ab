"""Blind check: can forgotten and held-out samples be distinguished without models? Then no attack is valid (RULI).

It follows appendix A.3.1 of RULI.
"""

import numpy as np
from pydantic import Field

from unlearning_audit.evaluation import logistic
from unlearning_audit.metrics import Evaluation, Quantity, Row, Settings, _text, generator, noted, or_reason, table
from unlearning_audit.stats import Estimate, crossed, separation
from unlearning_audit.stats.readings import balanced_accuracy

#: The folds of the cross-validation.
FOLDS = 5

#: The note of a label overlap by which forgotten and held-out samples can be distinguished.
LEAKY = "below the range of random divisions: labels tell the sides apart"


NEEDS = ("target_samples",)
DEFAULT = ("target_samples", "imported")

QUANTITIES = (
    Quantity("blind_accuracy", attacks=("blind",), setting="features=principal components of pixels"),
    *(Quantity(name, attacks=("blind",)) for name in ("blind_auc", "label_overlap", "label_overlap_random")),
)


class Options(Settings):
    """``shuffles``: random divisions of the same samples, for the chance level of label overlap; ``components``:
    principal components that the classifier sees if there are more features.
    """

    components: int = Field(default=64, ge=1)
    shuffles: int = Field(default=1000, ge=40)


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return rows on how well forgotten and held-out samples are distinguished without any audited model, as means over
    target models: "label_overlap", "label_overlap_random" (the label overlap of random divisions of the same samples),
    and "blind_accuracy" and "blind_auc" of a linear classifier.

    Pixels, and the tokens of a text without their order, stand in for embeddings, which the published attack
    classifies. Limits are means over models, too: such an interval is at least as wide as an interval of the mean,
    whatever the dependence between models. The limits of "label_overlap_random", which are the range of the random
    divisions, are averaged as well. Of imported samples that are known by numbers only, only the labels are compared,
    and there are no rows if all labels are equal. If a model has too few samples on a side, imported models get one row
    with the reason, and ValueError is raised for models that were trained here.
    """
    visible = bool(evaluation.data.x.size)
    if not visible and not np.ptp(evaluation.labels):
        return []
    metric = "blind_accuracy" if visible else "label_overlap"
    return or_reason(evaluation, lambda: _rows(evaluation, options), metric, attack="blind")


def _rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return rows of label overlap, its chance level, and accuracy and AUC of a linear classifier, averaged over the
    target models.

    Samples of weight 0, which no attack scores, do not count. Features of the classifier are pixels, or counts of
    tokens if the data hold integers; without either, only labels are compared. If the mean overlap lies below the range
    of random divisions, its note says that labels tell the two sides apart.
    """
    member = evaluation.membership[evaluation.target]
    weighted = np.ones(len(evaluation.data.y), bool) if member.weight is None else member.weight > 0
    forget, heldout = member.forget & weighted, member.heldout & weighted
    used = (forget | heldout).any(axis=0)
    features = None
    if evaluation.data.x.size:
        x = evaluation.data.x[used]
        features = principal(bags(x) if x.dtype.kind == "i" else x.reshape(len(x), -1), options.components)
    of_models = [
        evaluate(evaluation.data.y[used], *sides, features, options, generator(evaluation.seed, "blind", model))
        for model, sides in enumerate(zip(forget[:, used], heldout[:, used], strict=True))
    ]
    means = {name: _mean([estimates[name] for estimates in of_models]) for name in of_models[0]}
    if means["label_overlap"].value < means["label_overlap_random"].low:
        means["label_overlap"] = noted(means["label_overlap"], after=LEAKY)
    return table(means, attack="blind")


def bags(x: np.ndarray) -> np.ndarray:
    """Return how often each token occurs in each row of ``x`` int [samples, length]: float64 [samples, tokens].

    A negative entry ~id counts as the token id; padding (−1) does not count. Tokens that occur in one row only are left
    out.
    """
    tokens, column = np.unique(np.where(x < 0, ~x, x), return_inverse=True)
    counts = np.zeros((len(x), len(tokens)))
    # Adds 1 for each token, and 0 for padding.
    np.add.at(counts, (np.arange(len(x))[:, None], column.reshape(x.shape)), ~_text.padding(x))
    return counts[:, (counts > 0).sum(0) > 1]


def principal(x: np.ndarray, components: int) -> np.ndarray:
    """Return standardised features float64 [samples, ≤ ``components``]: ``x`` [samples, features], or its principal
    components if there are more.

    Principal components are computed without knowing which samples are forgotten, so that nothing leaks.
    """
    x = np.asarray(x, np.float64)
    # A feature that does not vary becomes 0: the least divisor keeps 0/0 away.
    standardised: np.ndarray = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
    if x.shape[1] <= components:
        return standardised
    left, scale, _right = np.linalg.svd(standardised, full_matrices=False)
    return np.asarray(left[:, :components] * scale[:components])


def _mean(of_models: list[Estimate]) -> Estimate:
    """Return the mean over models of one number and of its limits, with the notes of all models and the ``n`` of the
    first model. The number of a single model is returned unchanged."""
    if len(of_models) == 1:
        return of_models[0]
    notes = dict.fromkeys(estimate.note for estimate in of_models if estimate.note)
    value, low, high = np.mean([[number.value, number.low, number.high] for number in of_models], axis=0).tolist()
    note = "; ".join([f"mean of {len(of_models)} models", *notes])
    return Estimate(value, low=low, high=high, n=of_models[0].n, note=note)


def evaluate(
    y: np.ndarray,
    forget: np.ndarray,
    heldout: np.ndarray,
    features: np.ndarray | None,
    options: Options,
    rng: np.random.Generator,
) -> dict[str, Estimate]:
    """Return the numbers of RULI's table 11 for one target model, by name: label overlap, its chance level (the overlap
    of random divisions of the same samples), and accuracy and AUC of a linear classifier.

    Parameters
    ----------
    y
        int [samples].
    forget, heldout
        bool [samples].
    features
        float [samples, features]: anything that does not come from an audited model (embeddings of another network, or
        the pixels; None: the classifier is left out).

    Raises
    ------
    ValueError
        When there are fewer forgotten or held-out samples than folds.
    """
    forgotten, unseen = int(forget.sum()), int(heldout.sum())
    if min(forgotten, unseen) < FOLDS:
        raise ValueError(f"the blind check needs at least {FOLDS} samples on each side, not {(forgotten, unseen)}")
    either, n = forget | heldout, forgotten + unseen
    shuffled = (rng.permutation(y[either]) for _ in range(options.shuffles))
    # Divided like the samples: as many labels as are forgotten, and the others.
    of_divisions = np.array([label_overlap(labels[:forgotten], labels[forgotten:]) for labels in shuffled])
    low, high = np.quantile(of_divisions, [0.025, 0.975]).tolist()
    overlap, how = label_overlap(y[forget], y[heldout]), f"range of {options.shuffles} random divisions"
    estimates = {
        "label_overlap": Estimate(overlap, low=overlap, high=overlap, n=n),  # exact, so its limits equal it
        "label_overlap_random": Estimate(float(of_divisions.mean()), low=low, high=high, n=n, note=how),
    }
    return estimates if features is None else estimates | _classifier(features[either], forget[either], rng)


def label_overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Return Σ_c min(share of class c in a, share in b): 1 for the same label histogram, 0 for disjoint classes.

    RULI calls it the "proportion of shared classes", and this formula gives the paper's numbers. Counting the classes
    that occur in both sets would give 100 % for CIFAR-10.

    Parameters
    ----------
    a, b
        int [samples]: the labels of two sets of samples.
    """
    classes = max(int(a.max()), int(b.max())) + 1
    return float(np.minimum(*(np.bincount(side, minlength=classes) / len(side) for side in (a, b))).sum())


def _classifier(x: np.ndarray, positive: np.ndarray, rng: np.random.Generator) -> dict[str, Estimate]:
    """Return "blind_accuracy" and "blind_auc", the accuracy (both sides count equally) and the AUC of a ridge logistic
    regression on each fold, after learning on all other folds, as means over folds.

    Parameters
    ----------
    x
        float64 [samples, features].
    positive
        bool [samples]: the side to recognise, here the forgotten samples.
    """
    fold = np.empty(len(positive), np.int64)
    for side in (positive, ~positive):
        fold[side] = rng.permutation(np.arange(side.sum()) % FOLDS)  # as many of each side in every fold, up to one
    tested = fold == np.arange(FOLDS)[:, None]  # [folds, samples]
    score = np.zeros(tested.shape)
    for k, test in enumerate(tested):
        score[k, test] = logistic.fit(x[~test], positive[~test]).log_odds(x[test])
    of_positive, of_negative = ((tested & side).astype(np.float64) for side in (positive, ~positive))  # weights
    area = separation.auc(score=score, positive=of_positive, negative=of_negative)
    of_folds = [balanced_accuracy(score > 0, of_positive, of_negative), area]
    # Folds take the place of models in the interval, all of one split.
    estimates = crossed.estimates(crossed.mean(of_folds, split=np.zeros(FOLDS, np.int64)), n=len(positive))
    return dict(zip(("blind_accuracy", "blind_auc"), estimates, strict=True))
