"""The three sentences above the matrix: what was asked, what the answer is, what must not be concluded."""

from collections import Counter

from unlearning_audit.display import decisions, naming
from unlearning_audit.display.page.matrix import HOLDS, MARKS, Matrix
from unlearning_audit.stats import decide


def sentences(matrix: Matrix) -> list[str]:
    """At most three sentences; fewer where no method was compared."""
    methods = [name for name in matrix.methods if name not in naming.BASELINES]
    if not methods:
        sentence = "No unlearning method was compared with retraining; the sections below hold its numbers."
        hold = sum(column.state.sign == HOLDS for column in matrix.columns)
        columns = naming.count(len(matrix.columns), "column")
        return [sentence, f"Controls hold in {hold} of {columns}."] if matrix.columns else [sentence]
    scenarios, steps = len(matrix.scenarios()), len(matrix.columns)
    count = naming.count(len(methods), "unlearning method")
    verb = "Does" if len(methods) == 1 else "Do"
    question = f"{verb} {count} forget as retraining does"
    if steps > 1:
        settings = f", at {steps} settings in all" if steps > scenarios else ""
        question += f", in {naming.count(scenarios, 'scenario')}{settings}"
    question += "?"
    return [question, _answer(matrix, methods), _warning(matrix)]


def _answer(matrix: Matrix, methods: list[str]) -> str:
    """How many verdicts of each kind, and which methods are like retraining wherever they were tried."""
    counts = Counter(square.verdict for square in matrix.judged())
    parts = [f"{counts[name]:,} {decisions.WORDS[name]}" for name in MARKS if counts[name]]
    best = [
        naming.method(name)
        for name in methods
        if all(square is None or square.verdict == decide.EQUIVALENT for _, square in matrix.row(name))
    ]
    word = decisions.WORDS[decide.EQUIVALENT]
    closing = f"no method is {word} everywhere"
    if best:
        closing = f"{_list(best)} {'is' if len(best) == 1 else 'are'} {word} wherever tried"
    return f"Of {naming.count(sum(counts.values()), 'verdict')}, {_list(parts)}; {closing}."


def _warning(matrix: Matrix) -> str:
    """What the columns and the open verdicts do not say."""
    blind = decisions.WORDS[decide.NO_YARDSTICK]
    doubtful = [column for column in matrix.columns if column.state.tone == "bad"]
    open_ones = any(square.verdict == decide.INCONCLUSIVE for square in matrix.judged())
    parts = []
    if open_ones:
        parts.append(f"that {decisions.WORDS[decide.INCONCLUSIVE]} methods forget")
    for where, why in ((False, "where a control fails"), (True, "where there is no yardstick")):
        labels = [column.label for column in doubtful if (column.state.words == blind) == where]
        if labels:
            parts.append(f"anything from {_list(labels) if len(labels) <= 3 else f'{len(labels)} columns'}, {why}")
    parts.append("anything about other data, models or attacks")
    return f"Not to be concluded: {'; '.join(parts)}."


def _list(parts: list[str]) -> str:
    """ "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
