"""The sentences below the answer: what was asked, and what must not be concluded."""

from unlearning_audit.display import naming, words
from unlearning_audit.display.page.matrix import HOLDS, Matrix
from unlearning_audit.stats import decide


def sentences(matrix: Matrix) -> list[str]:
    """What the columns and the open verdicts do not say; of a study without methods, that there are none."""
    methods = [name for name in matrix.methods if name not in naming.BASELINES]
    if not methods:
        sentence = "No unlearning method was compared with retraining; the sections below hold its numbers."
        hold = sum(column.state.sign == HOLDS for column in matrix.columns)
        columns = naming.count(len(matrix.columns), "column")
        return [sentence, f"Checks passed in {hold} of {columns}."] if matrix.columns else [sentence]
    blind = words.REASONS[decide.NO_YARDSTICK]
    doubtful = [column for column in matrix.columns if column.state.tone == "bad"]
    parts = []
    if any(square.verdict == decide.INCONCLUSIVE for square in matrix.judged()):
        parts.append(f"that methods forget of which the verdict is {words.UNKNOWN.word!r}")
    for where, why in ((False, "where a check fails"), (True, "where there are too few retrained models")):
        labels = [column.label for column in doubtful if (column.state.words == blind) == where]
        if labels:
            listed = words.joined(labels) if len(labels) <= 3 else f"{len(labels)} columns"
            parts.append(f"anything from {listed}, {why}")
    parts.append("anything about other data, models or attacks")
    return [f"Not to be concluded: {'; '.join(parts)}."]
