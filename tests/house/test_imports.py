"""The rooms of the library: imports go down, without circles, through doors; rooms stay small.

The graph is drawn from the code, without running it: imports for type checkers and imports inside functions count.
"""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[2] / "unlearning_audit"

#: From the top floor down. A room imports what stands below it; rooms of one line do not import each other.
FLOORS = (
    ("command",),
    ("display",),
    ("workflow",),
    ("study",),
    ("comparisons",),
    ("readers",),
    ("data", "models", "protocols", "methods", "attacks", "metrics"),
    ("bank",),
    ("adversary",),
    ("plugins",),
    ("artifacts",),
    ("stats", "randomness"),
)
FLOOR = {room: i for i, rooms in enumerate(FLOORS) for room in rooms}

#: Other people's packages that load torch, which takes seconds.
HEAVY = {"torch", "torchvision", "opacus", "transformers", "art"}
#: Rooms whose files are imported to plan, score or show, without torch.
LIGHT = {"attacks", "metrics", "stats", "workflow", "study", "comparisons", "display", "command"}
WITH_TORCH = {
    "workflow.attempt": "trains or unlearns one batch of models and records a failure, in the same jobs",
    "workflow.campaign": "unlearns and judges models once for each setting of a method, in the jobs that tune only",
    "workflow.external_models": "asks models from elsewhere, in the jobs that read these only",
    "workflow.influence": "rehearses a user's method on three models, in the jobs that unlearn only",
    "workflow.forecast.memory": "measures a step of a network without numbers, in the forecast only",
    "workflow.forecast.probe": "trains a few steps to measure what a study will cost",
    "workflow.open_bank": "opens models from artifacts, in the jobs that train or unlearn only",
    "workflow.self_test": "compares a card with the processor, for one command",
}

SHARE = 0.20
#: Rooms that may hold more than SHARE of the library; their docstring gives the reason.
LARGE = {"display"}


@dataclass(frozen=True)
class Import:
    """``of``: the module of the library that is imported; ``late``: inside a function or for type checkers only;
    ``names``: what is taken from it."""

    by: str
    of: str
    line: int
    late: bool
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.by.replace('.', '/')}.py:{self.line} imports {self.of}"


