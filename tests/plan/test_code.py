"""What is rebuilt if code changes: digests follow imports, and read what code does, not how it is laid out."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from unlearning_audit.plugins import source

from plan_cases import BASE, BELOW, changed, method_of

#: Plans a study once as it is and once after each of some edits (file, old text, new text), all undone again.
DRIVER = """
import json, sys
from pathlib import Path
from unlearning_audit.plugins import registry, source
from unlearning_audit.study import reading
from unlearning_audit.workflow import nodes, plan

assert source.LIBRARY == Path(sys.argv[1]), source.LIBRARY
config, edits = json.load(sys.stdin)

def names():
    return {stage: sorted(nodes) for stage, nodes in plan.make(reading.read(config)).nodes.items()}

found = [names()]
for file, old, new in edits:
    path = source.LIBRARY / file
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
        "defaults/methods": {"none": {}, "retrain": {}, "finetune": {}},
        "scenarios/confusion": {"protocol": {"name": "interclass_confusion"}, "attacks": {}, "model": {"name": "cnn"},
                                "data": {"name": "mnist"}, "methods": {"none": {}, "finetune": {}}},
    },
)  # fmt: skip


def files(*stems: str) -> list[str]:
    """Paths of files of the library, and of scripts."""
    return [f"{stem if stem.startswith('scripts') else f'unlearning_audit/{stem}'}.py" for stem in stems]


