"""What stands where: doors of rooms, what loads torch, how scripts find the library. Layers are a contract of
import-linter in pyproject.toml."""

import re
import subprocess
import sys
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "unlearning_audit"
SCRIPTS = LIBRARY.parent / "scripts"

#: Rooms whose files are imported to plan, score or show, without torch (the first without more that is slow); and the
#: files that need it.
LIGHT = ("attacks", "metrics", "signals", "stats", "workflow", "study", "comparisons", "report", "stages", "command")
WITH_TORCH = {
    "workflow.attempt", "workflow.campaign", "workflow.external_models", "workflow.influence",
    "workflow.open_stack", "workflow.self_test",
}  # fmt: skip


def test_a_file_with_an_underscore_is_for_its_own_room():
    private = re.compile(r"(?:from|import) unlearning_audit\.(\w+)(?:[\w.]*\._\w+| import _\w+)")
    uses = {(path, room) for path in LIBRARY.rglob("*.py") for room in private.findall(path.read_text())}
    assert uses
    assert not [path for path, room in uses if path.relative_to(LIBRARY).parts[0] != room]


def test_planning_scoring_and_showing_do_without_torch():
    modules = [".".join(path.relative_to(LIBRARY).with_suffix("").parts) for room in LIGHT
               for path in sorted((LIBRARY / room).rglob("*.py"))]  # fmt: skip
    light = [name.removesuffix(".__init__") for name in modules if name not in WITH_TORCH | {"command.__main__"}]
    program = (
        "import importlib, sys\n"
        f"for name in {light}:\n"
        "    importlib.import_module(f'unlearning_audit.{name}')\n"
        "    slow = {'torch'} | ({'pandas', 'scipy.stats', 'sklearn'} if name.startswith('attacks') else set())\n"
        "    assert not slow & set(sys.modules), name\n"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=LIBRARY.parent, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_a_script_finds_the_library_beside_it_and_no_other(tmp_path):
    """As where a job starts in an environment that holds no library, or another version of it."""
    elsewhere = tmp_path / "unlearning_audit"
    elsewhere.mkdir()
    (elsewhere / "__init__.py").write_text("raise ImportError('this is another library')")
    command = f"import sys; sys.path[:0] = [{str(tmp_path)!r}]; sys.path.append({str(SCRIPTS)!r}); import job"
    subprocess.run([sys.executable, "-c", command], check=True, cwd=tmp_path)
