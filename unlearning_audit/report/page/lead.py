"""Write the sentences below the answer that say what must not be concluded."""

from unlearning_audit.report import naming, words
from unlearning_audit.report.page.matrix import Matrix
from unlearning_audit.stats import decide


def sentences(matrix: Matrix) -> list[str]:
    """Return a sentence on what must not be concluded from the matrix: open verdicts, and scenarios whose checks
    failed.

    For a study without unlearning methods, sentences say so, and in how many scenarios checks passed.
    """
    methods = [name for name in matrix.methods if name not in naming.BASELINES]
    if not methods:
        hold = sum(column.state.sign == words.OK for column in matrix.columns)
        columns = naming.count(len(matrix.columns), "column")
        return [words.NO_METHODS, f"Checks passed in {hold} of {columns}."] if matrix.columns else [words.NO_METHODS]
    blind = words.REASONS[decide.NO_YARDSTICK]
    doubtful = [column for column in matrix.columns if column.state.tone == "bad"]
    parts = []
    if any(square.verdict == decide.INCONCLUSIVE for square in matrix.judged()):
        parts.append(words.OPEN)
    for where, why in words.WHERE.items():
        labels = [column.label for column in doubtful if (column.state.words == blind) == where]
        if labels:
            listed = words.joined(labels) if len(labels) <= 3 else f"{len(labels)} columns"
            parts.append(f"anything from {listed}, {why}")
    return [f"Not to be concluded: {'; '.join([*parts, words.ELSEWHERE])}."]
