"""Draw the distributions of phi, the logit-scaled confidence in the label, of forgotten and of held-out samples."""

from typing import Any

import numpy as np

from unlearning_audit import stats
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.report.figures import Numbers, lookup, naming, style

#: Files of each case that the figure reads, besides the numbers.
DRAWN_FROM = ("data", "splits", "unlearned")


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw two histograms of phi (confidence in the label) for each method: one of forgotten samples, the other of
    held-out samples or, if no method has held-out samples, of forgotten samples under retrained models. Where the two
    agree, confidence does not reveal forgotten samples.

    The figure's label names the methods after which confidence tells forgotten samples best and least, by the AUC.
    """
    places, methods = lookup.places(numbers.cases), lookup.methods(numbers.cases)
    height = 1.25 if len(places) == 1 else 1.5
    figure, blocks = style.blocks(len(places), len(methods), height=height, share_y=False)
    areas: dict[str, float] = {}
    for panels, where in zip(blocks, places, strict=True):
        case_of = numbers.by_method(where)
        pairs, second = _to_compare([numbers.read_files(case, values) for case in case_of.values()], methods)
        drawn = [sample for pair in pairs if pair for sample in pair]
        # Without any value, the histograms go from −1 to 1.
        low, high = np.quantile(np.concatenate(drawn or [np.array([-1.0, 1.0])]), [0.005, 0.995])
        bins = np.linspace(low, high, 41) if high > low else np.linspace(low - 1, high + 1, 41)
        heights = []
        for axis, (name, case), pair in zip(panels, case_of.items(), pairs, strict=True):
            heights.append(_panel(axis, pair, bins, numbers.lost(case) or "no logits"))
            axis.set_title(naming.method(name))
            metric, cell = numbers.primary(case) if case else ("", lookup.missing(""))
            if not cell.empty:
                text = f"{naming.meaning(metric).display_name} {cell.value:.2f}"
                style.note(axis, text, corner=(1, 1), shift=(0, -1), color=style.MUTED, ha="right", va="top")
            if pair and all(map(len, pair)) and name not in naming.BASELINES:
                positive = np.repeat([True, False], [*map(len, pair)])  # the forgotten samples, then the others
                area = stats.auc(score=np.concatenate(pair), positive=positive)
                areas[lookup.named(where, name, places)] = area.value
        for axis in panels:
            # 1.3 leaves room for the words at the top; the limit is 1 if no panel has a histogram.
            axis.set_ylim(0, 1.3 * max(*heights, 0.0) or 1.0)
        if len(places) > 1:
            style.note(panels[0], lookup.label(where), (0, 1), shift=(0, 22), color=style.INK, size=8, weight="bold")
        style.note(panels[0], "forgotten", corner=(0, 1), shift=(3, -1), color=style.FORGET, va="top")
        style.note(panels[0], second, corner=(0, 1), shift=(3, -9), color=style.HELDOUT, va="top")
    figure.supxlabel("confidence in the label (φ)", fontsize=7.5)
    if len(areas) > 1:
        least, *_, most = sorted(areas, key=lambda name: abs(areas[name] - 0.5))  # .5 is the AUC of guessing
        best = f"Confidence tells forgotten samples best after {most} (AUC {areas[most]:.2f})"
        figure.set_label(f"{best}, least after {least} ({areas[least]:.2f})")
    return figure


#: phi of forgotten and of other samples.
Pair = tuple[np.ndarray, np.ndarray]


def values(files: dict[str, Any]) -> Pair:
    """Return phi (confidence in the label) of the forgotten and of the held-out samples of all audited models, pooled:
    float64 [values] each.

    Shadow models are left out.

    Parameters
    ----------
    files
        Paths of data, splits and unlearned logits.

    Raises
    ------
    NoAnswerError
        If a model failed or diverged.
    """
    # []: logits before unlearning are not needed.
    audited = Evaluation(files["data"], files["splits"], [], files["unlearned"]).audited
    phi, membership = audited.phi(), audited.membership  # [models, samples]
    return phi[membership.forget], phi[membership.heldout]


def _to_compare(pairs: list[Any], methods: list[str]) -> tuple[list[Any], str]:
    """Return a list with the two arrays of phi to draw for each method, and words for the second array.

    The second array is of the held-out samples. If no method has held-out samples, it is of the forgotten samples under
    retrained models (the control, else retrain), provided that there are such models.

    Parameters
    ----------
    pairs
        For each of ``methods``, its (forgotten, held-out) arrays; None for a method without logits, for which None is
        returned as well.
    """
    by_method = dict(zip(methods, pairs, strict=True))
    retrained = by_method.get("retrain_control") or by_method.get("retrain")
    if retrained is None or any(len(held_out) for _, held_out in filter(None, pairs)):
        return pairs, "held out"
    by_retrained, _ = retrained  # phi of the forgotten samples under the retrained models
    return [pair and (pair[0], by_retrained) for pair in pairs], "forgotten, retrained"


def _panel(axis: "style.Axes", pair: Pair | None, bins: np.ndarray, why: str) -> float:
    """Draw the two arrays of a method (phi of forgotten and of other samples) as histograms; values outside the bins
    count in the outermost bins. Return the largest density. An empty array is not drawn.

    If ``pair`` is None, the reason ``why`` is written, and 0 is returned. ``bins``: the edges of the bins, ascending.
    """
    axis.spines["left"].set_visible(False)
    axis.set_yticks([])
    axis.set_xlim(bins[0], bins[-1])
    axis.locator_params(axis="x", nbins=4)
    if pair is None:
        style.nothing(axis, why)
        return 0.0
    top = 0.0
    for sample, colour in zip(pair, (style.FORGET, style.HELDOUT), strict=True):
        if len(sample):
            height, _ = np.histogram(np.clip(sample, bins[0], bins[-1]), bins, density=True)
            axis.stairs(height, bins, color=colour, fill=True, alpha=0.25, lw=0)
            axis.stairs(height, bins, color=colour, lw=1)
            top = max(top, float(height.max()))
    return top
