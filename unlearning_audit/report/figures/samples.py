"""Draw phi of single samples over shadow models: forgotten; held out, after unlearning; and held out, before it."""

from typing import Any

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.report.figures import Numbers, lookup, naming, style

#: Files of each case that the figure reads, besides the numbers.
DRAWN_FROM = ("data", "splits", "originals", "unlearned")

SAMPLES = 16

#: Kind of samples → colour: Q_u, Q_h and Q_R of Naderloui et al. (2025), figure 10.
SIDES = {
    "forgotten": style.FORGET,
    "held out, after unlearning": style.HELDOUT,
    "held out, before unlearning": style.INK,
}


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw, for the same samples in a panel for each method, the median and the middle 80 % of three distributions of
    phi (confidence in the label), those of `SIDES`.

    All panels show the samples in the order of the median of phi in models that never saw them. Samples for which one
    of the distributions has no model are left out. A method without logits has a word in its panel.
    """
    places = lookup.places(numbers.cases)
    panels = [(where, *found) for where in places for found in numbers.by_method(where).items()]
    outside: dict[str, tuple[int, int]] = {}
    figure, axes = style.panels(len(panels), height=1.45, columns=2, width=style.WHOLE)
    for axis, (where, name, case) in zip(axes, panels, strict=True):
        axis.set(title=lookup.named(where, name, places), xticks=[])
        sides = [phi for phi in numbers.read_files(case, values) or [] if all(map(len, phi))]
        if not sides:
            style.nothing(axis, numbers.lost(case) or "no logits")
            continue
        _panel(axis, sorted(sides, key=lambda phi: np.median(phi[-1])))
        if name not in naming.BASELINES:
            # A sample stands out if its median lies outside the interval of the models that never saw it.
            unseen = [(np.median(forgotten), *np.quantile(out, [0.1, 0.9])) for forgotten, out, _ in sides]
            strange = sum(not low <= median <= high for median, low, high in unseen)
            outside[lookup.named(where, name, places)] = strange, len(sides)
    if outside:
        worst = max(outside, key=outside.__getitem__)
        figure.set_label("{} of {} samples stand out after {method}".format(*outside[worst], method=worst))
    figure.supylabel("confidence in the label (φ)", fontsize=7.5)
    figure.supxlabel("samples", fontsize=7.5)
    style.legend(figure, [{"label": side, "color": colour, "marker": "o"} for side, colour in SIDES.items()])
    return figure


def values(files: dict[str, Any]) -> list[list[np.ndarray]]:
    """Return, for each of at most `SAMPLES` samples, phi float64 [shadow models] for each of the three kinds in
    `SIDES`.

    ``files``: the paths of data, splits, originals and unlearned of a case. The samples are drawn with a fixed seed, so
    they are the same for every method. [] without shadow models. Raises NoAnswerError if a model failed or diverged.
    """
    case = Evaluation(files["data"], files["splits"], files["originals"], files["unlearned"])
    before, after = case.group("shadow_original"), case.group("shadow")
    if case.target.all() or before is None or after is None:
        return []
    samples = chosen_samples(case.batches[0])
    forget, out = (mask[:, samples] for mask in (after.membership.forget, after.membership.heldout))
    original, unlearned = before.phi(samples), after.phi(samples)
    # Of each sample, the models that forgot it and those from which it was held out, in the order of `SIDES`.
    return [[unlearned[forget[:, i], i], unlearned[out[:, i], i], original[out[:, i], i]] for i in range(len(samples))]


def chosen_samples(member: Membership) -> np.ndarray:
    """Return at most `SAMPLES` random forgotten or held-out samples, int64, sorted; the same for every method of a
    scenario."""
    candidates = (member.forget | member.heldout).any(axis=0)
    candidates &= member.weight > 0 if member.weight is not None else candidates
    return np.sort(generator(0, "figure", "samples").permutation(np.flatnonzero(candidates))[:SAMPLES])


def _panel(axis: "style.Axes", pairs: list[list[np.ndarray]]) -> None:
    """Draw, for each sample, the median and the middle 80 % of phi for each of the three kinds in `SIDES`."""
    for number, sides in enumerate(pairs):
        for i, (phi, colour) in enumerate(zip(sides, SIDES.values(), strict=True)):
            at = number + 0.24 * (i - 1)
            low, middle, high = np.quantile(phi, [0.1, 0.5, 0.9])
            axis.plot([at, at], [low, high], color=colour, lw=1.3, solid_capstyle="round", alpha=0.75)
            axis.plot(at, middle, "o", color=colour, ms=2.4, mew=0)
    axis.set_xlim(-0.7, len(pairs) - 0.3)
    axis.grid(axis="y")
