"""Mutation testing: what the tests notice when one line of the library is changed.

    uv run python tests/mutation/run.py --sample 200 --seed 1      # draw mutants, run them, say what survived
    uv run python tests/mutation/run.py --only stats/ranks         # every drawn mutant of one file

Cosmic Ray changes the code (operators, comparisons, numbers, booleans, and/or, loops, exceptions); the tests of each
file run on a copy of the tree, each mutant in a fork of a process that has imported what takes long. A mutant is drawn
in two steps, place and change, so that an operator with ten substitutes does not count ten times. Of methods and
attacks only the cases that name them are run; a test that fails has to pass on the unchanged code. Results are kept in
``--to`` and a second call goes on where the first was stopped. A mutant listed in equivalent.txt cannot change what
anybody sees, with the reason; it does not count, nor does one ALIKE the original. The score is killed/(killed +
survived).
"""

import argparse
import ast
import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_code
from tests_of import MODULES, tests_of

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path("unlearning_audit")
SKIPPED = ("core/VariableInserter", "core/VariableReplacer")  # they need arguments
SECONDS = 60  # of computing, for one test
LIMIT = 900  # of waiting, for all tests


def places(module: str) -> dict[tuple, list[tuple[str, int]]]:
    """Every place of a file that can be changed: its position and kind of change → (operator, occurrence)."""
    path = ROOT / LIBRARY / f"{module}.py"
    tree, hidden = get_ast_from_path(path), annotations(path)
    changes: dict[tuple, list[tuple[str, int]]] = {}
    for operator in sorted(plugins.operator_names()):
        if operator in SKIPPED:
            continue
        mutation = plugins.get_operator(operator)()
        spots = [spot for node in ast_nodes(tree) for spot in mutation.mutation_positions(node)]
        for occurrence, (start, end) in enumerate(spots):
            if not any(first <= start < last for first, last in hidden):
                kind = operator.split("_")[0]
                changes.setdefault((module, start, end, kind), []).append((operator, occurrence))
    return changes


def annotations(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where type annotations begin and end: a changed one changes nothing, or fails when it is imported."""
    spans = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        for name in ("annotation", "returns"):
            if (hint := getattr(node, name, None)) is not None:
                spans.append(((hint.lineno, hint.col_offset), (hint.end_lineno, hint.end_col_offset)))
    return spans


def draw_mutants(sample: int, seed: int) -> list[dict]:
    """The mutants of a sample, the same for the same code and seed, in random order: its beginning is a sample, too."""
    items = [item for module in MODULES for item in sorted(places(module).items())]
    random.Random(seed).shuffle(items)
    rng = random.Random(seed + 1)
    mutants = []
    for (module, (line, _), _, _), changes in items[:sample]:
        operator, occurrence = rng.choice(changes)
        mutants.append({"module": module, "line": line, "operator": operator, "occurrence": occurrence})
    return mutants


def changed(mutant: dict) -> tuple[str, str, str]:
    """The file's new text, and the line before and after."""
    text = (ROOT / LIBRARY / f"{mutant['module']}.py").read_text()
    new = mutate_code(text, plugins.get_operator(mutant["operator"])(), mutant["occurrence"])
    for before, after in zip(text.splitlines(), new.splitlines(), strict=False):
        if before != after:
            return new, before.strip(), after.strip()
    return new, "", ""


#: Imported once, before the forks; nothing of the library itself.
SLOW = (
    "matplotlib", "opacus", "pandas", "pydantic", "pytest", "safetensors.torch", "scipy.stats", "sklearn.svm", "torch",
    "transformers.models.gpt2.modeling_gpt2", "transformers.models.bert.modeling_bert",
)  # fmt: skip


class Watch:
    """What pytest is asked to do beside its own work: note the first failure, and stop a test that never ends."""

    def __init__(self, note: Path):
        self.note = note

    def fail(self, report) -> None:
        if report.failed and not self.note.exists():
            self.note.write_text(report.nodeid)

    pytest_runtest_logreport = pytest_collectreport = fail

    def pytest_runtest_setup(self, item) -> None:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)


