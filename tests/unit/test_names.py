"""Names say what a thing is: pronouns, determiners and bare participles are no names."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from snakemake.parser import parse
from snakemake.sourcecache import LocalSourceFile
from unlearning_audit.plugins import source

#: What says nothing of what a name stands for.
WORDS = {
    "found", "own", "one", "ones", "known", "asked", "said", "made", "shown", "held", "kept", "told", "which",
    "every", "each", "other", "others", "another", "such", "these", "those", "them", "they", "it", "its", "this",
    "that", "taken", "seen", "wanted", "needed", "meant", "put", "counted", "called", "done", "gone", "begun",
    "chosen", "began", "came", "what", "who", "whose", "some", "few", "many", "theirs", "ours", "mine", "yours",
    "himself", "itself", "themselves", "here", "there", "thus", "drawn", "given", "named", "written", "have", "could",
    "got", "want", "took", "brought",
}  # fmt: skip

#: Words that others have to write, by the file that binds them, and who has to.
CONTRACTS = {
    ("scripts/tune.py", "chosen"): "Snakemake hands the output over by the name that its file has, chosen.json",
    ("unlearning_audit/readers/_model.py", "OTHER"): "readers of users import it for the part of a reading",
    ("unlearning_audit/readers/easydub.py", "kept"): "an option of the reader",
}

#: Of all bindings of tests so many may be such words; of the library's none.
SHARE = 0.01

#: A screen: so many lines has a function at most, besides its docstring.
LINES = 60

FOLDERS = ("unlearning_audit", "scripts", "snakemake_logger_plugin_unlearning")


def bindings(text: str) -> Iterator[str]:
    """Every name that a module binds: variables, parameters, functions, classes, attributes that are set, aliases."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.alias(asname=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


def poor(names: Iterator[str]) -> tuple[Counter, int]:
    """Which of the names are such words, small or capital, and how many names there are."""
    counts = Counter(names)
    return Counter({name: n for name, n in counts.items() if name.strip("_").lower() in WORDS}), counts.total()


def python(rules: Path) -> str:
    """What Snakemake makes of a file of rules."""
    cache = SimpleNamespace(open=lambda file: rules.open(encoding="utf-8"))
    return parse(LocalSourceFile(str(rules)), SimpleNamespace(sourcecache=cache), {})[0]


def test_no_binding_of_the_library_says_nothing():
    root = source.SCRIPTS.parent
    texts = {path: path.read_text(encoding="utf-8") for folder in FOLDERS for path in Path(root, folder).rglob("*.py")}
    texts |= {path: python(path) for path in [root / "Snakefile", *root.glob("rules/*.smk")]}
    counts = {str(path.relative_to(root)): poor(bindings(text)) for path, text in texts.items()}
    assert sum(total for _, total in counts.values()) > 20_000
    assert {(file, name) for file, (words, _) in counts.items() for name in words} == set(CONTRACTS)


def test_fewer_than_one_binding_of_tests_in_a_hundred_says_nothing():
    files = Path(source.SCRIPTS.parent, "tests").rglob("*.py")
    words, total = poor(name for path in files for name in bindings(path.read_text(encoding="utf-8")))
    assert total > 10_000
    assert words.total() < SHARE * total, words.most_common(10)


def test_what_rules_bind_is_counted(tmp_path):
    rules = tmp_path / "made.smk"
    rules.write_text(
        "rule data:\n    input: lambda asked: asked.node\n    output: table='table.csv'\n    shell: 'true'\n"
        "OWN = 1\ndef files(*wanted):\n    return wanted\nonstart:\n    shown = OWN\n"
    )
    words, total = poor(bindings(python(rules)))
    assert words == {"asked": 1, "OWN": 1, "wanted": 1, "shown": 1}
    assert total > len(words)


def test_such_words_are_counted_wherever_they_are_bound():
    text = "def told(own, *, x=1):\n    found = [one for one in own]\n    self.known = found\nimport a as other\n"
    text += "_FEW = 1\nmatch x:\n    case [some, *many]: pass\n"
    words, total = poor(bindings(text))
    assert words == dict.fromkeys(("told", "own", "found", "one", "known", "other", "_FEW", "some", "many"), 1)
    assert total == 10
    assert poor(bindings("def score(logits, *, rows):\n    values = [row for row in rows]\n"))[0] == {}


def long(text: str) -> list[tuple[str, int]]:
    """Functions of a module that do not fit on a screen, and their lines without the docstring."""
    functions = (
        node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    lengths = []
    for node in functions:
        docstring = node.body[0] if ast.get_docstring(node) is not None else None
        besides = docstring.end_lineno - docstring.lineno + 1 if docstring else 0
        lengths.append((node.name, node.end_lineno - node.lineno + 1 - besides))
    return [(name, lines) for name, lines in lengths if lines > LINES]


def test_every_function_fits_on_a_screen():
    root = source.SCRIPTS.parent
    files = [path for folder in FOLDERS for path in sorted(Path(root, folder).rglob("*.py"))]
    assert {path.name: functions for path in files if (functions := long(path.read_text(encoding="utf-8")))} == {}


def test_a_function_is_measured_without_its_docstring():
    body = "    x = 1\n" * LINES
    assert long(f"def f():\n{body}") == [("f", LINES + 1)]
    assert long(f'def f():\n    """Say\n    it."""\n{body[10:]}') == []
