"""Mutation tests: do the tests of a room notice one changed place of its code?

    uv run python tests/mutation/run.py --room stats --sample 60 --seed 1
    uv run python tests/mutation/run.py                       # 60 of stats, metrics and verdicts together

Cosmic Ray changes the code (operators, comparisons, numbers, booleans, and/or, loops, exceptions) on a copy of the
tree, and of the quick tests in the room's folder those files run of which a test executes the changed line: they are
run once before, with coverage. A mutant is drawn in two steps, place and change, so that an operator with ten
substitutes does not count ten times. Each mutant runs in a fork of a process that has imported what takes long. A
survivor gets a test, vanishes with simpler code, or cannot be told from the original.

Only formulas are changed, that is what stands in the body of a function. What a module or a class declares (constants,
names and order of columns, options with their bounds) and what a function's head says (decorators, types, defaults)
are settings: a test that repeats them shows nothing.
"""

import argparse
import ast
import importlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path("unlearning_audit")
#: Room → the folder with its tests.
ROOMS = {"stats": "stats", "metrics": "metrics", "comparisons": "comparisons"}
SKIPPED = ("core/VariableInserter", "core/VariableReplacer")  # they need arguments
SECONDS = 60  # of computing, for one test
LIMIT = 900  # of waiting, for all tests
Spot = tuple[int, int]  # line and column

#: Imported once, before the forks; nothing of the library itself.
SLOW = ("matplotlib", "pandas", "pydantic", "pytest", "scipy.stats", "sklearn.svm", "sklearn.metrics", "torch")

#: Changes that no result shows: how a changed line reads in the original.
ALIKE = (
    (r"\breshape\((.*?),\s*(?:~1|-\s*[02-9])\)", r"reshape(\1, -1)"),  # every negative size is "what is left"
    (r"\breshape\((?:~1|-\s*[2-9])(?=[,)])", "reshape(-1"),
    (r"\bstrict\s*=\s*False", "strict=True"),  # an assertion about the code's own lists
)


def places(path: Path) -> dict[tuple, list[tuple[str, int]]]:
    """Every place of a file that can be changed: its position and kind of change → (operator, occurrence)."""
    tree, (bodies, hints) = get_ast_from_path(ROOT / path), spans(ROOT / path)
    changes: dict[tuple, list[tuple[str, int]]] = {}
    for operator in sorted(plugins.operator_names()):
        if operator in SKIPPED:
            continue
        mutation = plugins.get_operator(operator)()
        spots = [spot for node in ast_nodes(tree) for spot in mutation.mutation_positions(node)]
        for occurrence, (start, end) in enumerate(spots):
            inside, hint = (any(first <= start < last for first, last in part) for part in (bodies, hints))
            if inside and not hint:
                changes.setdefault((str(path), start, end, operator.split("_")[0]), []).append((operator, occurrence))
    return changes


def spans(path: Path) -> tuple[list[tuple[Spot, Spot]], list[tuple[Spot, Spot]]]:
    """Where the bodies of functions begin and end, and the types that are written in them."""
    bodies, hints = [], []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.FunctionDef):
            bodies.append(((node.body[0].lineno, node.body[0].col_offset), (node.end_lineno, node.end_col_offset)))
        for name in ("annotation", "returns"):
            if (hint := getattr(node, name, None)) is not None:
                hints.append(((hint.lineno, hint.col_offset), (hint.end_lineno, hint.end_col_offset)))
    return bodies, hints


def draw(rooms: list[str], sample: int, seed: int) -> list[tuple[Path, int, str, str, str]]:
    """Mutants in random order, the same for the same code and seed: file, line, new text, the line before and after."""
    paths = [path.relative_to(ROOT) for room in rooms for path in sorted((ROOT / LIBRARY / room).glob("*.py"))]
    items = [item for path in paths for item in sorted(places(path).items())]
    random.Random(seed).shuffle(items)
    rng = random.Random(seed + 1)
    mutants = []
    for (name, (line, _), _, _), changes in items:
        operator, occurrence = rng.choice(changes)
        text = (ROOT / name).read_text()
        try:
            new = mutate_code(text, plugins.get_operator(operator)(), occurrence)
        except AttributeError:  # Cosmic Ray cannot change an exception whose name has a dot
            continue
        pairs = zip(text.splitlines(), new.splitlines(), strict=False)
        before, after = next(((a.strip(), b.strip()) for a, b in pairs if a != b), ("", ""))
        if alike(before) != alike(after):
            mutants.append((Path(name), line, new, before, after))
        if len(mutants) == sample:
            break
    return mutants


