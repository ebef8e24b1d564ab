"""Runs the tiny study where something is amiss around it: it ends as ever, or with a sentence and no traceback, and
once all is well again, with the same bytes."""

import os
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kills import AFTER, MARK, _differences, left
from workplace import ROOT, Workplace, copy_tree

#: Seconds until a run counts as hanging.
PATIENCE = 900


@dataclass(frozen=True)
class Trouble:
    """``shell``: what runs the command, which takes the place of {run}; ``environment`` is added to the run's.
    ``before`` prepares the folder; ``audit``: by the command audit, as Snakemake itself would not start. ``fails``: the
    run cannot end well, and must say so in a sentence with this in it.
    """

    shell: str = "{run}"
    environment: dict[str, str] = field(default_factory=dict)
    before: Callable[[Workplace], None] = lambda place: None
    fails: str = ""
    root: bool = False
    audit: bool = False


def _lock(place: Workplace) -> None:
    """As a run that is killed leaves it."""
    locks = place.folder / ".snakemake" / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    (locks / "0.output.lock").write_text("results/tiny/report.html\n")


def _read_only(place: Workplace) -> None:
    (place.folder / "results").mkdir(exist_ok=True)


IN_OWN = "unshare -m sh -c {quoted}"
TROUBLES = {
    "HOME that is not there": Trouble(environment={"HOME": "/proc/nowhere", "XDG_CACHE_HOME": ""}, audit=True),
    "TMPDIR that is not there": Trouble(environment={"TMPDIR": "/proc/nowhere"}),
    "TMPDIR read-only": Trouble(environment={"TMPDIR": "/proc"}),
    "no warm process": Trouble(environment={"UNLEARNING_WARM": "0"}),
    "stdout closed": Trouble("{run} >&-"),
    "stderr closed": Trouble("{run} 2>&-"),
    "stdin, stdout and stderr closed": Trouble("{run} <&- >&- 2>&-"),
    "stdout full": Trouble("{run} >/dev/full"),
    "stdout and stderr full": Trouble("{run} >/dev/full 2>&1", audit=True),
    "nobody reads": Trouble("{run} | true"),
    "nobody reads what audit says": Trouble("{run} 2>&1 | true", audit=True),
    "no /dev/shm": Trouble("mount -t tmpfs none /dev/shm -o ro && {run}", root=True),
    "a locked folder": Trouble(before=_lock, fails="lock"),
    "results/ read-only": Trouble(
        "mount --bind results results && mount -o remount,ro,bind results && {run}", before=_read_only, root=True,
        fails="ead-only",
    ),
    "LANG of nowhere": Trouble(environment={"LC_ALL": "C", "LANG": "xx_YY.nothing", "PYTHONUTF8": "0"}),
    "another time zone": Trouble(environment={"TZ": "Asia/Kathmandu"}),
    "hashes of other seeds": Trouble(environment={"PYTHONHASHSEED": "12345"}),
    "few open files": Trouble("ulimit -n 64; {run}"),
}  # fmt: skip


def attempt(place: Workplace, whole: dict[str, bytes], number: int) -> tuple[str, str]:
    """(what was amiss, what was wrong with what came of it): a run in trouble, and one without."""
    kind = list(TROUBLES)[number % len(TROUBLES)]
    trouble = TROUBLES[kind]
    for name in ("results", ".snakemake"):
        shutil.rmtree(place.folder / name, ignore_errors=True)
    trouble.before(place)
    mark, log = secrets.token_hex(8), place.folder / "said.txt"
    typed = [sys.executable, "-m", "unlearning_audit.command", "run", "study.yaml", "--cores", "2"]
    shell = trouble.shell.format(run=shlex.join(typed if trouble.audit else place.command()))
    if trouble.root:
        shell = IN_OWN.format(quoted=shlex.quote(shell))
    environment = {**place.environment, "PYTHONPATH": str(place.tree), **trouble.environment, MARK: mark}
    with log.open("w") as file:
        run = subprocess.Popen(
            ["bash", "-c", f"set -o pipefail; {shell}"], env=environment, cwd=place.folder, stdout=file, stderr=file,
            start_new_session=True,
        )  # fmt: skip
    wrong = []
    try:
        code = run.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, 9)
        return kind, f"{kind}: the run hangs: {log.read_text()[-600:]}"
    wrong += [f"{AFTER:g} s later still there: {command}" for command in left(mark)]
    text = log.read_text(errors="replace")
    if "Traceback" in text:
        wrong.append(f"a traceback: {text[text.index('Traceback') :][:600]}")
    if trouble.fails:
        wrong += [f"it says nothing of {trouble.fails!r}: {text[-600:]}"] * (trouble.fails not in text)
        wrong += ["it ended with 0"] * (code == 0)
        shutil.rmtree(place.folder / ".snakemake" / "locks", ignore_errors=True)
        again = place.run(check=False)
        wrong += [f"once all was well again: {again.stdout[-600:]}"] * (again.returncode != 0)
    elif code and kind != "nobody reads":
        wrong.append(f"it ended with {code}: {text[-600:]}")
    if not wrong:
        wrong += _differences(place.contents(), whole)
    return kind, f"{kind}: {'; '.join(wrong)}" if wrong else ""


def prepared(root: Path, study: dict) -> Workplace:
    """A copy of the workflow's files as they are now below ``root``, and a folder with the study beside it."""
    tree = root / "tree"
    if not tree.exists():
        copy_tree(tree)
        shutil.copytree(ROOT / "unlearning_audit", tree / "unlearning_audit")
    place = Workplace(tree, root / "work")
    place.folder.mkdir(exist_ok=True)
    place.write(study)
    return place
