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

SCRIPTS = Path(registry.__file__).parents[2]


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


def write_file(folder: Path, text: str | bytes, name: str = "mine.py") -> str:
    """The path of a file with this content, whose age differs from that of any before it."""
    path = folder / name
    stamp = path.stat().st_mtime_ns + 10**9 if path.exists() else None
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if stamp:
        os.utime(path, ns=(stamp, stamp))
    return str(path)


def study_with(kind: str, /, **fields) -> dict:
    """The small study with a plug-in "mine" of that kind."""
    config = changed()
    field = {"data": "data", "models": "model", "protocols": "protocol"}.get(kind)
    if field:
        config["defaults"][field] = {"name": "mine", **fields}
    else:
        config["defaults"][kind]["mine"] = fields
    return config


def where(kind: str) -> str:
    """The path of that plug-in."""
    return "defaults." + {"data": "data", "models": "model", "protocols": "protocol"}.get(kind, f"{kind}.mine")


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_file_of_the_library_is_found_by_its_name(kind):
    names = registry.names(kind)
    assert list(names) == sorted(names)
    files = {path.stem for path in (SCRIPTS / "unlearning_audit" / kind).glob("[!_]*.py")}
    assert set(names) == files
    assert all(registry.source_file(kind, name) == SCRIPTS / "unlearning_audit" / kind / f"{name}.py" for name in names)


@pytest.mark.parametrize("name", ["nothing", "_layers", "__init__", "../study", "mlp.py", "", "a/b", "/etc/passwd"])
def test_a_name_is_no_path(name):
    with pytest.raises(
        ValueError, match=rf"^{re.escape(repr(name))} is not one of the models: airbench, bert, cnn, distilbert"
    ):
        registry.source_file("models", name)


