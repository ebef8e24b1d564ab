"""Show that no number has changed: kept inputs are scored anew, or another commit is trained beside this one.

    uv run python tests/golden/check.py                       # score the kept inputs, and compare with what is expected
    uv run python tests/golden/check.py --against BASE        # train both trees here, and compare bit for bit
    uv run python tests/golden/check.py --against HEAD~3 --studies swap text
    uv run python tests/golden/check.py --against BASE --tour # the default study of that commit as well

Numbers are equal if |a − b| ≤ 1e-9 · max(1, |a|); of trained trees, if they are the same. Everything else in a table is
compared as it stands but for sentences. `renamed.csv` says what has another name now, and `allowed.csv` what may differ
and why; a line there that nothing needs is an error, unless only other processors need it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import sha256
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import pandas as pd

GOLDEN = Path(__file__).resolve().parent
ROOT = GOLDEN.parents[1]
STUDIES = GOLDEN / "studies"
EXPECTED = GOLDEN / "expected"
CACHE = ROOT / ".snakemake" / "golden"

#: The commit that every later one is compared with.
BASE = "01adb9eaa051"

TOLERANCE = 1e-9

#: Columns of sentences, and of places in code.
SENTENCES = ("note", "traceback", "file", "line")

#: Differences of one table that are printed.
MOST = 10


@dataclass(frozen=True)
class Difference:
    """``column`` of ``table`` in the row that begins with ``row``; of a whole row the column is "row", and of a whole
    column the row is empty."""

    table: str
    column: str
    row: str
    expected: object
    found: object

    def __str__(self) -> str:
        return f"{self.table}: {self.column} of [{self.row}] was {self.expected}, is {self.found}"


# ---------------------------------------------------------------- comparison


def compare(
    table: str, expected: pd.DataFrame, found: pd.DataFrame, tolerance: float = TOLERANCE
) -> Iterator[Difference]:
    """What differs between two tables of text, in whatever order their rows are.

    Rows are known by all their cells but those of columns with fractions, which are compared as numbers.
    """
    expected, found = (frame.drop(columns=[*SENTENCES], errors="ignore") for frame in (expected, found))
    for column in expected.columns.symmetric_difference(found.columns):
        yield Difference(table, column, "", *("there" if column in f else "missing" for f in (expected, found)))
    columns = [column for column in expected if column in found]
    real = [column for column in columns if _has_fractions(expected[column])]
    names = [column for column in columns if column not in real]
    before, after = (frame[real].set_axis(_rows(frame[names])) for frame in (expected, found))
    for row in before.index.difference(after.index):
        yield Difference(table, "row", row, "there", "missing")
    for row in after.index.difference(before.index):
        yield Difference(table, "row", row, "missing", "there")
    both = before.index.intersection(after.index)
    for column in real:
        a, b = before.loc[both, column], after.loc[both, column]
        x, y = (pd.to_numeric(side, errors="coerce").to_numpy(float) for side in (a, b))
        with np.errstate(invalid="ignore"):
            near = np.abs(x - y) <= tolerance * np.maximum(1, np.abs(x))
        alike = near | (x == y) | (a.to_numpy() == b.to_numpy())
        for at in np.flatnonzero(~alike):
            yield Difference(table, column, both[at], a.iloc[at], b.iloc[at])


def _has_fractions(column: pd.Series) -> bool:
    """Whether a column holds numbers, and some that are not whole."""
    numbers = pd.to_numeric(column[column != ""], errors="coerce")
    return bool(numbers.notna().all() and (numbers % 1 != 0).any())


def _rows(names: pd.DataFrame) -> list[str]:
    """What each row is called; equal ones are numbered in their order."""
    text = pd.Series("", index=range(len(names)))
    for column in names:
        cells = names[column].astype(str).reset_index(drop=True)
        numbers = pd.to_numeric(cells, errors="coerce")
        whole = numbers.notna() & (numbers % 1 == 0)
        cells[whole] = numbers[whole].astype("int64").astype(str)  # 1.0 is 1
        text += cells + " "
    numbers = text.groupby(text).cumcount()
    return [f"{row.strip()} #{n + 1}" if n else row.strip() for row, n in zip(text, numbers, strict=True)]


def in_new_words(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Tables of the old tree with the names of `renamed.csv`; what has no new name is left out."""
    names = pd.read_csv(GOLDEN / "renamed.csv", dtype=str, keep_default_na=False)
    maps = {kind: dict(zip(part["old"], part["new"], strict=True)) for kind, part in names.groupby("kind")}
    tables = {maps.get("table", {}).get(name, name): frame for name, frame in tables.items()}
    codes = names[names["kind"] == "code"]
    for name, frame in tables.items():
        frame = frame.copy()
        for where, old, new in codes[["where", "old", "new"]].itertuples(index=False):
            for column in [column for column in frame if column == where or not where]:
                frame = frame[frame[column] != old] if new == "" else frame.replace({column: {old: new}})
        of_columns = maps.get("column", {})
        frame = frame.drop(columns=[old for old, new in of_columns.items() if new == ""], errors="ignore")
        tables[name] = frame.rename(columns=of_columns)
    return {name: frame for name, frame in tables.items() if name}


def differences(study: str, old: dict[str, pd.DataFrame], new: dict[str, pd.DataFrame], tolerance: float) -> list:
    """What differs between the tables of a study in two trees."""
    old = in_new_words(old)
    found = [
        Difference(f"{study}/{name}", "table", "", *("there" if name in tables else "missing" for tables in (old, new)))
        for name in sorted(old.keys() ^ new.keys())
    ]
    for name in sorted(old.keys() & new.keys()):
        found += compare(f"{study}/{name}", old[name], new[name], tolerance)
    return found


