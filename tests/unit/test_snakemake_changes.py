"""Each change of Snakemake does what it says: runs end when they are asked to, and nothing is done twice."""

import asyncio
import hashlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.api import SnakemakeApi  # noqa: F401 (other modules of Snakemake cannot be imported first)
from snakemake.dag import ScriptProcessor
from snakemake.io import _IOFile
from snakemake.jobs import Job
from snakemake.settings.enums import Quietness

from unlearning.workflow import forkserver, snakemake_changes

SCRIPTS = Path(forkserver.__file__).resolve().parents[2]


def test_sigterm_while_the_scheduler_holds_its_lock_waits_for_nobody():
    """Snakemake's own handler takes the lock in the main thread, which would wait for itself for ever."""
    lock, stopped = threading.Lock(), threading.Event()

    def exit_gracefully(*_):
        with lock:
            stopped.set()

    before = signal.getsignal(signal.SIGTERM)
    try:
        snakemake_changes.end_gracefully_from_a_thread(
            SimpleNamespace(scheduler=SimpleNamespace(exit_gracefully=exit_gracefully))
        )
        with lock:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.05)  # the handler runs here, in this thread
            assert not stopped.is_set()
        assert stopped.wait(10)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_file_is_read_once_for_its_checksum_until_it_changes(tmp_path, monkeypatch):
    read, digest = [], hashlib.file_digest
    monkeypatch.setattr(_IOFile, "checksum", _IOFile.checksum)
    monkeypatch.setattr(hashlib, "file_digest", lambda file, *how: [read.append(file.name), digest(file, *how)][1])
    snakemake_changes.remember_checksums()
    path = tmp_path / "logits.npz"
    workflow = SimpleNamespace(iocache=SimpleNamespace(active=False))  # as in a run
    rule = SimpleNamespace(workflow=workflow, pathvars=SimpleNamespace(apply=str))

    def checksum(most: int = 1000) -> str | None:
        return asyncio.run(_IOFile(str(path), rule).checksum(most))

    def checksums(content: bytes, seconds: int) -> set[str | None]:
        path.write_bytes(content)
        os.utime(path, (seconds, seconds))
        return {checksum() for _ in range(3)}

    for number, content in enumerate((b"one", b"two", b"longer")):
        assert checksums(content, 10 * number) == {f"sha256:{hashlib.sha256(content).hexdigest()}"}
    assert read == [str(path)] * 3
    assert checksum(most=3) is None  # a larger file has none
    path.unlink()
    assert checksum() is None


@pytest.mark.parametrize(
    ("scripts", "looks"),
    [(["a.py", "a.py", "b.py", "a.py"], ["a.py", "b.py"]), (["{wildcards.a}.py"] * 2, ["{wildcards.a}.py"] * 2)],
)
def test_a_script_is_looked_for_once_for_each_rule(monkeypatch, scripts, looks):
    found = []
    monkeypatch.setattr(ScriptProcessor, "process_job", lambda self, job: found.append(job.rule.script))
    snakemake_changes.look_for_scripts_once()
    for _ in range(2):  # every plan looks anew
        processor = ScriptProcessor(dag=None)
        for script in scripts:
            processor.process_job(SimpleNamespace(rule=SimpleNamespace(name=f"rule of {script}", script=script)))
    assert found == looks * 2


@pytest.mark.parametrize(
    ("quiet", "handlers", "checkpoint", "said"),
    [({"RULES"}, {}, False, 0), ({"RULES", "PROGRESS"}, {}, False, 0), ({"PROGRESS"}, {}, False, 1),
     (set(), {}, False, 1), (None, {}, False, 1), ({"RULES"}, {"somebody": 1}, False, 1), ({"RULES"}, {}, True, 1)],
)  # fmt: skip
def test_jobs_are_described_where_somebody_reads_it(monkeypatch, quiet, handlers, checkpoint, said):
    heard = []
    monkeypatch.setattr(Job, "log_info", lambda self, indent=False: heard.append(indent))
    snakemake_changes.word_only_what_is_said()
    output = SimpleNamespace(quiet=quiet and {Quietness[one] for one in quiet}, log_handler_settings=handlers)
    dag = SimpleNamespace(workflow=SimpleNamespace(output_settings=output))
    Job.log_info(SimpleNamespace(dag=dag, rule=SimpleNamespace(is_checkpoint=checkpoint)), indent=True)
    assert heard == [True] * said


@pytest.mark.parametrize("chosen", ["envs/score.yaml", lambda wildcards: "envs/score.yaml"])
def test_an_environment_is_named_without_parameters_unless_a_function_chooses_it(monkeypatch, chosen):
    asked = []
    monkeypatch.setattr(Job, "conda_env_spec", Job.conda_env_spec)
    snakemake_changes.name_environments_alone()

    class One:
        rule = SimpleNamespace(_conda_env=chosen, expand_conda_env=lambda *of: asked.append(of) or "an environment")
        _conda_env_spec, wildcards_dict, input = None, {"node": "a"}, ["data.npz"]

        @property
        def params(self):
            assert callable(chosen), "computed for nothing"
            return ["settings"]

    for _ in range(2):
        one = One()
        assert [Job.conda_env_spec.fget(one) for _ in range(2)] == ["an environment"] * 2
    assert asked == ([({"node": "a"}, ["settings"], ["data.npz"])] if callable(chosen) else [({"node": "a"},)]) * 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the server")
def test_servers_die_with_a_run_that_is_killed_while_they_import(tmp_path):
    program = (
        f"import sys, time; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "from unlearning.workflow import forkserver\n"
        "forkserver.start(); print(forkserver._server.pid, flush=True); time.sleep(600)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment)
    server = int(run.stdout.readline())
    time.sleep(0.3)  # it imports
    run.kill()
    run.wait()
    end = time.monotonic() + 30
    while Path(f"/proc/{server}").exists() and "Z" not in Path(f"/proc/{server}/stat").read_text().rpartition(")")[2]:
        assert time.monotonic() < end, "the server lives on"
        time.sleep(0.02)


def test_folders_of_killed_servers_are_removed_and_those_of_others_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    listening = []
    for name in ("dead", "alive", "young"):
        folder = tmp_path / f"{forkserver.PREFIX}{name}"
        folder.mkdir()
        door = socket.socket(socket.AF_UNIX)
        with forkserver._short(str(folder)) as short:
            door.bind(f"{short}/door")
        if name == "alive":
            door.listen()
            listening.append(door)
        else:
            door.close()
        if name != "young":
            os.utime(folder, (time.time() - 120,) * 2)
    (tmp_path / f"{forkserver.PREFIX}mine").mkdir()
    forkserver._tidy()
    listening[0].close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{forkserver.PREFIX}{name}" for name in ("alive", "mine", "young")
    ]


def test_a_second_interrupt_changes_nothing(monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    try:
        snakemake_changes.interrupt_once()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
