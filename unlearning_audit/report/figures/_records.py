"""Draw the share of forgotten records that are still recognised, by method, and how many of these may be false."""

from unlearning_audit.evaluation.records import Exposed
from unlearning_audit.report import lookup, naming, style


def draw(exposed: dict[tuple[str, str], dict[str, Exposed]]) -> "style.Figure":
    """Draw a panel for each scenario and setting with recognised records, and a bar for each method.

    The pale end of a bar is the share that may be false.
    """
    if not exposed:
        return style.blank("No scenario of this study lists records.")
    exposed = {where: some for where, some in exposed.items() if any(one.recognised for one in some.values())}
    if not exposed:
        return style.blank("No forgotten record of this study is still recognised.")
    most = max(map(len, exposed.values()))
    figure, axes = style.panels(len(exposed), height=0.6 + 0.2 * most, share_y=False, width=style.WHOLE)
    for axis, (where, methods) in zip(axes, exposed.items(), strict=True):
        for at, counts in enumerate(methods.values()):
            share, false = counts.recognised / counts.looked, counts.false / counts.looked
            axis.barh(at, share, height=0.6, color="#0072b2", alpha=0.35)
            axis.barh(at, share - false, height=0.6, color="#0072b2")
            axis.text(share + 0.02, at, f"{counts.recognised}", va="center", fontsize=6, color=style.MUTED)
        axis.set_title(lookup.label(where))
        axis.set_yticks(range(len(methods)), [naming.method(name) for name in methods])
        axis.set_ylim(most - 0.4, -0.6)
        axis.set_xlim(0, 1.15)
        axis.set_xticks((0, 0.5, 1))
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
    shares = {
        lookup.named(where, name, list(exposed)): one.recognised / one.looked
        for where, methods in exposed.items()
        for name, one in methods.items()
        if name not in naming.BASELINES
    }
    if shares:
        worst = max(shares, key=shares.__getitem__)
        figure.set_label(f"Most forgotten records are recognised after {worst}: {100 * shares[worst]:.0f} %")
    figure.supxlabel("share of forgotten records that are recognised", fontsize=7)
    return figure
