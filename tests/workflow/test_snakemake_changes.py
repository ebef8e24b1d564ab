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
from snakemake.io import _IOFile
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.settings.types import ExecMode
from unlearning_audit.workflow import forkserver, interruption, snakemake_changes

from forkserver_cases import on_linux

SCRIPTS = Path(forkserver.__file__).resolve().parents[2]


@pytest.fixture
def answered(monkeypatch):
    """Answers signals for a new scheduler, as in a new run; afterwards they are answered as before."""
    before = [signal.getsignal(number) for number in interruption.SIGNALS]

    def answer(user_kill: str | None = None) -> SimpleNamespace:
        monkeypatch.setattr(interruption, "_numbers", [])
        monkeypatch.setattr(interruption, "_event", threading.Event())
        scheduler = SimpleNamespace(_open_jobs=threading.Semaphore(0), _finish_jobs=lambda: None, _user_kill=user_kill)
        workflow = SimpleNamespace(scheduler=scheduler, local_exec=False)
        snakemake_changes.answer_signals_from_a_thread(workflow)
        return scheduler

    yield answer
    for number, handler in zip(interruption.SIGNALS, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", interruption.SIGNALS)
def test_a_signal_ends_the_scheduler_and_is_said_once(answered, capfd, number):
    signal.signal(number, signal.SIG_DFL)
    scheduler = answered()
    scheduler._finish_jobs()
    for _ in range(2):
        signal.raise_signal(number)
    assert scheduler._open_jobs.acquire(timeout=10)
    with pytest.raises(KeyboardInterrupt):
        scheduler._finish_jobs()
    with pytest.raises(SystemExit) as end:
        interruption.leave()
    assert end.value.code == 128 + number
    assert capfd.readouterr().err == "interrupted; the same command goes on\n"


def test_sigterm_that_came_to_snakemakes_own_handler_ends_the_scheduler_as_well(answered):
    scheduler = answered(user_kill="graceful")
    assert scheduler._open_jobs.acquire(timeout=10)
    with pytest.raises(KeyboardInterrupt):
        scheduler._finish_jobs()


def test_under_nohup_sighup_is_no_signal_to_answer(answered):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    answered()
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_an_interrupt_at_any_moment_ends_the_scheduler_and_leaves_no_lock_taken(answered):
    """Where KeyboardInterrupt is raised in the handler, one of six leaves a lock that the jobs wait for."""
    for microseconds in range(200, 12_001, 200):
        scheduler, lock, ended = answered(), threading.Lock(), threading.Event()

        def end_jobs(scheduler=scheduler, lock=lock, ended=ended):
            while not ended.is_set():
                with lock:
                    pass
                scheduler._open_jobs.release()

        jobs = threading.Thread(target=end_jobs, daemon=True)
        jobs.start()
        threading.Timer(microseconds / 1e6, os.kill, (os.getpid(), signal.SIGINT)).start()

        def schedule(scheduler=scheduler, lock=lock):  # as `JobScheduler.schedule` does
            while True:
                scheduler._open_jobs.acquire()
                with lock:
                    scheduler._finish_jobs()

        with pytest.raises(KeyboardInterrupt):
            schedule()
        ended.set()
        jobs.join(10)
        assert not jobs.is_alive(), f"after {microseconds} µs"


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


def test_the_size_of_an_input_is_asked_for_once(monkeypatch):
    monkeypatch.setattr(JobScheduler, "update_input_sizes", JobScheduler.update_input_sizes)
    snakemake_changes.ask_for_sizes_once()
    requests = []

    class File(str):
        async def exists(self) -> bool:
            return self != "missing"

        async def size(self) -> int:
            requests.append(self)
            return len(self)

    scheduler = SimpleNamespace(_input_sizes={})
    for names in (["a", "bb"], ["bb", "missing"], ["a", "ccc"]):
        jobs = [SimpleNamespace(input=[File(name) for name in names])] * 2
        asyncio.run(JobScheduler.update_input_sizes(scheduler, jobs))
    assert scheduler._input_sizes == {"a": 1, "bb": 2, "missing": None, "ccc": 3}
    assert sorted(requests) == ["a", "bb", "ccc"]


@pytest.mark.parametrize(
    ("mode", "dry", "cores", "starts"),
    [(ExecMode.DEFAULT, False, 2, True), (ExecMode.DEFAULT, True, 2, False), (ExecMode.DEFAULT, False, None, False),
     (ExecMode.SUBPROCESS, False, 1, False), (ExecMode.REMOTE, False, 1, False)],
)  # fmt: skip
def test_servers_start_for_runs_on_this_machine(tmp_path, monkeypatch, mode, dry, cores, starts):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(forkserver, "start", lambda: "a folder")
    workflow = SimpleNamespace(
        exec_mode=mode, output_settings=SimpleNamespace(dryrun=dry), resource_settings=SimpleNamespace(cores=cores)
    )
    assert snakemake_changes.start_servers(workflow) == ("a folder" if starts else None)
    (tmp_path / "results" / "study").mkdir(parents=True)
    (tmp_path / "results" / "study" / "report.html").touch()
    assert snakemake_changes.start_servers(workflow) is None


@pytest.mark.parametrize(("folder", "local", "mode", "runs_in"), [
    ("early", True, ExecMode.DEFAULT, "early"), (None, True, ExecMode.DEFAULT, "late"),
    (None, True, ExecMode.SUBPROCESS, None), (None, False, ExecMode.DEFAULT, None),
    ("early", False, ExecMode.DEFAULT, None),
])  # fmt: skip
def test_servers_that_did_not_start_early_start_once_jobs_are_known(monkeypatch, folder, local, mode, runs_in):
    calls = []
    for name in ("lift_default_job_rate", "answer_signals_from_a_thread"):
        monkeypatch.setattr(snakemake_changes, name, lambda workflow: None)
    for name in ("remember_checksums", "ask_for_sizes_once"):
        monkeypatch.setattr(snakemake_changes, name, lambda: None)
    monkeypatch.setattr(forkserver, "start", lambda: "late")
    monkeypatch.setattr(forkserver, "announce", lambda folder, kinds: calls.append(("announce", folder, *kinds)))
    monkeypatch.setattr(forkserver, "stop", lambda folder: calls.append(("stop", folder)))
    monkeypatch.setattr(snakemake_changes, "run_scripts_in_forks", lambda folder: calls.append(("fork", folder)))
    workflow = SimpleNamespace(
        local_exec=local, exec_mode=mode, output_settings=SimpleNamespace(dryrun=False),
        resource_settings=SimpleNamespace(cores=2),
    )  # fmt: skip
    snakemake_changes.apply(workflow, folder, ["numbers", "text"])
    servers = ("compiler", "models", "numbers", "text", "vision")  # those, too, that one for text is forked from
    forks = [("announce", runs_in, *servers), ("fork", runs_in)] if runs_in else []
    assert calls == (forks or ([("stop", folder)] if folder else []))


@pytest.fixture
def nobody_serves(tmp_path, monkeypatch):
    """A process that has no servers, and the folder where it would have those of their sockets."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv(forkserver.SWITCH, raising=False)
    monkeypatch.setattr(forkserver, "_server", None)
    return tmp_path


@on_linux
def test_servers_that_nobody_needs_end_and_leave_nothing(nobody_serves):
    folder = forkserver.start()
    assert [path.name for path in nobody_serves.iterdir()] == [Path(folder).name]
    for _ in range(2):  # again when this process ends
        forkserver.stop(folder)
        assert forkserver._server.poll() == -signal.SIGKILL
        assert list(nobody_serves.iterdir()) == []


@on_linux
def test_runs_share_servers_that_have_their_library(nobody_serves, monkeypatch):
    """They do not end with a run that did not start them; those of another library are left alone."""
    folder = forkserver.start()
    first = forkserver._server
    monkeypatch.setenv(forkserver.SWITCH, folder)
    assert forkserver.start() == folder
    assert forkserver._server is first
    forkserver.stop(folder)
    assert first.poll() is None
    (Path(folder) / forkserver.LIBRARY).write_text("elsewhere/scripts")
    other = forkserver.start()
    assert other != folder
    forkserver.stop(other)
    assert forkserver._server is not first
    assert first.poll() is None
    monkeypatch.delenv(forkserver.SWITCH)
    monkeypatch.setattr(forkserver, "_server", first)
    forkserver.stop(folder)
    assert first.poll() == -signal.SIGKILL
    assert list(nobody_serves.iterdir()) == []


@on_linux
def test_servers_die_with_a_run_that_is_killed_while_they_import(tmp_path):
    program = (
        f"import sys, time; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "from unlearning_audit.workflow import forkserver\n"
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
            door.bind(f"{short}/numbers")
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
