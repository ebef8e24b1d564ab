"""``audit compare``: finished studies side by side, on the terminal and as one page."""

import argparse
from pathlib import Path

from unlearning_audit.artifacts.files import write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The folders of finished studies, and where the page goes."""
    parser.add_argument("folders", nargs="+", metavar="folder", help="a finished study, such as results/mine")
    parser.add_argument("--page", default="compare.html", help="where the page is written; default: compare.html")


def run(args: argparse.Namespace) -> int:
    """Print what differs and write the page. Raises ValueError for a folder that holds no finished study."""
    from unlearning_audit.display import ending
    from unlearning_audit.display.page import compare

    if len(args.folders) < 2:
        raise ValueError("compare: give at least two folders, such as audit compare results/a results/b")
    page = Path(args.page)
    if page.is_dir():
        raise ValueError(f"--page {page}: this is a folder; give the name of a file, such as compare.html")
    compared = compare.compare([compare.read(folder) for folder in args.folders])
    write_text(page, compare.render(compared))
    print(compare.text(compared, ending.terminal_width()))
    print(f"Page: {page}")
    return 0