#: File → the first stage whose code it is.
OF_STAGES = {
    file: stage for stage, stems in {
        "data": "scripts/data scripts/job data/__init__ data/_choices store/files plugins/settings",
        "splits": "scripts/splits protocols/__init__",
        "train": "scripts/train training/stack training/streams training/recipe models/__init__",
        "unlearn": "scripts/unlearn methods/__init__",
        "metrics": "stages/metrics metrics/accuracy evaluation/scoring attacks/__init__ attacks/confidence",
        "comparisons": "stages/comparisons comparisons/verdicts",
    }.items() for file in files(*stems.split())
}  # fmt: skip
WITHOUT_EFFECT = [
    *files("workflow/plan", "workflow/warm", "study/schema", "plugins/source", "metrics/blind", "data/cifar10",
           "models/resnet18", "methods/classic", "attacks/lira", "report/tables/grid", "stages/collect",
           "stages/report"),
    ("unlearning_audit/training/stack.py", "class ModelStack(", "# a comment\n\n\n\nclass ModelStack("),
    ("unlearning_audit/training/stack.py", '"""A stack: N models of', '"""A stack: some models of'),
    ("scripts/job.py", '"""Run the function', '"""Call the function'),
]  # fmt: skip
#: File of a plug-in → the protocol with which it is chosen, and the first stage whose code it is.
OF_CHOICES = dict(zip(
    files("data/digits", "protocols/swap", "models/mlp", "metrics/swap", "data/mnist", "models/cnn",
          "metrics/confusion"),
    [("swap", "data"), ("swap", "splits"), ("swap", "train"), ("swap", "metrics"), ("interclass_confusion", "data"),
     ("interclass_confusion", "train"), ("interclass_confusion", "metrics")], strict=True,
))  # fmt: skip
EDITS = [*OF_STAGES, *WITHOUT_EFFECT, *OF_CHOICES]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the scripts and the library that may be edited."""
    tree = tmp_path_factory.mktemp("code")
    for name in ("scripts", "unlearning_audit"):
        shutil.copytree(source.LIBRARY / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tree


def python(copy: Path, *arguments: str, text: str = "") -> str:
    """What a program says that imports the copy."""
    run = subprocess.run(
        [sys.executable, "-c", *arguments], input=text, capture_output=True, text=True, check=False, cwd=copy,
        env={**os.environ, "PYTHONPATH": f"{copy}:{copy / 'scripts'}", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def lost_names(copy):
    """The names by stage, and for each edit of `EDITS` those that are no longer planned, where there are any.

    An edit is a file, at whose end a statement is added, or (file, old text, new text).
    """
    texts = {edit: (copy / edit).read_text() for edit in EDITS if isinstance(edit, str)}
    edits = [(edit, texts[edit], f"{texts[edit]}\n\nADDED = 1\n") if edit in texts else edit for edit in EDITS]
    plans = json.loads(python(copy, DRIVER, str(copy), text=json.dumps([STUDY, edits])))
    base, *after, restored = [{stage: set(names) for stage, names in of.items()} for of in plans]
    assert restored == base
    lost = [{stage: base[stage] - names[stage] for stage in base if base[stage] - names[stage]} for names in after]
    return base, dict(zip(EDITS, lost, strict=True))


def of_scenario(names, protocol):
    return {stage: {n for n in nodes if f"-{protocol}-" in n or stage == "data"} for stage, nodes in names.items()}


def test_code_of_a_stage_rebuilds_this_stage_and_what_follows(lost_names):
    base, lost = lost_names
    for file, stage in OF_STAGES.items():
        expected = {s: base[s] for s in BELOW[stage] if base[s]}
        if stage == "unlearn":  # says nothing of the original models that the method none hands on
            expected["metrics"] = {n for n in base["metrics"] if method_of(n) != "none"}
        if "/attacks/" in file:  # the confusions have none
            expected = {stage: of_scenario(base, "swap")[stage] for stage in ("metrics", "comparisons")}
        assert lost[file] == expected, file


def test_code_that_makes_no_artifact_and_words_beside_code_rename_nothing(lost_names):
    assert not any(lost_names[1][edit] for edit in WITHOUT_EFFECT)


def test_the_code_of_a_choice_concerns_the_scenarios_that_made_it(lost_names):
    base, lost = lost_names
    for file, (protocol, stage) in OF_CHOICES.items():
        expected = of_scenario(base, protocol)
        expected["data"] = {n for n in base["data"] if n.startswith("digits" if protocol == "swap" else "mnist")}
        assert lost[file] == {s: expected[s] for s in BELOW[stage] if expected[s]}, file


@pytest.mark.slow
def test_the_digest_of_a_stage_covers_every_module_of_ours_that_its_script_imports(copy):
    """What Python itself loads for a script is what the digest has read."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from unlearning_audit.plugins import registry\n"
        "from unlearning_audit.workflow import jobs\n"
        "jobs.function_of(sys.argv[1])\n"
        "files = [Path(jobs.__file__), jobs.file_of(sys.argv[1])]\n"
        "for kind, name in (one.split('.') for one in sys.argv[2:]):\n"
        "    registry.load(kind, name)\n"
        "    files.append(registry.source_file(kind, name))\n"
        "ours = {Path(m.__file__) for m in list(sys.modules.values()) if getattr(m, '__file__', None)}\n"
        "from unlearning_audit.plugins import source\n"
        "ours = {p for p in ours if p.is_relative_to(registry.LIBRARY) or p.is_relative_to(source.SCRIPTS)}\n"
        "records = {registry.LIBRARY / 'plugins' / 'declarations.py'}\n"
        "found = set(source.modules(*files))\n"
        "here = Path(registry.__file__)\n"  # this program's own import, where the script does without
        "beside = set() if here in found else set(source.modules(here)) | {here}\n"
        "print(sorted(str(p) for p in ours - found - records - beside))\n"
    )
    plugins = {
        "data": ["data.digits"], "splits": ["protocols.random_splits"],
        "unlearn": ["models.mlp", "methods.salun"], "signals": ["models.mlp"],
        "metrics": ["metrics.swap", "metrics.accuracy", "attacks.kde", "attacks.shadow"],
        "selection": ["metrics.vulnerability"], "comparisons": [],
    }  # fmt: skip
    for script, names in plugins.items():
        assert python(copy, code, script, *names) == "[]\n", script
