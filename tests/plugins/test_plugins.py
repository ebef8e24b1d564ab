"""Plug-ins are found by name or by file, their options are read without running them, and what lacks is named."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from unlearning_audit.plugins import registry
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError

from study_cases import changed

ROOT = Path(registry.__file__).parents[2]

PROTOCOL = """
from unlearning_audit.plugins.declarations import Protocol
from unlearning_audit.plugins.settings import Settings

PROTOCOL = Protocol(offers=("game", "forgotten"), attacked=True)


class Options(Settings):
    pairs: int = 1


def blocks(options):
    return {"pairs": options.pairs}


def draw(block, population, data, options, seed):
    raise NotImplementedError
"""
OPTIONS = (
    "from unlearning_audit.plugins.settings import Settings\nclass Options(Settings):\n    strength: float = 1.0\n"
)
PARTS = {"data": "load", "models": "build", "methods": "unlearn", "attacks": "score"}
#: Kind → the field of a study that names one plug-in of it; of other kinds it names several.
FIELDS = {"data": "data", "models": "model", "protocols": "protocol"}


def write_file(folder: Path, text: str | bytes, name: str = "mine.py") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def study_with(kind: str, /, **fields) -> dict:
    """The small study with a plug-in "mine" of that kind."""
    config = changed()
    if kind in FIELDS:
        config["defaults"][FIELDS[kind]] = {"name": "mine", **fields}
    else:
        config["defaults"][kind]["mine"] = fields
    return config


def refusal(config: dict) -> str:
    """The sentence with which a study is refused, without what each begins with."""
    with pytest.raises(StudyError, match=r"^config\.yaml: defaults\.") as error:
        reading.read(config)
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix("config.yaml: defaults.")


@pytest.mark.parametrize("name", ["_layers", "../study"])
def test_a_name_is_no_path(name):
    with pytest.raises(ValueError, match=rf"^{re.escape(repr(name))} is not one of the models: airbench, bert, cnn, "):
        registry.source_file("models", name)


@pytest.mark.parametrize("kind", [*PARTS, "protocols"])
def test_every_kind_takes_a_users_file_and_names_one_that_is_not_there(kind, tmp_path):
    at = FIELDS.get(kind, f"{kind}.mine")
    for file, words in (
        ("no/such.py", "file 'no/such.py' does not exist; give a path relative to the working directory"),
        (str(tmp_path), f"'{tmp_path}' is a folder; give the Python file itself, such as '{tmp_path}/mine.py'"),
        (3, "must be the path of a Python file, found 3"),
    ):
        assert refusal(study_with(kind, file=file)) == f"{at}.file: {words}"
    assert re.match(rf"{at}(\.name)?: there is no [a-z ]+ 'mine'", refusal(study_with(kind)))
    if kind in PARTS:
        file = write_file(tmp_path, f"import torch\n{OPTIONS}\ndef {PARTS[kind]}(*args): pass\n")
        scenario = reading.read(study_with(kind, file=file, strength=3)).scenarios[0]
        plugin = getattr(scenario, FIELDS[kind]) if kind in FIELDS else getattr(scenario, kind)["mine"]
        assert (plugin.name, plugin.file, plugin.options) == ("mine", file, {"strength": 3.0})
        wrong = refusal(study_with(kind, file=file, strenth=3))
        assert wrong.startswith(f"{at}.strenth: there is no such field, did you mean ")


def test_a_users_protocol_is_run(tmp_path):
    scenario = reading.read(study_with("protocols", file=write_file(tmp_path, PROTOCOL), pairs=2)).scenarios[0]
    assert (scenario.protocol.options, list(scenario.metrics)) == ({"pairs": 2}, ["swap", "accuracy"])
    broken = write_file(tmp_path, PROTOCOL + "\n1 / 0\n", "broken.py")
    assert "broken.py line 19, in module: ZeroDivisionError: division" in refusal(study_with("protocols", file=broken))
    for part in ("blocks", "draw", "PROTOCOL"):
        file = write_file(tmp_path, re.sub(rf"\b{part}\b", f"{part}_", PROTOCOL), f"no_{part.lower()}.py")
        ending = f": {part} is missing; every file of protocols defines it"
        assert refusal(study_with("protocols", file=file)).endswith(ending)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\n  y = 2\n", "line 2 is not valid Python ("),
        (b"\xff\xfe\xfa", "is not valid Python ("),
        ("", "unlearn is missing; every file of methods defines it"),
        (OPTIONS + "class A:\n    def unlearn(self): pass\n", "unlearn is missing; every file of methods defines it"),
        ("class Options: pass\ndef unlearn(*a): pass\n", "class Options cannot be read; it must derive from Settings"),
    ],
)
def test_what_a_users_file_lacks_is_named(text, expected, tmp_path):
    file = write_file(tmp_path, text)
    message = refusal(study_with("methods", file=file))
    assert message.startswith(f"methods.mine.file: {file}: ")
    assert expected in message


def test_a_function_gets_what_its_parameters_name(tmp_path):
    given = {"logits": 1, "y": 2, "shadow": 3, "options": 4, "rng": 5}
    for parameters, expected in (
        ("y, logits", (2, 1)),
        ("logits, _rng, squared_norms, more=7", (1, 5, 6, 7)),
        ("*values, squared_norms", (1, 2, 3, 4, 5, 6)),
    ):
        text = f"NEEDS = 'squared_norms'\ndef score({parameters}): return ({parameters.replace('=7', '')},)\n"
        file = write_file(tmp_path, text, f"{len(parameters)}.py")
        module = registry.load("attacks", "mine", file)
        assert registry.call("attacks", module, "score", *given.values(), squared_norms=6) == expected
    for parameters in ("logits, labels", "logits, tokens"):
        file = write_file(tmp_path, f"def score({parameters}): pass\n", f"{parameters[-3:]}.py")
        unknown = f"score may have the parameters (logits, y, shadow, options, rng), found '{parameters.split()[1]}'"
        assert unknown in refusal(study_with("attacks", file=file))


def test_a_users_file_has_a_name_of_its_own(tmp_path):
    file = write_file(tmp_path, f"{OPTIONS}\ndef build(*args): pass\n")
    problem = "model.name: is the library's own model; give your file another name than 'mlp'"
    assert refusal(changed(("defaults/model", f"{{name: mlp, file: {file}}}"))).startswith(problem)


def test_the_classic_function_is_looked_for(tmp_path):
    """The option ``file`` of the method classic is an option, not a plug-in."""

    def study(fields):
        return changed(("defaults/methods/mine", f"{{name: classic, {fields}}}"))

    file = write_file(tmp_path, "import torch\ndef forget(model, retain, forget): return model\n")
    plugin = reading.read(study(f"file: {file}, function: forget")).scenarios[0].methods["mine"]
    assert (plugin.name, plugin.file, plugin.options["file"]) == ("classic", None, file)
    for fields, expected in (
        (f"file: {file}", f"{file}: a function unlearn is missing; define it or name another with function"),
        ("file: none.py", "file 'none.py' does not exist; give a path relative to the working directory"),
    ):
        assert refusal(study(fields)).startswith(f"methods.mine.file: {expected}")
    nothing = changed(("defaults/methods/classic", "{}"), ("defaults/methods/neggrad", ""))
    assert refusal(nothing) == "methods.classic.file: is missing; add it"


def test_a_file_is_run_as_it_is_and_nothing_is_left_beside_it(tmp_path):
    """Python's own cache takes a file of the same size and second for the same."""
    code = (
        "import sys; sys.path.append(sys.argv[1])\nfrom unlearning_audit.plugins import registry\n"
        "print(registry.load('attacks', 'mine', 'mine.py').KIND)"
    )
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for kind in ("1", "2"):
        text = f"{OPTIONS}KIND = {kind}\ndef score(logits, y, shadow, options, rng):\n    return logits\n"
        os.utime(write_file(tmp_path, text), (1e9, 1e9))
        run = subprocess.run([sys.executable, "-c", code, str(ROOT)], cwd=tmp_path, env=env, capture_output=True)
        assert run.stdout.strip().decode() == kind, run.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]
