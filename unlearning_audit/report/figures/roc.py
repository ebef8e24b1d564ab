"""Draw ROC curves of the strongest attack on logarithmic axes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.report.figures import Numbers, lookup, naming, style

#: Fields of a figure in a study that this kind reads.
READS = ("attack", "form")

#: Title of the figure in a study that lists no figures.
TITLE = "Forgotten against never seen"

#: Files of each case that the figure reads, besides the numbers.
DRAWN_FROM = ("data", "splits", "scores")

#: How many FPR a curve has.
POINTS = 120

#: Scores and their weights.
Weighted = tuple[np.ndarray, np.ndarray]

#: With more methods than this, not all curves are named.
MOST = 7


@dataclass(frozen=True)
class Curve:
    """The ROC curve of one attack: ``fpr`` and ``tpr`` float64 [points]. ``fpr`` begins at the resolution, the smallest
    FPR above 0, and ends at 1."""

    attack: str
    fpr: np.ndarray
    tpr: np.ndarray

    @property
    def area(self) -> float:
        """Area under the curve over the logarithm of the FPR."""
        return float(np.trapezoid(self.tpr, np.log(self.fpr)))


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw each method's ROC curve under its strongest attack, or under the attack that the figure names, in a panel
    for each scenario.

    A dotted line marks chance, and a grey area the FPR too small to be measured. With more than `MOST` methods, only
    the curves with the largest and the smallest area are named, and those of other methods are grey; references (none,
    retrain, …) keep their colours. The figure's label names the methods with the largest and the smallest area in the
    first scenario.
    """
    attack, methods = order["figure"]["attack"], lookup.methods(numbers.cases)
    places = lookup.places(numbers.cases)
    figure, axes = style.panels(len(places), height=2.7, columns=2, width=style.HALF * min(len(places), 2))
    colours = style.colours(order["methods"])
    for axis, where in zip(axes, places, strict=True):
        finest = 1.0  # the smallest FPR of all curves in the panel
        best_curves = {name: _best(numbers, case, attack) for name, case in numbers.by_method(where).items()}
        areas = {name: curve.area for name, (curve, _) in best_curves.items() if curve and name not in naming.BASELINES}
        ranked = sorted(areas, key=areas.__getitem__)
        grey = set(ranked[1:-1]) if len(methods) > MOST else set()
        if len(ranked) > 1 and axis is axes[0]:  # the first panel
            least, *_, most = map(naming.method, ranked)
            scenario = f" ({lookup.label(where)})" if len(places) > 1 else ""
            figure.set_label(f"Most is found after {most}, least after {least}{scenario}")
        for name, (best, why) in best_curves.items():
            if best is None:
                axis.plot([], [], color=style.MUTED, label=f"{naming.method(name)}: {why}")
                continue
            line: dict[str, Any] = {"color": style.GRID, "zorder": 1.5}
            if name not in grey:
                text = f"{naming.method(name)}: {best.attack.replace('_', ' ')}"
                line = {"color": colours[name], "label": text}
            axis.plot(best.fpr, best.tpr, lw=1.2, ls=(0, (3, 1.5)) if name == "retrain_control" else "-", **line)
            finest = min(finest, float(best.fpr.min()))
        if grey:
            axis.plot([], [], color=style.GRID, label=naming.count(len(grey), "other method"))
        axis.set_title(lookup.label(where))
        _furnish(axis, finest, attack)
    axes[0].set_ylabel("true positive rate")
    return figure


def _best(numbers: Numbers, case: dict[str, Any] | None, attack: str) -> tuple[Curve | None, str]:
    """Return a case's ROC curve of the strongest attack, the one with the largest area over the logarithm of the FPR,
    and words that stand in place of a missing curve.

    The curve is None if the scenario lacks the method (``case`` is None), if the method failed, or if there are no
    scores. Only curves of ``attack`` count, or the curves of all attacks if ``attack`` is "".
    """
    if case is None:
        return None, "not asked for"
    if lost := numbers.lost(case):
        return None, lost
    of_all = curves(case["files"]) if case["files"] else []
    candidates = [curve for curve in of_all if not attack or curve.attack == attack]
    why = f"no scores of {attack}" if attack else "no scores"
    return max(candidates, key=lambda curve: curve.area, default=None), why