def test_all_options_are_read_without_heavy_imports():
    """In a process of its own: a plan must not wait for torch."""
    code = (
        "import sys; from unlearning_audit.plugins import registry\nfor kind in ('data', 'models', 'protocols', "
        "'methods', 'attacks'):\n    for name in registry.names(kind):\n        assert registry.options(kind, "
        "name).model_config['extra'] == 'forbid', name\nheavy = "
        "{'torch', 'pandas', 'scipy.stats', 'sklearn', 'torchvision', 'opacus'} & set(sys.modules)\nsys.exit(' "
        "'.join(heavy) or 0)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=SCRIPTS, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("kind", PARTS)
def test_every_kind_takes_a_users_file(kind, tmp_path):
    file = write_file(tmp_path, f"import torch\n{OPTIONS}\ndef {PARTS[kind]}(*args): pass\n")
    config = study_with(kind, file=file, strength=3)
    scenario = reading.read(config).scenarios[0]
    field = {"data": "data", "models": "model"}.get(kind)
    plugin = getattr(scenario, field) if field else getattr(scenario, kind)["mine"]
    assert (plugin.name, plugin.file, plugin.options) == ("mine", file, {"strength": 3.0})
    with pytest.raises(
        StudyError, match=rf"^config.yaml: {where(kind)}.strenth: there is no such field, did you mean "
    ):
        reading.read(study_with(kind, file=file, strenth=3))


def test_a_users_protocol_is_run(tmp_path):
    scenario = reading.read(study_with("protocols", file=write_file(tmp_path, PROTOCOL), pairs=2)).scenarios[0]
    assert (scenario.protocol.options, list(scenario.metrics)) == ({"pairs": 2}, ["swap", "accuracy"])
    broken = write_file(tmp_path, PROTOCOL + "\n1 / 0\n", "broken.py")
    with pytest.raises(StudyError, match=r"protocol.file: .*broken.py line 19, in module: ZeroDivisionError: division"):
        reading.read(study_with("protocols", file=broken))
    assert not [name for name in sys.modules if name.endswith("_broken")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def unlearn(", "line 1 is not valid Python ("),
        ("x = 1\n  y = 2\n", "line 2 is not valid Python ("),
        (b"\x00\x01", "is not "),
        (b"\xff\xfe\xfa", "is not valid Python ("),
        ("", "class Options(Settings) is missing; every file of methods defines it"),
        (OPTIONS, "unlearn is missing; every file of methods defines it"),
        (OPTIONS + "class A:\n    def unlearn(self): pass\n", "unlearn is missing; every file of methods defines it"),
        ("class Options: pass\ndef unlearn(*a): pass\n", "class Options cannot be read; it must derive from Settings"),
        ("Options = 3\ndef unlearn(*a): pass\n", "class Options cannot be read; it must derive from Settings"),
    ],
)  # fmt: skip
def test_what_a_users_file_lacks_is_named(text, expected, tmp_path):
    file = write_file(tmp_path, text)
    with pytest.raises(StudyError) as caught:
        reading.read(study_with("methods", file=file))
    message = str(caught.value)
    assert message.startswith(f"config.yaml: defaults.methods.mine.file: {file}: ")
    assert expected in message
    assert "\n" not in message


@pytest.mark.parametrize("part", ["blocks", "draw", "PROTOCOL"])
def test_every_part_of_a_protocol_is_asked_for(part, tmp_path):
    file = write_file(tmp_path, re.sub(rf"\b{part}\b", f"{part}_", PROTOCOL))
    with pytest.raises(StudyError, match=rf"protocol.file: .*: {part} is missing; every file of protocols defines it$"):
        reading.read(study_with("protocols", file=file))


@pytest.mark.parametrize("kind", [*PARTS, "protocols"])
def test_a_file_that_is_not_there_is_named(kind, tmp_path):
    for file, words in (
        ("no/such.py", "file 'no/such.py' does not exist; give a path relative to the working directory"),
        (str(tmp_path), f"'{tmp_path}' is a folder; give the Python file itself, such as '{tmp_path}/mine.py'"),
    ):
        with pytest.raises(StudyError, match=rf"^config.yaml: {where(kind)}.file: {words}$"):
            reading.read(study_with(kind, file=file))
    with pytest.raises(
        StudyError, match=rf"^config.yaml: {where(kind)}.file: must be the path of a Python file, found 3$"
    ):
        reading.read(study_with(kind, file=3))
    with pytest.raises(StudyError, match=rf"^config.yaml: {where(kind)}(.name)?: there is no [a-z ]+ 'mine'"):
        reading.read(study_with(kind))


def test_a_users_file_has_a_name_of_its_own(tmp_path):
    file = write_file(tmp_path, f"{OPTIONS}\ndef build(*args): pass\n")
    with pytest.raises(
        StudyError, match=r"model.name: is the library's own model; give your file another name than 'mlp'"
    ):
        reading.read(changed(("defaults/model", f"{{name: mlp, file: {file}}}")))
    with pytest.raises(StudyError, match=r"model.name: must be at most 40 characters long, found 'aaaa"):
        reading.read(changed(("defaults/model", f"{{name: {'a' * 300}, file: {file}}}")))
    with pytest.raises(
        StudyError, match=r"model.name: must be lower-case letters, digits and underscores only, found 'My"
    ):
        reading.read(changed(("defaults/model", f"{{name: My net, file: {file}}}")))


def test_the_classic_function_is_looked_for(tmp_path):
    """The option ``file`` of the method classic is an option, not a plug-in."""
    file = write_file(tmp_path, "import torch\ndef forget(model, retain, forget): return model\n")
    config = changed(("defaults/methods/mine", f"{{name: classic, file: {file}, function: forget}}"))
    plugin = reading.read(config).scenarios[0].methods["mine"]
    assert (plugin.name, plugin.file, plugin.options["file"]) == ("classic", None, file)
    for fields, expected in (
        (f"file: {file}", f"file: {file}: a function unlearn is missing; define it or name another with function"),
        ("file: none.py", "file: file 'none.py' does not exist; give a path relative to the working directory"),
        (f"file: {tmp_path}", f"file: '{tmp_path}' is a folder; give the Python file itself, such as '{tmp_path}/"),
        (f"file: {write_file(tmp_path, '(', 'bad.py')}", f"file: {tmp_path}/bad.py: line 1 is not valid Python ("),
    ):
        with pytest.raises(StudyError, match=rf"^config.yaml: defaults.methods.mine.{re.escape(expected)}"):
            reading.read(changed(("defaults/methods/mine", f"{{name: classic, {fields}}}")))
    with pytest.raises(StudyError, match=r"^config.yaml: defaults.methods.classic.file: is missing; add it$"):
        reading.read(changed(("defaults/methods/classic", "{}"), ("defaults/methods/neggrad", "")))


def test_a_file_is_run_as_it_is_and_nothing_is_left_beside_it(tmp_path):
    """Python's own cache takes a file of the same size and second for the same."""
    file, script = (
        tmp_path / "mine.py",
        "import sys; sys.path.append(sys.argv[1])\nfrom unlearning_audit.plugins import registry\n",
    )
    code = "print(registry.load('attacks', 'mine', 'mine.py').KIND)"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    output = []
    for kind in (1, 2):
        file.write_text(
            f"from unlearning_audit.plugins.settings import Settings\nKIND = {kind}\nclass Options(Settings):\n    "
            "pass\ndef score(logits, y, reference, options, rng):\n    return logits\n"
        )
        os.utime(file, (1e9, 1e9))
        run = subprocess.run(
            [sys.executable, "-c", script + code, str(SCRIPTS)], cwd=tmp_path, env=env, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        output.append(run.stdout.strip())
    assert output == ["1", "2"]
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]
