"""``audit compare``: finished studies side by side, on the terminal and as a table."""

import argparse
from pathlib import Path

from unlearning_audit.artifacts import tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The folders of finished studies, and where the table goes."""
    parser.add_argument("folders", nargs="+", metavar="folder", help="a finished study, such as results/mine")
    parser.add_argument("--csv", default="compare.csv", help="where the table is written; default: compare.csv")


def run(args: argparse.Namespace) -> int:
    """Print what differs and write all that is shared. Raises ValueError for a folder that holds no finished study."""
    from unlearning_audit.display import compare, ending

    if len(args.folders) < 2:
        raise ValueError("compare: give at least two folders, such as audit compare results/a results/b")
    path = Path(args.csv)
    if path.is_dir():
        raise ValueError(f"--csv {path}: this is a folder; give the name of a file, such as compare.csv")
    compared = compare.compare([compare.read(folder) for folder in args.folders])
    tables.write_rows(path, compare.rows(compared), ("method", *compared.names, "why"))
    print(compare.text(compared, ending.terminal_width()))
    print(f"Table: {path}")
    return 0