def judge(part: str, found: dict[str, list[Difference]]) -> int:
    """Print what differs and is not allowed to, and which lines of `allowed.csv` nothing needed; 1 if there is any.

    ``found``: study → differences; lines about other studies are left alone. Lines of the part "processors" say what
    hangs on the last bit of a number, and so differs between processors: here they may be unused.
    """
    lines = pd.read_csv(GOLDEN / "allowed.csv", dtype=str, keep_default_na=False)
    lines = lines[lines["part"].isin([part, "both"] + ["processors"] * (part == "scoring"))]
    used, wrong = set(), []
    for difference in (difference for of_study in found.values() for difference in of_study):
        values = {"table": difference.table, "column": difference.column, "row": difference.row}
        allows = [
            number for number, line in lines.iterrows()
            if line["reason"] and all(fnmatch(value, line[name]) for name, value in values.items())
        ]  # fmt: skip
        used |= set(allows)
        wrong += [] if allows else [difference]
    for table in dict.fromkeys(difference.table for difference in wrong):
        of_table = [str(difference) for difference in wrong if difference.table == table]
        print("\n".join(of_table[:MOST]), *([f"{table}: and {len(of_table) - MOST} more"] * (len(of_table) > MOST)))
    needed = lines[lines["part"] != "processors"]
    unused = [
        number for number, line in needed.iterrows()
        if number not in used and any(fnmatch(study, line["table"].partition("/")[0]) for study in found)
    ]  # fmt: skip
    for number in unused:
        print(f"allowed.csv, line {number + 2}: nothing differs there; delete the line")
    print(f"{part}: {', '.join(found)}: {len(wrong)} differences" + f", {len(used)} lines of allowed.csv used")
    return int(bool(wrong or unused))


# ---------------------------------------------------------------- files


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """All tables below a folder, by name, as text."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix().partition(".")[0]
        parquet = path.suffix == ".parquet"
        found[name] = pd.read_parquet(path) if parquet else pd.read_csv(path, dtype=str, keep_default_na=False)
    return found


def write_tables(folder: Path, tables: dict[str, pd.DataFrame]) -> None:
    """Write tables in place of all that the folder holds: scores in parquet, long tables compressed."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, frame in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name == "scores":
            frame.to_parquet(folder / f"{name}.parquet", compression="zstd", index=False)
        elif len(frame) > 500:
            frame.to_csv(folder / f"{name}.csv.gz", index=False, compression={"method": "gzip", "mtime": 0})
        else:
            frame.to_csv(folder / f"{name}.csv", index=False)


# ---------------------------------------------------------------- scoring


def scored(study: str) -> list[Difference]:
    """What differs where a study is scored anew from kept inputs."""
    import tree

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        try:
            tables = tree.score(study)
        except Exception:  # not every error could be sent to the process that asks
            return [Difference(study, "study", "", "scored", traceback.format_exc())]
    return differences(study, read_tables(EXPECTED / study), tables, TOLERANCE)


# ---------------------------------------------------------------- training


def trained(tree: Path, study: Path, folder: Path) -> dict[str, pd.DataFrame]:
    """The tables and the digests of all weights of a study that a tree runs in its own environment."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    program = [str(tree / "tests/golden/tree.py"), str(study)]
    print(f"{study.stem} in {tree}", flush=True)
    command = ["uv", "run", "--project", str(tree), "python", *program]
    if subprocess.run(command, cwd=folder, env=environment, check=False).returncode:
        raise SystemExit(f"{study.stem}: the run in {tree} failed")
    return read_tables(folder / "tables")


def check_training(revision: str, studies: list[Path], tour: bool) -> int:
    """Run studies in this tree and in another commit's; what came of that is kept until its content changes."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout

    commit = git("rev-parse", f"{revision}^{{commit}}").strip()
    other = CACHE / commit / "tree"
    if not other.exists():
        git("worktree", "add", "--force", "--detach", str(other), commit)
    if tour:
        studies = [*studies, CACHE / commit / "tour.yaml"]
        studies[-1].write_text(git("show", f"{commit}:config.yaml"), encoding="utf-8")
    found = {}
    for study in studies:
        folder = CACHE / commit / f"{study.stem}-{sha256(study.read_bytes()).hexdigest()[:10]}"
        if not any(folder.glob("tables/weights.csv*")):  # the last table that is written
            trained(other, study, folder)
        old, new = read_tables(folder / "tables"), trained(ROOT, study, CACHE / "here" / study.stem)
        found[study.stem] = differences(study.stem, old, new, 0.0)
    return judge("training", found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--against", metavar="REV", help=f"train that commit and this tree (BASE: {BASE})")
    parser.add_argument("--studies", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--tour", action="store_true", help="train the default study of that commit as well")
    options = parser.parse_args()
    if options.against is None:
        names = options.studies or sorted(path.name for path in EXPECTED.iterdir())
        with Pool(2, maxtasksperchild=1) as pool:  # two at a time, each in a process of its own
            found = dict(zip(names, pool.imap(scored, names, chunksize=1), strict=True))
        return judge("scoring", found)
    studies = {path.stem: path for folder in (STUDIES, GOLDEN / "trained") for path in sorted(folder.glob("*.yaml"))}
    names = options.studies or [name for name in studies if name != "imported"]  # nothing of that is trained
    revision = BASE if options.against == "BASE" else options.against
    return check_training(revision, [studies[name] for name in names], options.tour)


if __name__ == "__main__":
    sys.exit(main())