def failed(tree: Path, runs: list[list[str]]) -> str | None:
    """The first test that fails, None if none does, empty if no test could be named; "slow" if one did not end."""
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
        code = 0
        for tests in runs:
            options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=line", f"--rootdir={tree}"]
            code = pytest.main([*options, *tests], plugins=[Watch(note)])
            if code == pytest.ExitCode.NO_TESTS_COLLECTED and "-k" in tests:
                code = 0
            if code:
                break
        os._exit(int(code))
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
            return "slow"
        if pid:
            return None if status == 0 else note.read_text() if note.exists() else ""
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "slow"


#: Texts that say the same in any code: how it reads in the original.
ALIKE = (
    (r"lru_cache\(.*?\)$", "lru_cache()"),  # how many results are kept changes none of them
    (r"(?:(,)\s*|^)[*/],", r"\1 *,"),  # how arguments are passed is said of a signature, and seen in no result
    (r"\breshape\((.*?),\s*(?:~1|-\s*[02-9])\)", r"reshape(\1, -1)"),  # every negative size is "what is left"
    (r"\breshape\((?:~1|-\s*[2-9])(?=[,)])", "reshape(-1"),
    (r"\bstrict\s*=\s*False", "strict=True"),  # an assertion about the code's own lists, which never fails
    (r"\b(?:1000000001|999999999)\.0\b", "1e9"),  # Student's t of so many degrees of freedom is the same to 1e-18
    (r'\bis\s+(not\s+)?(?=["\'])', lambda match: "!= " if match[1] else "== "),  # texts of a schema are interned
)


def alike(text: str) -> str:
    """The line with such texts as they read in the original."""
    for pattern, original in ALIKE:
        text = re.sub(pattern, original, text)
    return text


def equivalent() -> set[tuple[str, str, str]]:
    """Mutants that nobody can tell from the code: (file, line before, line after)."""
    text = (Path(__file__).parent / "equivalent.txt").read_text()
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {tuple(lines[i : i + 3]) for i in range(0, len(lines), 4)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--again", action="store_true", help="run the survivors once more")
    parser.add_argument("--to", type=Path, default=ROOT / "results" / "mutation")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    record = options.to / f"seed{options.seed}.jsonl"
    outcomes = {}
    for line in record.read_text().splitlines() if record.exists() else ():
        entry = json.loads(line)
        outcomes[entry["module"], entry["before"], entry["after"]] = entry["outcome"]
    tree = options.to / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "results", ".git", ".venv", ".snakemake", "mutation")
    shutil.copytree(ROOT, tree, ignore=ignored)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path = [path for path in sys.path if not path.startswith(str(ROOT)) or path.startswith(sys.prefix)]
    for name in SLOW:
        importlib.import_module(name)
    same, sound, survivors, counts = equivalent(), {"slow"}, [], Counter()
    for mutant in draw_mutants(options.sample, options.seed):
        if options.only not in mutant["module"]:
            continue
        try:
            new, before, after = changed(mutant)
        except AttributeError:  # Cosmic Ray cannot change an exception whose name has a dot
            continue
        name = (mutant["module"], before, after)
        outcome = outcomes.get(name)
        if name in same or alike(before) == alike(after):
            outcome = "equivalent"
        elif outcome is None or (options.again and outcome == "survived"):
            path = tree / LIBRARY / f"{mutant['module']}.py"
            original = path.read_text()
            path.write_text(new)
            test = failed(tree, tests_of(mutant["module"]))
            path.write_text(original)
            if test is not None and (culprit := test or mutant["module"]) not in sound:
                if failed(tree, [[test]] if test else tests_of(mutant["module"])) is not None:
                    sys.exit(f"the tests of {culprit} fail on the unchanged code: see {tree}/output.txt")
                sound.add(culprit)
            outcome = "survived" if test is None else "slow" if test == "slow" else "killed"
            with record.open("a") as file:
                file.write(
                    json.dumps({**mutant, "before": before, "after": after, "outcome": outcome, "test": test}) + "\n"
                )
            print(outcome, f"{mutant['module']}:{mutant['line']}", before, "→", after, sep="  ", flush=True)
        counts[outcome] += 1
        if outcome == "survived":
            survivors.append(f"{mutant['module']}:{mutant['line']}\n    - {before}\n    + {after}")
    killed = counts["killed"] + counts["slow"]
    print("\n".join(["", "Survivors:", *survivors] if survivors else []))
    print(f"{killed} of {killed + counts['survived']} killed, {counts['equivalent']} equivalent")
    return 0


if __name__ == "__main__":
    sys.exit(main())
