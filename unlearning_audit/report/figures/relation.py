"""Draw efficacy against probability of membership, a dot for each model: figures 4 and 8 of Becker & Liebig (2022)."""

import itertools
import math
from typing import Any

import numpy as np

from unlearning_audit import stats
from unlearning_audit.report.figures import Numbers, _densities, naming, style, words

#: Fields of a figure in a study that this kind reads.
READS = ("axis", "attack")


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw, for every model, an attack's mean probability of membership against efficacy, on logarithmic axes: a panel
    for each method and a colour for each value of the figure's axis.

    Without an axis, draw a panel for each scenario and a colour for each method. Crosses mark the medians.
    """
    wish = order["figure"]
    panels = _densities.grouped(numbers, wish["axis"])
    width = style.WHOLE if len(panels) > 1 else style.HALF
    figure, axes = style.panels(len(panels), height=2.0, columns=3, width=width)
    names = list(dict.fromkeys(name for lines in panels.values() for name, _ in lines))
    colours = dict(zip(names, itertools.cycle(style.PALETTE), strict=False))
    pairs, middles = [], []
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        for name, case in lines:
            new = points(numbers, case, wish["attack"])
            pairs += new
            if new:
                x, y = np.array(new).T
                axis.plot(x, y, "o", color=colours[name], ms=2.6, mew=0, alpha=0.55)
                middle = np.median(np.log10([x, y]), axis=1)
                middles.append(middle)
                axis.plot(*10**middle, "+", color=colours[name], ms=8, mew=1.6)
        style.logarithmic(axis, subs=(1.0,))
        axis.set(title=title, yscale="log", xlabel="efficacy")
        axis.grid(which="major")
    if pairs:
        for limits, values in zip(("xlim", "ylim"), zip(*pairs, strict=True), strict=True):
            for axis in axes:
                axis.set(**{limits: (min(values) / 1.4, max(values) * 1.4)})
    if len(middles) > 2:
        efficacies, probabilities = np.array(middles).T
        tau = stats.kendall(x=efficacies, y=probabilities).value
        verb = "rise together" if tau >= words.HOLDS else "do not rise together"
        figure.set_label(f"Efficacy and the attack's success {verb} (τ {words.plain(tau, 2)}, {len(middles)} medians)")
    figure.supylabel("mean probability of membership", fontsize=7.5)
    what = f"{naming.axis(wish['axis'])} " if wish["axis"] else ""
    style.legend(figure, [{"label": what + name, "color": colours[name], "marker": "o", "ls": ""} for name in names])
    return figure


def points(numbers: Numbers, case: dict[str, Any] | None, attack: str) -> list[tuple[float, float]]:
    """Return (efficacy, mean probability of membership by ``attack``) of every model for which both are positive and
    finite; [] without a case."""
    if case is None:
        return []
    # One of the two lists is empty if the case has no values of it.
    pairs = zip(numbers.models(case, "efficacy"), numbers.models(case, "attack_probability", attack), strict=False)
    return [pair for pair in pairs if all(0 < value < math.inf for value in pair)]
