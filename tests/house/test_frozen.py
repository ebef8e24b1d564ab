"""What is computed or planned cannot be changed in place, except where a class is there to be filled."""

import ast
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "unlearning_audit"
#: Filled while they are used: batches and records of a fit, a plan, what is read of a case or a bar.
FILLED = {
    "adversary/case.py:Case", "adversary/external_case.py:ExternalCase", "bank/fitting.py:Fit", "bank/streams.py:Batch",
    "bank/streams.py:Order", "command/arrays.py:Audit", "comparisons/verdicts.py:_Judged",
    "display/decisions.py:Decisions", "readers/_groups.py:Group", "readers/_model.py:Model",
    "workflow/nodes.py:Plan", "workflow/progress.py:Watch",
}  # fmt: skip


def frozen(decorator: ast.expr) -> bool:
    options = {word.arg: word.value for word in decorator.keywords} if isinstance(decorator, ast.Call) else {}
    return "frozen" in options and options["frozen"].value is True


def test_only_what_is_there_to_be_filled_is_not_frozen():
    open_ = set()
    for path in LIBRARY.rglob("*.py"):
        if "@dataclass" not in (text := path.read_text()):
            continue
        for definition in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)):
            decorators = [d for d in definition.decorator_list if "dataclass" in ast.unparse(d)]
            if decorators and not all(map(frozen, decorators)):
                open_.add(f"{path.relative_to(LIBRARY)}:{definition.name}")
    assert open_ == FILLED
