"""A sequence of requests: how well each of them is forgotten, after every request that was made."""

from unlearning_audit.display import lookup, naming, style
from unlearning_audit.display.lookup import Numbers

NEEDS = "requests"


def draw(numbers: Numbers, order: dict):
    """A panel per method, along the requests made; a line for each request, dotted until it is made.

    Shades run from the first request (light) to the last (dark). Without an ``attack``, the paper's set.
    """
    wish, methods = order["figure"], lookup.methods(numbers.cases)
    figure, axes = style.panels(len(methods), height=1.9, columns=3)
    colours, labels = style.colours(order["methods"]), {}
    for axis, name in zip(axes, methods, strict=True):
        cases = {int(case["axes"]["request"]): case for case in numbers.cases if case["method"] == name}
        requests, ends = sorted(cases), labels.setdefault(name, [])
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
        axis.axhline(1.0, color=style.INK, lw=0.7, ls=(0, (4, 2)), zorder=0)
        axis.set_xticks(requests)
        axis.set_xlabel("requests made")
        axis.set_ylabel("Q of each request")
        axis.grid(axis="y")
        axis.set_title(naming.method(name))
    low, high = axes[0].get_ylim()
    for axis, (name, ends) in zip(axes, labels.items(), strict=True):
        axis.set_ylim(low, high)
        heights = style.spread([value for _, value in ends], 0.06 * (high - low), low, high)
        for (number, _), y in zip(ends, heights, strict=True):
            axis.annotate(
                number, (1, y), (3, 0), xycoords=axis.get_yaxis_transform(), textcoords="offset points", va="center",
                size=6.5, color=colours[name], annotation_clip=False,
            )  # fmt: skip
    return figure
