"""Draw phi of single samples over shadow models: forgotten; held out, after unlearning; and held out, before it."""

from typing import Any

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.report.figures import Numbers, lookup, naming, style

#: Files of each case that the figure reads, besides the numbers.
DRAWN_FROM = ("data", "splits", "originals", "unlearned")

#: The most samples that are drawn.
SAMPLES = 16

#: Kind of samples → colour: Q_u, Q_h and Q_R of Naderloui et al. (2025), figure 10.
KINDS = {"forgotten": style.FORGET, "held out, after unlearning": style.HELDOUT,
         "held out, before unlearning": style.INK}  # fmt: skip


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw a panel for each method, those of one scenario with the same samples: for each sample, the median and the
    middle 80 % of phi (confidence in the label) over models, for each of three kinds of models: those that forgot the
    sample, and those from which it was held out, after and before unlearning.

    Samples for which one of the kinds has no model are left out. A method without logits or without shadow models has
    these words in its panel. Each panel shows the samples in the order of the median before unlearning. The figure's
    label names the method after which most samples stand out, and counts these samples.
    """
    places = lookup.places(numbers.cases)
    panels = [(where, *found) for where in places for found in numbers.by_method(where).items()]
    outside: dict[str, tuple[int, int]] = {}  # method → how many samples stand out, and of how many
    figure, axes = style.panels(len(panels), height=1.45, columns=2, width=style.WHOLE)
    for axis, (where, name, case) in zip(axes, panels, strict=True):
        axis.set(title=lookup.named(where, name, places), xticks=[])
        # For each sample, phi in models that forgot it, and held out after and before unlearning.
        found = numbers.read_files(case, values)
        samples = [phi for phi in found or [] if all(map(len, phi))]
        if not samples:
            style.nothing(axis, numbers.lost(case) or ("no logits" if found is None else "no shadow models"))
            continue
        _panel(axis, sorted(samples, key=lambda phi: np.median(phi[-1])))  # by phi before unlearning, which is last
        if name not in naming.BASELINES:
            # A sample stands out if its median in models that forgot it lies outside the middle 80 % of the models
            # from which it was held out.
            medians = [np.median(forgotten) for forgotten, _, _ in samples]
            middles = [np.quantile(held_out, [0.1, 0.9]) for _, held_out, _ in samples]
            count = sum(not low <= median <= high for median, (low, high) in zip(medians, middles, strict=True))
            outside[lookup.named(where, name, places)] = count, len(samples)
    if outside:
        worst = max(outside, key=outside.__getitem__)
        count, total = outside[worst]
        figure.set_label(f"{count} of {total} samples stand out after {worst}")
    figure.supylabel("confidence in the label (φ)", fontsize=7.5)
    figure.supxlabel("samples", fontsize=7.5)
    style.legend(figure, [{"label": kind, "color": colour, "marker": "o"} for kind, colour in KINDS.items()])
    return figure


def values(files: dict[str, Any]) -> list[list[np.ndarray]]:
    """Return, for each of at most `SAMPLES` samples, three arrays of phi, float64 [shadow models]: in models that
    forgot the sample, and in models from which it was held out, after and before unlearning.

    The samples are drawn with a fixed seed, so they are the same for every method. [] without shadow models.

    Parameters
    ----------
    files
        The paths of data, splits, originals and unlearned of a case.

    Raises
    ------
    NoAnswerError
        If a model failed or diverged.
    """
    case = Evaluation(files["data"], files["splits"], files["originals"], files["unlearned"])
    before, after = case.group("shadow_original"), case.group("shadow")
    if case.target.all() or before is None or after is None:  # no shadow models
        return []
    samples = chosen_samples(case.batches[0])
    # [models, samples]: which models forgot which samples, and from which models the samples were held out.
    forget, held = after.membership.forget[:, samples], after.membership.heldout[:, samples]
    original, unlearned = before.phi(samples), after.phi(samples)
    # For sample i, phi under the models that forgot it, and under those from which it was held out, as in `KINDS`.
    return [
        [unlearned[forget[:, i], i], unlearned[held[:, i], i], original[held[:, i], i]] for i in range(len(samples))
    ]


def chosen_samples(member: Membership) -> np.ndarray:
    """Return at most `SAMPLES` random samples that some model forgot or that were held out from it: their numbers,
    int64, sorted, the same for every method of a scenario. Samples of weight 0 are left out."""
    candidates = (member.forget | member.heldout).any(axis=0)
    if member.weight is not None:
        candidates &= member.weight > 0
    return np.sort(generator(0, "figure", "samples").permutation(np.flatnonzero(candidates))[:SAMPLES])


def _panel(axis: "style.Axes", samples: list[list[np.ndarray]]) -> None:
    """Draw the median and the middle 80 % of phi for each of ``samples``: in models that forgot it, and in models from
    which it was held out, after and before unlearning. A sample is these three arrays of phi, float64 [models] each."""
    for number, kinds in enumerate(samples):
        for i, (phi, colour) in enumerate(zip(kinds, KINDS.values(), strict=True)):
            x = number + 0.24 * (i - 1)  # the three kinds stand side by side
            low, median, high = np.quantile(phi, [0.1, 0.5, 0.9])
            axis.plot([x, x], [low, high], color=colour, lw=1.3, solid_capstyle="round", alpha=0.75)
            axis.plot(x, median, "o", color=colour, ms=2.4, mew=0)
    axis.set_xlim(-0.7, len(samples) - 0.3)
    axis.grid(axis="y")