def curves(files: dict[str, Any]) -> list[Curve]:
    """Return the ROC curves of a case, one for each attack and form (by unlearned or by trained shadow models): the
    largest TPR at each FPR, mean over models, with samples weighted by ``Membership.weight``.

    An attack without scores for all target samples is left out.

    Parameters
    ----------
    files
        The paths of data, splits and scores of the case.
    """
    # [], []: no logits before and after unlearning, because scores suffice.
    case = Evaluation(files["data"], files["splits"], [], [], scores_file=files["scores"])
    target = case.membership[case.target]
    # (attack, form) → (scores, decisions); a curve needs no decisions.
    candidates = (curve("/".join(key), score, target) for key, (score, _) in case.scores.items())
    return [candidate for candidate in candidates if candidate]


def curve(attack: str, score: np.ndarray, target: Membership) -> Curve | None:
    """Return the ROC curve of one attack, mean over the target models. Forgotten samples are the positive ones,
    held-out samples the negative ones.

    Models without forgotten or without held-out samples of positive weight are left out. None if no model remains, or
    if a forgotten or held-out sample has no score.

    Parameters
    ----------
    score
        float64 [models, samples]: the attack's scores.
    target
        Which samples each model forgot, and which were held out from it.
    """
    weight = np.ones(target.train.shape[1]) if target.weight is None else target.weight
    pairs = []  # for each model, (scores, weights) of its forgotten and of its held-out samples
    for of_model, forget, heldout in zip(score, target.forget, target.heldout, strict=True):
        if weight[forget].any() and weight[heldout].any():
            pairs.append(((of_model[forget], weight[forget]), (of_model[heldout], weight[heldout])))
    if not pairs or any(np.isnan(scores).any() for pair in pairs for scores, _ in pair):
        return None
    # The smallest FPR of a model is Σ w² / (Σ w)², which is 1 / n for n held-out samples of equal weight.
    resolution = max(float((weights**2).sum() / weights.sum() ** 2) for _, (_, weights) in pairs)
    fpr = np.geomspace(resolution, 1.0, POINTS)
    tpr = np.mean([largest_tpr(forgotten, held_out, fpr) for forgotten, held_out in pairs], axis=0)
    return Curve(attack, fpr, tpr)


def largest_tpr(of_positive: Weighted, of_negative: Weighted, fpr: np.ndarray) -> np.ndarray:
    """Return, for each entry of ``fpr``, the largest TPR of a threshold whose FPR is at most that entry: float64
    [points]. A sample counts as forgotten if its score is at least the threshold.

    ``of_positive`` and ``of_negative`` are (scores, weights) of forgotten and of held-out samples, float [n] each.
    """
    from sklearn.metrics import roc_curve

    score, weight = (np.concatenate(arrays) for arrays in zip(of_positive, of_negative, strict=True))
    is_positive = np.repeat([True, False], [len(scores) for scores, _ in (of_positive, of_negative)])
    rates, tpr, _ = roc_curve(is_positive, score, sample_weight=weight, drop_intermediate=False)
    # The factor 1 + 1e-9 lets a rate that equals an entry of ``fpr`` up to rounding count.
    return np.asarray(tpr[np.searchsorted(rates, fpr * (1 + 1e-9), "right") - 1])


def _furnish(axis: "style.Axes", finest: float, attack: str) -> None:
    """Draw the logarithmic scales of a panel, the line of chance, the region of FPR that is too small for the number of
    samples, and the names of the curves.

    Parameters
    ----------
    finest
        The smallest FPR of a curve in the panel. 1 means that there is no curve; a sentence then says why.
    attack
        The attack that the figure names, or "".
    """
    if finest == 1:
        axis.set(xticks=[], yticks=[])
        why = f"no scores of {attack}" if attack else "no scores: the protocol asks no attack"
        style.nothing(axis, f"{why}, or every method failed")
        return
    low = finest / 1.7  # leaves a strip for the words "not resolved"
    style.rate_axes(axis, low)
    axis.set_xlabel("false positive rate")
    axis.axvspan(low, finest, color=style.GRID, alpha=0.6, lw=0, zorder=0)
    axis.text(
        np.sqrt(low * finest), 0.97, "not resolved", transform=axis.get_xaxis_transform(), rotation=90, size=6,
        ha="center", va="top", color=style.MUTED,
    )  # fmt: skip
    axis.legend(loc="lower right", fontsize=6, handlelength=1)
