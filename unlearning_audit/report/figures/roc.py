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

    Lines mark chance and the resolution. With more than `MOST` methods, only the strongest and the weakest curve are
    named, and the others are grey.
    """
    wish, methods = order["figure"], lookup.methods(numbers.cases)
    places = lookup.places(numbers.cases)
    figure, axes = style.panels(len(places), height=2.7, columns=2, width=style.HALF * min(len(places), 2))
    colours = style.colours(order["methods"])
    for axis, where in zip(axes, places, strict=True):
        finest = 1.0
        best_curves = {name: _best(numbers, case, wish["attack"]) for name, case in numbers.by_method(where).items()}
        areas = {n: curve.area for n, (curve, _) in best_curves.items() if curve and n not in naming.BASELINES}
        ranked = sorted(areas, key=areas.__getitem__)
        grey = set(ranked[1:-1]) if len(methods) > MOST else set()
        if len(ranked) > 1 and where == places[0]:
            least, most = naming.method(ranked[0]), naming.method(ranked[-1])
            of = f" ({lookup.label(where)})" if len(places) > 1 else ""
            figure.set_label(f"Most is found after {most}, least after {least}{of}")
        for name, (best, why) in best_curves.items():
            if best is None:
                axis.plot([], [], color=style.MUTED, label=f"{naming.method(name)}: {why}")
                continue
            text = f"{naming.method(name)}: {best.attack.replace('_', ' ')}"
            look: dict[str, Any] = {"color": colours[name], "label": text}
            look = {"color": style.GRID, "zorder": 1.5} if name in grey else look
            axis.plot(best.fpr, best.tpr, lw=1.2, ls=(0, (3, 1.5)) if name == "retrain_control" else "-", **look)
            finest = min(finest, float(best.fpr[0]))
        if grey:
            axis.plot([], [], color=style.GRID, label=naming.count(len(grey), "other method"))
        axis.set_title(lookup.label(where))
        _furnish(axis, finest, wish["attack"])
    axes[0].set_ylabel("true positive rate")
    return figure


def _best(numbers: Numbers, case: dict[str, Any] | None, attack: str) -> tuple[Curve | None, str]:
    """Return the ROC curve of a case that has the largest area over the logarithm of the FPR, among those of
    ``attack``, or of all attacks if that is ""; and words for its absence.

    The curve is None if the scenario lacks the method, if the method failed, or if there are no scores.
    """
    if case is None:
        return None, "not asked for"
    if lost := numbers.lost(case):
        return None, lost
    candidates = [c for c in curves(case["files"]) if not attack or c.attack == attack] if case["files"] else []
    why = f"no scores of {attack}" if attack else "no scores"
    return max(candidates, key=lambda curve: curve.area, default=None), why


def curves(files: dict[str, Any]) -> list[Curve]:
    """Return the ROC curves of a case, one for each attack and form: the largest TPR at each FPR, mean over models,
    with samples weighted by ``Membership.weight``.

    An attack without scores for all target samples is left out. ``files``: the paths of data, splits and scores of the
    case.
    """
    case = Evaluation(files["data"], files["splits"], [], [], scores_file=files["scores"])
    target = case.membership[case.target]
    candidates = (curve("/".join(key), score, target) for key, (score, _) in case.scores.items())
    return [candidate for candidate in candidates if candidate]


def curve(attack: str, score: np.ndarray, target: Membership) -> Curve | None:
    """Return the ROC curve of one attack's ``score`` float64 [models, samples], mean over the target models.

    None if a forgotten or held-out sample has no score, or if no model has samples of both kinds.
    """
    weight = np.ones(target.train.shape[1]) if target.weight is None else target.weight
    sides = ((m, target.forget[m], target.heldout[m]) for m in range(len(target.seed)))
    models = [(m, f, h) for m, f, h in sides if weight[f].any() and weight[h].any()]
    pairs = [((score[m][f], weight[f]), (score[m][h], weight[h])) for m, f, h in models]
    if not models or any(np.isnan(side).any() for pair in pairs for side, _ in pair):
        return None
    # Σ w² / (Σ w)² is 1 / n for n held-out samples of equal weight.
    resolution = max(float((weight[h] ** 2).sum() / weight[h].sum() ** 2) for _, _, h in models)
    fpr = np.geomspace(resolution, 1.0, POINTS)
    return Curve(attack, fpr, np.mean([largest_tpr(*pair, fpr) for pair in pairs], axis=0))


def largest_tpr(of_positive: Weighted, of_negative: Weighted, fpr: np.ndarray) -> np.ndarray:
    """Return the largest TPR with FPR at most each of ``fpr``, over all rules score > threshold: float64 [points].

    ``of_positive`` and ``of_negative`` are scores and their weights, float [n] each.
    """
    (positive, positive_weight), (negative, negative_weight) = of_positive, of_negative
    order = np.argsort(negative)[::-1]
    accepted = np.cumsum(negative_weight[order]) / negative_weight.sum()
    # The threshold is the first negative score that would exceed the FPR; without one, everything is accepted.
    first = np.searchsorted(accepted, fpr * (1 + 1e-9), "right")
    cuts = np.append(negative[order], -np.inf)[first]
    ranked = np.argsort(positive)
    # The share of positives from each one on, by increasing score; 0 above all of them.
    above = np.append(np.cumsum(positive_weight[ranked][::-1])[::-1], 0.0) / positive_weight.sum()
    return np.asarray(above[np.searchsorted(positive[ranked], cuts, "right")])


def _furnish(axis: "style.Axes", finest: float, attack: str) -> None:
    """Draw the axes of a panel, the line of chance, the region of FPR below ``finest`` that samples cannot resolve, and
    the names of the curves.

    If ``finest`` is 1, there is no curve: a sentence says why.
    """
    if finest == 1:
        axis.set(xticks=[], yticks=[])
        nothing = f"no scores of {attack}" if attack else "no scores: the protocol asks no attack"
        style.nothing(axis, f"{nothing}, or every method failed")
        return
    low = finest / 1.7
    style.rate_axes(axis, low)
    axis.set_xlabel("false positive rate")
    axis.axvspan(low, finest, color=style.GRID, alpha=0.6, lw=0, zorder=0)
    axis.text(
        np.sqrt(low * finest), 0.97, "not resolved", transform=axis.get_xaxis_transform(), rotation=90, size=6,
        ha="center", va="top", color=style.MUTED,
    )  # fmt: skip
    axis.legend(loc="lower right", fontsize=6, handlelength=1)