def name_of(path: Path) -> str:
    """The dotted name below the package; "" for the package itself."""
    parts = path.relative_to(LIBRARY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    return module.split(".")[0]


@functools.cache
def files() -> dict[str, Path]:
    return {name_of(path): path for path in sorted(LIBRARY.rglob("*.py"))}


@functools.cache
def parsed(module: str) -> ast.Module:
    return ast.parse(files()[module].read_text())


def walk(tree: ast.AST, late: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Every import statement, and whether it is late."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, late
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        yield from walk(node, late or function or typing)


def imported_names(node: ast.stmt) -> list[str]:
    """The dotted names that a statement imports; of ``from a import b`` those that are modules, or ``a``."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert not node.level, f"a relative import in line {node.lineno}"
    full = [f"{node.module}.{alias.name}" for alias in node.names]
    return sorted({name if name.removeprefix(f"{LIBRARY.name}.") in files() else node.module for name in full})


@functools.cache
def imports() -> tuple[Import, ...]:
    """All imports of modules of the library by modules of the library."""
    records = []
    for module in files():
        for node, late in walk(parsed(module)):
            for name in imported_names(node):
                if name.split(".")[0] == LIBRARY.name:
                    target = name.removeprefix(LIBRARY.name).removeprefix(".")
                    assert target in files(), f"{module}, line {node.lineno}: there is no {name}"
                    names = tuple(alias.name for alias in node.names) if isinstance(node, ast.ImportFrom) else ()
                    records.append(Import(module, target, node.lineno, late, names))
    return tuple(records)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The nodes of one circle, the first once more at its end; [] if there is none."""
    visited: set[str] = set()

    def follow(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in visited:
            return []
        for target in sorted(graph.get(node, ())):
            if cycle := follow(target, [*path, node]):
                return cycle
        visited.add(node)
        return []

    return next((cycle for node in sorted(graph) if (cycle := follow(node, []))), [])


def graph_of(arrows: Iterator[tuple[str, str]]) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for start, end in arrows:
        graph.setdefault(start, set()).add(end)
    return graph


def test_the_graph_holds_what_the_code_imports():
    arrows = {(edge.by, edge.of, edge.late) for edge in imports()}
    assert ("metrics.swap", "stats", False) in arrows
    assert ("methods.salun", "methods._labels", False) in arrows
    assert ("models.cnn", "models._layers", True) in arrows, "an import inside a function"
    late = "if TYPE_CHECKING:\n    import a\nclass B:\n    import b\n    def f(self):\n        import c\nimport d\n"
    assert [late for _, late in walk(ast.parse(late))] == [True, False, True, False]
    assert circle({"a": {"b"}, "b": {"c", "d"}, "d": {"b"}}) == ["b", "d", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    assert len(imports()) > len(files())


def test_no_module_imports_itself_through_others():
    assert not circle(graph_of((edge.by, edge.of) for edge in imports()))


def test_imports_go_down_from_room_to_room():
    assert {room_of(module) for module in files()} - {""} == set(FLOOR), "a room that FLOORS does not name, or misses"
    up = [str(edge) for edge in imports() if room_of(edge.by) != room_of(edge.of) and edge.by and edge.of
          and FLOOR[room_of(edge.of)] <= FLOOR[room_of(edge.by)]]  # fmt: skip
    assert not up, "a room imports only what stands below it in FLOORS"


def test_a_file_with_an_underscore_is_for_its_own_room():
    private = [edge for edge in imports() if any(part.startswith("_") for part in edge.of.split("."))]
    assert private
    assert not [str(edge) for edge in private if room_of(edge.by) != room_of(edge.of)]
    names = [f"{edge}.{name}" for edge in imports() for name in edge.names
             if name.startswith("_") and not {f"{edge.of}.{name}", f"{room_of(edge.of)}.{name}"} & set(files())
             and name != edge.of.rpartition(".")[2]]  # fmt: skip
    assert not names, "a name with an underscore is for its own file"


def test_methods_do_not_know_the_attacks():
    reached, todo = set(), [module for module in files() if room_of(module) == "methods"]
    graph = graph_of((edge.by, edge.of) for edge in imports())
    while todo:
        module = todo.pop()
        if module not in reached:
            reached.add(module)
            todo += graph.get(module, ())
    assert not [module for module in reached if room_of(module) in ("attacks", "metrics", "adversary")]


def test_planning_scoring_and_showing_do_without_torch():
    loads = {module for module in files() for node, late in walk(parsed(module))
             if not late and any(name.split(".")[0] in HEAVY for name in imported_names(node))}  # fmt: skip
    assert {"bank.bank", "methods.scrub"} <= loads
    grown = True
    while grown:  # whoever imports one of them when it is itself imported; a package runs before what lies in it
        before = len(loads)
        for edge in imports():
            around = {edge.of, *(edge.of.rsplit(".", i)[0] for i in range(1, edge.of.count(".") + 1))}
            if not edge.late and around & loads:
                loads.add(edge.by)
        grown = len(loads) > before
    assert {module for module in loads if room_of(module) in LIGHT} == set(WITH_TORCH)


def test_no_room_is_large_without_a_reason():
    lines: dict[str, int] = {}
    for module, path in files().items():
        lines[room_of(module)] = lines.get(room_of(module), 0) + len(path.read_text().splitlines())
    whole = sum(lines.values())
    assert {room for room, count in lines.items() if count > SHARE * whole} <= LARGE
    for room in LARGE:
        text = ast.get_docstring(parsed(room))
        assert re.search("largest room,? because", text), f"{room}/__init__.py does not say why the room is large"


def test_every_room_says_what_it_is_for_and_no_module_lies_outside():
    assert sorted(path.name for path in LIBRARY.glob("*.py")) == ["__init__.py"]
    for room in FLOOR:
        text = ast.get_docstring(parsed(room))
        assert text, f"{room}/__init__.py has no docstring"
        assert text.split("\n\n")[0].rstrip().endswith((".", ":")), f"{room}/__init__.py begins with no sentence"


@pytest.mark.parametrize("path", sorted((LIBRARY.parent / "scripts").glob("*.py")), ids=lambda path: path.stem)
def test_what_a_script_needs_stands_before_what_runs(path):
    """In a job, ``@script`` calls its function at once: what is defined below it is not there yet."""
    statements = ast.parse(path.read_text(encoding="utf-8")).body
    functions = [(number, node) for number, node in enumerate(statements) if isinstance(node, ast.FunctionDef)]
    runs = [n for n, node in functions if any(getattr(mark, "id", "") == "script" for mark in node.decorator_list)]
    assert all(number == len(statements) - 1 for number in runs), statements[-1].name


def test_a_script_finds_the_library_beside_it_and_no_other(tmp_path):
    """As where a job starts in an environment that holds no library, or another version of it."""
    elsewhere = tmp_path / "unlearning_audit"
    elsewhere.mkdir()
    (elsewhere / "__init__.py").write_text("raise ImportError('this is another library')")
    scripts = LIBRARY.parent / "scripts"
    command = f"import sys; sys.path[:0] = [{str(tmp_path)!r}]; sys.path.append({str(scripts)!r}); import headline"
    subprocess.run([sys.executable, "-c", command], check=True, cwd=tmp_path)


def test_every_script_finds_the_library_before_it_imports_from_it():
    finders = {"job", "library"}
    for path in sorted((LIBRARY.parent / "scripts").glob("*.py")):
        lines = [re.match(r"(?:from|import) (\w+)", line) for line in path.read_text().splitlines()]
        order = [line[1] for line in lines if line and line[1] in {"unlearning_audit", *finders}]
        assert not order or order[0] in finders, path.name
