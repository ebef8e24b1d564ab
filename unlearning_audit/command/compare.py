"""Run ``audit compare``: show the differences between finished studies on the terminal and as a table."""

from unlearning_audit.store import tables


def run(folders: list[str], csv: str) -> None:
    """Print which verdicts differ between finished studies, and write all shared verdicts to the file ``csv``.

    Parameters
    ----------
    folders
        The folders of results.

    Raises
    ------
    ValueError
        For fewer than two folders, and for a folder without a finished study.
    """
    from unlearning_audit.report import compare, ending

    if len(folders) < 2:
        raise ValueError("compare: give at least two folders, such as audit compare results/a results/b")
    studies = [compare.read(folder) for folder in folders]
    shared = compare.compare(studies)
    tables.write_rows(csv, shared, ("method", *compare.names(studies), "why"))
    print(compare.text(studies, shared, ending.terminal_width()))
    print(f"Table: {csv}")
