"""What is rebuilt if code changes: digests follow imports, and read what code does, not how it is laid out."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from plan_cases import BASE, BELOW, changed, method_of

from unlearning.plugins import registry, source

#: Plans a study once as it is and once after each of some edits (file, old text, new text), all undone again.
DRIVER = """
import json, sys
from pathlib import Path
from unlearning.plugins import registry, source
from unlearning.study import reading
from unlearning.workflow import nodes, plan

assert source.SCRIPTS == Path(sys.argv[1]), source.SCRIPTS
config, edits = json.load(sys.stdin)

def names():
    return {stage: sorted(nodes) for stage, nodes in plan.make(reading.read(config)).nodes.items()}

found = [names()]
for file, old, new in edits:
    path = source.SCRIPTS / file
    text = path.read_text()
    assert old in text, f"{file}: {old}"
    path.write_text(text.replace(old, new, 1))
    found.append(names())
    path.write_text(text)
found.append(names())
print(json.dumps(found))
"""
STUDY = changed(
    BASE,
    {
        "defaults/methods": {name: {} for name in registry.names("methods") if name not in ("classic", "amnesiac")},
        "scenarios/confusion": {"protocol": {"name": "interclass_confusion"}, "attacks": {}, "model": {"name": "cnn"},
                                "data": {"name": "mnist"}, "methods": {"none": {}, "finetune": {}}},
    },
)  # fmt: skip
STATEMENT = "\n\nADDED = 1\n"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of scripts/ that may be edited."""
    return shutil.copytree(
        source.SCRIPTS, tmp_path_factory.mktemp("code") / "scripts", ignore=shutil.ignore_patterns("__pycache__")
    )


def plans(copy: Path, *edits: tuple[str, str, str]) -> list[dict[str, set[str]]]:
    """Names by stage: at first, after each edit, and when all are undone. One process of its own."""
    run = subprocess.run(
        [sys.executable, "-c", DRIVER, copy], input=json.dumps([STUDY, edits]), capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return [{stage: set(names) for stage, names in one.items()} for one in json.loads(run.stdout)]


def appended(*files: str) -> list[tuple[str, str, str]]:
    """An edit of each file that adds a statement at its end."""
    texts = [(source.SCRIPTS / file).read_text() for file in files]
    return [(file, text, text + STATEMENT) for file, text in zip(files, texts, strict=True)]


def gone(before, after):
    """stage → names that are no longer planned, where there are any."""
    lost = {stage: before[stage] - after[stage] for stage in before}
    return {stage: names for stage, names in lost.items() if names}


def of_scenario(names, protocol):
    return {stage: {n for n in found if f"-{protocol}-" in n or stage == "data"} for stage, found in names.items()}


def test_code_of_a_stage_rebuilds_this_stage_and_what_follows(copy):
    first = {
        "data.py": "data", "unlearning/data/__init__.py": "data", "unlearning/data/_choices.py": "data",
        "splits.py": "splits", "unlearning/protocols/__init__.py": "splits",
        "train.py": "train", "unlearning/bank/bank.py": "train", "unlearning/bank/streams.py": "train",
        "unlearning/bank/recipe.py": "train", "unlearning/models/__init__.py": "train",
        "unlearn.py": "unlearn", "unlearning/methods/__init__.py": "unlearn",
        "attack.py": "attack", "unlearning/adversary/scoring.py": "attack", "unlearning/attacks/__init__.py": "attack",
        "comparisons.py": "comparisons", "unlearning/comparisons/verdicts.py": "comparisons",
        "metrics.py": "metrics", "unlearning/metrics/accuracy.py": "metrics",
        "job.py": "data", "unlearning/artifacts/files.py": "data", "unlearning/plugins/settings.py": "data",
    }  # fmt: skip
    base, *after, restored = plans(copy, *appended(*first))
    assert restored == base
    for (file, stage), names in zip(first.items(), after, strict=True):
        lost = gone(base, names)
        expected = {s: base[s] for s in BELOW[stage] if base[s]}
        if stage == "unlearn":  # says nothing of the original models that the method none hands on
            expected |= {s: {n for n in base[s] if method_of(n) != "none"} for s in ("attack", "metrics")}
        if stage == "attack":  # which nobody makes on the confusions
            expected["metrics"] = lost["metrics"] | of_scenario(base, "swap")["metrics"]
            expected["comparisons"] = lost["comparisons"] | of_scenario(base, "swap")["comparisons"]
        assert lost == expected, file


def test_code_that_makes_no_artifact_renames_nothing(copy):
    files = ["unlearning/workflow/plan.py", "unlearning/study/schema.py", "unlearning/plugins/source.py",
             "unlearning/metrics/blind.py",
             "unlearning/data/cifar10.py", "unlearning/models/resnet18.py", "unlearning/methods/classic.py",
             "unlearning/attacks/lira.py", "unlearning/workflow/forkserver.py", "collect.py", "report.py",
             "unlearning/display/tables/grid.py"]  # fmt: skip
    base, *after = plans(copy, *appended(*files))
    assert after == [base] * len(after)


def test_statistics_are_not_part_of_training(copy):
    base, after, _ = plans(copy, *appended("unlearning/stats/roc.py"))
    assert gone(base, after) == {stage: base[stage] for stage in ("attack", "metrics", "comparisons")}


def test_the_code_of_a_method_unlearns_with_this_method_again(copy):
    chosen = [name for name in STUDY["defaults"]["methods"] if name != "none"]
    base, *after, _ = plans(copy, *appended(*(f"unlearning/methods/{name}.py" for name in chosen)))
    for name, names in zip(chosen, after, strict=True):
        expected = {
            stage: {n for n in base[stage] if method_of(n) == name} for stage in ("unlearn", "attack", "metrics")
        }
        judged = {n.rsplit("-", 2)[0] for n in expected["metrics"]}
        expected["comparisons"] = {n for n in base["comparisons"] if n.rsplit("-", 1)[0] in judged}
        assert gone(base, names) == expected, name


def test_the_code_of_an_attack_scores_again(copy):
    base, after, _ = plans(copy, *appended("unlearning/attacks/confidence.py"))
    swap = of_scenario(base, "swap")
    assert gone(base, after) == {stage: swap[stage] for stage in ("attack", "metrics", "comparisons")}


def test_the_code_of_a_choice_concerns_the_scenarios_that_made_it(copy):
    files = {"unlearning/data/digits.py": ("swap", "data"), "unlearning/protocols/swap.py": ("swap", "splits"),
             "unlearning/models/mlp.py": ("swap", "train"), "unlearning/metrics/swap.py": ("swap", "metrics"),
             "unlearning/data/mnist.py": ("interclass_confusion", "data"),
             "unlearning/models/cnn.py": ("interclass_confusion", "train"),
             "unlearning/metrics/confusion.py": ("interclass_confusion", "metrics")}  # fmt: skip
    base, *after, _ = plans(copy, *appended(*files))
    for (file, (protocol, stage)), names in zip(files.items(), after, strict=True):
        own = of_scenario(base, protocol)
        own["data"] = {n for n in base["data"] if n.startswith("digits" if protocol == "swap" else "mnist")}
        assert gone(base, names) == {s: own[s] for s in BELOW[stage] if own[s]}, file


def test_comments_docstrings_and_layout_rename_nothing(copy):
    base, *after = plans(
        copy,
        ("unlearning/bank/bank.py", "class Bank(", "# a comment\n\n\n\nclass Bank("),
        ("unlearning/bank/models.py", '"""Stacked models', '"""Models, stacked'),
        ("unlearning/bank/bank.py", '"""N models of', '"""Some models of'),
        ("unlearning/methods/salun.py", "import torch", "import torch  # a comment"),
        ("job.py", '"""Run ``function``', '"""Call ``function``'),
        ("unlearning/randomness/keyed.py", "(*parts: int | str) -> int:", "(\n    *parts: int | str,\n) -> int:"),
        ("unlearning/metrics/accuracy.py", '"role=retain"', "'role=retain'"),
    )  # fmt: skip
    assert after == [base] * len(after)


def test_what_code_does_renames_even_where_it_looks_like_layout(copy):
    indented = [
        (
            "unlearning/stats/roc.py",
            "import numpy as np\n",
            "import numpy as np\n\nTEXT = '''\n# no comment\n'''\n",
        ),
        ("unlearning/randomness/keyed.py", '"\\x1f".join', '"\\x1e".join'),
        ("unlearning/bank/optim.py", "self.lr_decay **", "self.lr_decay *"),
    ]
    base, *after, _ = plans(copy, *indented)
    assert all(names["metrics"].isdisjoint(base["metrics"]) for names in after)


def test_no_file_of_the_library_imports_in_a_way_that_the_digest_does_not_follow():
    """Relative imports, and names put together at run time, would be missed."""
    for path in source.SCRIPTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}: relative import"
            called = ast.unparse(node.func).split(".")[-1] if isinstance(node, ast.Call) else ""
            # Plug-ins are part of a digest by name, and so is the module that draws a kind of figure.
            # The server of forks makes nothing.
            known = path.name in ("registry.py", "forks.py") or path == source.SCRIPTS / "figures.py"
            assert known or called not in ("__import__", "import_module", "exec", "run_module"), f"{path}: {called}"