def alike(text: str) -> str:
    """The line with such texts as they read in the original."""
    for pattern, original in ALIKE:
        text = re.sub(pattern, original, text)
    return text


class Watch:
    """What pytest does beside its own work: note the first failure, and stop a test that never ends."""

    def __init__(self, note: Path):
        self.note = note

    def fail(self, report) -> None:
        if report.failed and not self.note.exists():
            self.note.write_text(report.nodeid)

    pytest_runtest_logreport = pytest_collectreport = fail

    def pytest_runtest_setup(self, item) -> None:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)


def failed(tree: Path, tests: list[str], *options: str) -> str | None:
    """The first quick test that fails, None if none does; "slow" if one did not end."""
    note = tree / "failed.txt"
    note.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.chdir(tree)
        with (tree / "output.txt").open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        import pytest

        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        default = ["-x", "-q", "-n", "0", "--tb=line", f"--rootdir={tree}"]
        os._exit(int(pytest.main([*default, *options, *tests], plugins=[Watch(note)])))
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
            return "slow"
        if pid:
            return None if status == 0 else note.read_text() if note.exists() else "collection"
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "slow"


def executing(tree: Path, room: str) -> dict[tuple[str, int], list[str]]:
    """File and line of a room → the files of its tests that execute the line, first those that name the file."""
    import coverage

    os.environ["COVERAGE_FILE"] = str(tree / f"{room}.coverage")
    options = (f"--cov={LIBRARY / room}", "--cov-context=test", "--cov-report=", "--dist=no")
    if test := failed(tree, [f"tests/{ROOMS[room]}"], *options):
        sys.exit(f"{test} fails on the unchanged code: see {tree}/output.txt")
    data = coverage.CoverageData(os.environ["COVERAGE_FILE"])
    data.read()
    lines = {}
    for path in data.measured_files():
        name = str(Path(path).relative_to(tree))
        for line, contexts in data.contexts_by_lineno(path).items():
            files = sorted({context.split("::")[0] for context in contexts if context})
            lines[name, line] = sorted(files, key=lambda file: Path(path).stem.strip("_") not in file)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--room", action="append", choices=ROOMS, help="may be given several times; default: all")
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tree = Path(tempfile.mkdtemp(prefix="mutation-")) / "tree"
    ignored = shutil.ignore_patterns("__pycache__", "results", ".git", ".venv", ".snakemake", "mutation")
    shutil.copytree(ROOT, tree, ignore=ignored)
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    sys.dont_write_bytecode = True
    sys.path = [path for path in sys.path if not path.startswith(str(ROOT)) or path.startswith(sys.prefix)]
    for name in SLOW:
        importlib.import_module(name)
    sound, survivors, counts = {"slow"}, [], Counter()
    rooms = options.room or list(ROOMS)
    tests = {place: files for room in rooms for place, files in executing(tree, room).items()}
    for path, line, new, before, after in draw(rooms, options.sample, options.seed):
        original = (tree / path).read_text()
        (tree / path).write_text(new)
        # A line within a statement may have no count of its own; that of the nearest above it has.
        files = next(tests[str(path), above] for above in range(line, 0, -1) if (str(path), above) in tests)
        test = failed(tree, files) if files else None
        (tree / path).write_text(original)
        if test is not None and test not in sound:
            if failed(tree, files if test == "collection" else [test]) is not None:
                sys.exit(f"{test} fails on the unchanged code: see {tree}/output.txt")
            sound.add(test)
        outcome = "survived" if test is None else "killed"
        counts[outcome] += 1
        print(outcome, f"{path}:{line}", before, "→", after, test or "", sep="  ", flush=True)
        if test is None:
            survivors.append(f"{path}:{line}\n    - {before}\n    + {after}")
    print("\n".join(["", "Survivors:", *survivors] if survivors else []))
    print(f"{counts['killed']} of {counts.total()} killed")
    shutil.rmtree(tree.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
