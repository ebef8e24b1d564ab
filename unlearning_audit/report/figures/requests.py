"""Draw a sequence of requests: how well each request is forgotten, after every request that was made."""

from typing import Any

from unlearning_audit.report import lookup, naming, style
from unlearning_audit.report.figures.axis import grouped
from unlearning_audit.report.lookup import Numbers

NEEDS = "requests"
#: Fields of a figure in a study that this kind reads.
READS = ("attack",)

#: Panels in a row.
ACROSS = 3


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw a panel for each method of each scenario, with a line for each request along the requests made.

    A line is dotted until its request is made. Shades run from the first request (light) to the last (dark). Without an
    ``attack``, Q is of the paper's set.
    """
    wish, sequences = order["figure"], grouped(numbers.cases, "request")
    panels = [(title, name) for title, cases in sequences.items() for name in lookup.methods(cases)]
    figure, axes = style.panels(len(panels), height=1.9, columns=ACROSS)
    colours, labels = style.colours(order["methods"]), []
    moved: dict[str, float] = {}
    for at, (axis, (title, name)) in enumerate(zip(axes, panels, strict=True)):
        cases = {int(case["axes"]["request"]): case for case in sequences[title] if case["method"] == name}
        requests = sorted(cases)
        ends: list[tuple[str, float]] = []
        labels.append(ends)
        for number in requests:
            cells = [numbers.cell(cases[reached], "q", wish["attack"], request=number) for reached in requests]
            shade = 0.25 + 0.75 * number / len(requests)
            for reached, style_of_line in ((False, ":"), (True, "-")):
                # The dotted line reaches the point at which the request is made.
                columns = [
                    i for i, request in enumerate(requests) if (request >= number if reached else request <= number)
                ]
                axis.plot(
                    [requests[i] for i in columns], [cells[i].value for i in columns], style_of_line,
                    color=colours[name], alpha=shade, marker="o" if reached else "", ms=3, mew=0, clip_on=False,
                )  # fmt: skip
            if not cells[-1].empty:
                ends.append((str(number), cells[-1].value))
                if name not in naming.BASELINES:
                    made = cells[requests.index(number)].value
                    moved[naming.method(name)] = max([moved.get(naming.method(name), 0.0), *(
                        abs(cell.value - made) for cell in cells[requests.index(number) + 1 :])])  # fmt: skip
        axis.axhline(1.0, color=style.INK, lw=0.7, ls=(0, (4, 2)), zorder=0)
        axis.set_xticks(requests)
        axis.set_xlabel("requests made")
        axis.set_ylabel("" if at % ACROSS else "Q of each request")
        axis.grid(axis="y")
        axis.set_title(naming.method(name) if len(sequences) == 1 else f"{title}, {naming.method(name)}")
    low, high = axes[0].get_ylim()
    for axis, (_, name), ends in zip(axes, panels, labels, strict=True):
        axis.set_ylim(low, high)
        heights = style.spread([value for _, value in ends], 0.06 * (high - low), low, high)
        for (request, _), y in zip(ends, heights, strict=True):
            axis.annotate(
                request, (1, y), (3, 0), xycoords=axis.get_yaxis_transform(), textcoords="offset points", va="center",
                size=6.5, color=colours[name], annotation_clip=False,
            )  # fmt: skip
    if moved:
        most = max(moved, key=moved.__getitem__)
        figure.set_label(f"Later requests move the Q of an earlier one by at most {moved[most]:.2f} ({most})")
    return figure
