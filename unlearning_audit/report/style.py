"""Define the style of all figures: one colour per method, and the same bytes for the same numbers."""

import math
import textwrap
from itertools import cycle, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import unlearning_audit
from unlearning_audit.report import naming
from unlearning_audit.store.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure

#: Colours that the page replaces by those of its light or dark theme. Colours of data are not replaced.
INK, MUTED, GRID, PAPER = "#1a1c20", "#6b7079", "#d8dbe0", "#fefefe"

#: Okabe and Ito's colours, then some of Tol's: distinguishable with colour-vision deficiencies, on white and black.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#aa4499", "#999933", "#44aa99", "#cc6677")
#: Markers of methods that are no references, in study order.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Colours of forgotten and of held-out samples.
FORGET, HELDOUT = "#d55e00", "#0072b2"

#: The most letters of a title, or of all labels of an axis, that fit into the narrowest panel.
SHORT = 24

#: Width in inches of a figure in half a page, and in a whole one.
HALF, WHOLE = 3.4, 7.0

#: Dots per inch of a png.
DOTS = 300

#: The settings of matplotlib for all figures.
FILE = unlearning_audit.ROOT / "resources" / "figures.mplstyle"


def start() -> None:
    """Set the style of all figures in matplotlib, overriding a user's own settings."""
    import matplotlib

    matplotlib.rc_file(FILE)


def colours(methods: list[str]) -> dict[str, str]:
    """Return method → colour: references (none, retrain, …) are grey and black, other methods take the colours of the
    palette in study order."""
    compared = [name for name in methods if name not in naming.BASELINES]
    return {"none": MUTED, "retrain": INK, "retrain_control": INK, **dict(zip(compared, cycle(PALETTE), strict=False))}


def markers(methods: list[str]) -> dict[str, str]:
    """Return method → marker, so that methods can be told apart without colours."""
    compared = [name for name in methods if name not in naming.BASELINES]
    return {"none": "x", "retrain": "o", "retrain_control": "o", **dict(zip(compared, cycle(MARKERS), strict=False))}


