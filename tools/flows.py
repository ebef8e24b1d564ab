"""Draw three flows through the code: uv run python tools/flows.py writes the drawings of CONTRIBUTING.md.

From the functions where a flow begins, the program follows every call of a function by its name, in the order of the
calls. A drawing shows each room where the flow first enters it, with the files that the flow passes there, and an arrow
from the room before.
"""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- tools/flows.py writes from here -->\n", "<!-- to here -->\n"

#: Flow → the functions that a run calls one after another, as file:function.
FLOWS = {
    "From an option in YAML to a trained model": (
        "unlearning_audit/study/reading.py:read", "unlearning_audit/workflow/plan.py:make", "scripts/train.py:train",
    ),
    "From logits to a verdict in the report": (
        "unlearning_audit/stages/metrics.py:metrics", "unlearning_audit/stages/comparisons.py:comparisons",
        "unlearning_audit/stages/report.py:report",
    ),
    "From another tool's log to its verdict": (
        "unlearning_audit/command/read.py:write_study", "unlearning_audit/evaluation/external.py:read",
        "unlearning_audit/stages/metrics.py:metrics", "unlearning_audit/stages/comparisons.py:comparisons",
        "unlearning_audit/command/read.py:audit",
    ),
}  # fmt: skip


@functools.cache
def parsed(path: Path) -> tuple[dict[str, ast.AST], dict[str, tuple[str, str]]]:
    """Return a file's functions, and what its imports mean: name → (module, name in it). A method is named
    "Class.method"."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions: dict[str, ast.AST] = {}
    imports: dict[str, tuple[str, str]] = {}
    for top in tree.body:
        parts = top.body if isinstance(top, ast.ClassDef) else [top]
        before = f"{top.name}." if isinstance(top, ast.ClassDef) else ""
        functions |= {before + part.name: part for part in parts if isinstance(part, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("unlearning_audit"):
            imports |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    return functions, imports


def file(module: str) -> Path | None:
    """Return the file of a module of the library; None if there is none."""
    path = ROOT / module.replace(".", "/")
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


def target(path: Path, name: str) -> tuple[Path, str] | None:
    """Return the file and the name of the function that a call of the dotted ``name`` in the file ``path`` refers to;
    None if it is outside the library."""
    functions, imports = parsed(path)
    first, *rest = name.split(".")
    if first not in imports:
        return (path, name) if name in functions else None
    module, inner = imports[first]
    if found := file(f"{module}.{inner}"):
        return target(found, ".".join(rest))
    found = file(module)
    return (target(found, ".".join([inner, *rest])) or (found, inner)) if found else None


def walk(path: Path, name: str, before: str, rooms: dict[str, tuple[str, dict[str, None]]], seen: set[object]) -> str:
    """Add the rooms and files that a function and its calls pass to ``rooms``: room → (room before, files). Returns the
    room of the function itself.

    ``before``: the room of the caller; ``seen``: the functions that have been followed.
    """
    parts = path.relative_to(ROOT).parts
    room = parts[1] if parts[0] == "unlearning_audit" else parts[0]
    rooms.setdefault(room, (before, {}))[1].setdefault(path.stem.replace("__init__", room))
    function = parsed(path)[0].get(name)
    calls = [node for node in ast.walk(function or ast.Pass()) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)) if (path, name) not in seen else ():
        seen.add((path, name))
        if ast.unparse(call.func) == "registry.load" and isinstance(call.args[0], ast.Constant):
            rooms.setdefault(str(call.args[0].value), (room, {"the plug-in": None}))
        elif found := target(path, ast.unparse(call.func)):
            walk(*found, room, rooms, seen)
    return room


def drawings() -> str:
    """Return a heading and a Mermaid drawing for every flow."""
    blocks = []
    for title, entries in FLOWS.items():
        rooms: dict[str, tuple[str, dict[str, None]]] = {}
        before = ""
        seen: set[object] = set()
        for path, _, name in (entry.partition(":") for entry in entries):
            before = walk(ROOT / path, name, before, rooms, seen)
        nodes = [f'  {room}["<b>{room}</b><br>{", ".join(files)}"]' for room, (_, files) in rooms.items()]
        arrows = [f"  {came} --> {room}" for room, (came, _) in rooms.items() if came]
        head = f"{title}: {len(rooms)} rooms, {sum(len(files) for _, files in rooms.values())} files."
        blocks.append("\n".join([head, "", "```mermaid", "flowchart LR", *nodes, *arrows, "```", ""]))
    return "\n".join(blocks)


def page() -> str:
    """Return CONTRIBUTING.md with new drawings."""
    text = PAGE.read_text(encoding="utf-8")
    return f"{text.partition(BEGIN)[0]}{BEGIN}\n{drawings()}\n{END}{text.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