def test_the_digest_of_a_stage_covers_every_module_of_ours_that_its_script_imports(copy):
    """What Python itself loads for a script is what the digest has read."""
    code = (
        "import sys, importlib\n"
        "from pathlib import Path\n"
        "from unlearning.plugins import registry\n"
        "importlib.import_module(sys.argv[1])\n"
        "files = [registry.LIBRARY.parent / f'{sys.argv[1]}.py']\n"
        "for kind, name in (one.split('.') for one in sys.argv[2:]):\n"
        "    registry.load(kind, name)\n"
        "    files.append(registry.source_file(kind, name))\n"
        "ours = {Path(m.__file__) for m in list(sys.modules.values()) if getattr(m, '__file__', None)}\n"
        "from unlearning.plugins import source\n"
        "ours = {path for path in ours if path.is_relative_to(source.SCRIPTS)}\n"
        "records = {source.SCRIPTS / 'unlearning' / 'plugins' / 'declarations.py'}\n"
        "found = set(source.modules(*files))\n"
        "here = Path(registry.__file__)\n"  # this program's own import, where the script does without
        "beside = set() if here in found else set(source.modules(here)) | {here}\n"
        "print(sorted(str(p) for p in ours - found - records - beside))\n"
    )
    chosen = {
        "data": ["data.digits"], "splits": ["protocols.random_splits"],
        "unlearn": ["models.mlp", "methods.salun"], "attack": ["attacks.kde", "attacks.shadow"],
        "metrics": ["metrics.swap", "metrics.accuracy"], "selection": ["metrics.vulnerability"], "comparisons": [],
    }  # fmt: skip
    for script, names in chosen.items():
        run = subprocess.run(
            [sys.executable, "-c", code, script, *names], capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        assert (run.stdout, run.returncode) == ("[]\n", 0), f"{script}: {run.stdout} {run.stderr}"