def panels(
    count: int, *, height: float | list[float], columns: int = 3, share_y: bool = True, width: float | None = None
) -> tuple["Figure", list["Axes"]]:
    """Return a figure and its ``count`` panels, in rows of at most ``columns``; spare panels of the last row are
    hidden.

    Parameters
    ----------
    height
        Inches: one number for every row, or a list with a number for each row.
    share_y
        Whether all panels have the same vertical limits.
    width
        Inches. None makes a figure of one or two columns half a page wide, and any other a whole page.
    """
    # Without pyplot, which takes longer to import than most figures to draw.
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    start()
    across = min(count, columns)
    down = -(-count // across)  # count / across, rounded up
    width = width or (HALF if across <= 2 else WHOLE)
    heights = height if isinstance(height, list) else [height] * down
    spaces = ConstrainedLayoutEngine(w_pad=0.04, h_pad=0.04, wspace=0.04, hspace=0.06)
    figure = Figure(figsize=(width, sum(heights)), layout=spaces)
    grid = figure.subplots(down, across, squeeze=False, sharey=share_y, height_ratios=heights)
    axes = list(grid.flat)
    for spare in axes[count:]:
        spare.set_visible(False)
    return figure, axes[:count]


def blocks(count: int, size: int, *, height: float, **more: Any) -> tuple["Figure", list[list["Axes"]]]:
    """Return a figure and ``count`` lists of ``size`` panels.

    Every list begins in a new row of the figure. A row has room for ``size`` panels; if ``size`` is above five, it has
    room for four, and a list goes on in the next row.

    Parameters
    ----------
    height
        The height of a row, in inches.
    more
        Further arguments of `panels`.
    """
    across = size if size <= 5 else 4
    whole = -(-size // across) * across  # panels of the full rows of one list, spare ones at the end included
    figure, axes = panels(count * whole, height=height, columns=across, **more)
    groups = [axes[at : at + whole] for at in range(0, count * whole, whole)]
    for spare in (axis for group in groups for axis in group[size:]):
        spare.set_visible(False)
    return figure, [group[:size] for group in groups]


def legend(figure: "Figure", entries: list[dict[str, Any]]) -> float:
    """Add a legend above all panels, in as few lines as the figure's width allows; return its height in inches, 0
    without entries. ``entries``: for each entry the arguments of matplotlib's `Line2D`, ``label`` among them."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **entry) for entry in entries]
    for columns in range(len(handles), 0, -1):  # the first number of columns that fits has the fewest lines
        box = figure.legend(handles=handles, loc="outside upper left", ncols=columns)
        extent = box.get_window_extent()
        if columns == 1 or extent.width <= figure.bbox.width:
            return float(extent.height / figure.dpi)
        box.remove()
    return 0.0


def blank(sentence: str) -> "Figure":
    """Return a figure with a sentence that says why nothing is drawn."""
    figure, (axis,) = panels(1, height=0.6)
    axis.set_axis_off()
    axis.text(0, 0.5, sentence, va="center", color=MUTED)
    return figure


def rows(axis: "Axes", names: list[str], most: int = 0) -> None:
    """Label the rows of a panel by ``names`` from the top, and draw vertical grid lines.

    The panel has room for at least ``most`` rows, so that rows in panels beside each other are equally high.
    """
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(max(most, len(names)) - 0.4, -0.6)  # row 0 is at the top
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.grid(axis="x")


def note(
    axis: "Axes",
    text: str,
    corner: tuple[int, int],
    shift: tuple[int, int],
    color: str,
    *,
    ha: str = "left",
    va: str = "bottom",
    size: float = 6.5,
    **more: Any,
) -> None:
    """Write text beside a ``corner`` of a panel, from (0, 0), bottom left, to (1, 1), top right, with a ``shift`` to
    the right and upwards in points."""
    axis.annotate(text, corner, shift, xycoords="axes fraction", textcoords="offset points", ha=ha, va=va, size=size,
                  color=color, **more)  # fmt: skip


def absent(axis: "Axes", row: float, why: str) -> None:
    """Write ``why`` in italics in a row of a panel, for a method that has no mark there."""
    axis.text(
        0.02, row, why, transform=axis.get_yaxis_transform(), va="center", color=MUTED, size=6.5, style="italic",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1},
    )  # fmt: skip


def mark(
    axis: "Axes",
    y: float,
    value: float,
    ends: tuple[float, float],
    colour: str,
    marker: str = "o",
    *,
    hollow: bool = False,
) -> None:
    """Draw a value at height ``y`` and its interval, whose ``ends`` are NaN if there is none. A ``hollow`` mark is an
    outline."""
    if not math.isnan(sum(ends)):
        axis.plot(ends, [y, y], color=colour, solid_capstyle="round")
    axis.plot(value, y, marker, color=colour, mfc=PAPER if hollow else colour, mew=1, clip_on=False)


def nothing(axis: "Axes", why: str) -> None:
    """Write ``why`` in italics in the middle of a panel without marks."""
    axis.text(0.5, 0.5, why, transform=axis.transAxes, ha="center", color=MUTED, size=6.5, style="italic")


def rate_axes(axis: "Axes", low: float) -> None:
    """Make both directions of a panel logarithmic rates from ``low`` to 1, and draw the line of chance, on which both
    rates are equal."""
    axis.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1.05))
    axis.plot([low, 1], [low, 1], color=MUTED, lw=0.8, ls=(0, (1, 1.5)), zorder=0)
    axis.grid(which="major")


def spread(positions: list[float], gap: float, low: float, high: float) -> list[float]:
    """Return the positions, moved apart as little as possible until no two are closer than ``gap``.

    The order of the positions is kept, and they stay within [low, high] if there is room for all.
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(positions, kind="stable")
    steps = gap * np.arange(len(order))
    # Sorted positions are at least a gap apart if, minus 0, 1, 2, … gaps, they do not decrease. The nearest sequence
    # that does not decrease is an isotonic regression, which SciPy refuses to compute of an empty list.
    starts = isotonic_regression(np.array(positions)[order] - steps).x if len(order) else steps
    # The highest start for which the last position is at most ``high``.
    moved = np.clip(starts, low, max(high - steps[-1:].sum(), low)) + steps
    return [float(position) for position in moved[np.argsort(order)]]  # back from sorted to the given order


def logarithmic(axis: "Axes", subs: tuple[float, ...] = (1.0, 3.0)) -> None:
    """Make the horizontal direction of a panel logarithmic, with plain numbers (0.1, not 10⁻¹) at the powers of ten,
    each multiplied by each of ``subs``."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=subs, numticks=6))
    axis.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def fit(figure: "Figure") -> None:
    """Break titles that are wider than their panel, and turn the labels below a panel by 30° if they would overlap.

    Nothing is measured or changed if every panel has a title of at most `SHORT` letters, and labels of at most `SHORT`
    letters together.
    """
    if not any(len(axis.get_title(loc="left")) > SHORT or _letters(axis) > SHORT for axis in figure.axes):
        return
    arrange(figure)  # the widths of panels depend on the labels beside them
    for axis in figure.axes:
        title = axis.set_title(axis.get_title(loc="left"), loc="left")
        share = title.get_window_extent().width / axis.bbox.width
        if share > 1:
            lines = title.get_text().splitlines()
            fitting = max(8, int(max(map(len, lines)) / share))  # letters of a line that is as wide as the panel
            title.set_text("\n".join(textwrap.fill(line, fitting, break_long_words=False) for line in lines))
        labels = [label for label in axis.get_xticklabels() if label.get_text()]
        extents = sorted((label.get_window_extent() for label in labels), key=lambda extent: extent.x0)
        if any(left.x1 > right.x0 for left, right in pairwise(extents)):
            for label in labels:
                label.set(rotation=30, horizontalalignment="right", rotation_mode="anchor")


def _letters(axis: "Axes") -> int:
    """Return the number of letters of all labels below a panel."""
    return sum(len(label.get_text()) for label in axis.get_xticklabels())


def arrange(figure: "Figure") -> None:
    """Place the panels of a figure so that labels beside them have room. A figure without a layout engine stays as it
    is."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)


def save(figure: "Figure", *, svg: str | Path, png: str | Path) -> None:
    """Write a figure as svg and png, without a date or version, so that the same figure gives the same bytes.

    Text in the svg remains text. The figure's label, a sentence on what it shows, becomes the title of the svg.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure.set_dpi(DOTS)
    fit(figure)
    # Once for both files, and without savefig, which would arrange and draw the figure again for each file.
    arrange(figure)
    figure.set_layout_engine("none")
    title = {"Title": figure.get_label()} if figure.get_label() else {}
    with replacing(svg) as part:
        FigureCanvasSVG(figure).print_svg(part, metadata={"Date": None, "Creator": None, **title})
    figure.set_dpi(DOTS)  # print_svg sets 72
    with replacing(png) as part:
        FigureCanvasAgg(figure).print_png(part, metadata={"Software": None})
