"""Servers import what their jobs need, and no others."""

import errno
import os
import socket
import subprocess
import sys
from contextlib import suppress

import pytest
from unlearning_audit.workflow import forks, forkserver

from forkserver_cases import LIGHT, on_linux, printed_lines, program


@on_linux
def test_servers_have_one_thread_so_that_forks_are_safe(tmp_path):
    """Also those that only some jobs need; each starts once, at the latest when it is asked, and others stay small."""
    jobs = {"art": ("attack", {"attacks": {"own": {"name": "art"}}}),
            "text": ("train", {"model": "gpt2"}), "vision": ("train", {"model": "swin_s"}),
            "privacy": ("train", {"recipe": {"dp": {"epsilon": 1}}}), "drawings": ("figures", {})}  # fmt: skip
    libraries = [
        [library for library in names if not (forks.SCRIPTS / f"{library}.py").exists()]
        for _, names in forks.SERVERS.values()
    ]
    snippet = ""
    for kind, (stage, settings) in jobs.items():
        text = "import os, sys; print(len(os.listdir(f'/proc/{os.getppid()}/task')), os.getppid(), "
        (tmp_path / f"{kind}.{stage}.py").write_text(
            f"{text}*(all(one in sys.modules for one in some) for some in {libraries}))"
        )
        snippet += f"script('{kind}.{stage}.py', params={{'settings': {settings}}})\n" * 2
    lines = [line.split() for line in printed_lines(tmp_path, program(snippet, LIGHT, ("text", "art")))]
    assert lines[::2] == lines[1::2]
    assert {line[0] for line in lines} == {"1"}
    for kind, (_, _, *flags) in zip(jobs, lines[::2], strict=True):
        has = {server for server, flag in zip(forks.SERVERS, flags, strict=True) if flag == "True"}
        before = {*forks.line(kind)}
        assert has >= before - ({"numbers"} if "models" in before else set())  # that of models starts before it is done
        assert has.isdisjoint({"art", "privacy", "drawings", "vision"} - before)


def test_a_library_that_cannot_be_imported_leaves_the_server_alive(tmp_path):
    (tmp_path / "a_broken_module.py").write_text("raise RuntimeError('no')")
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(forkserver.SCRIPTS)!r}]; import library\n"
    code += "from unlearning_audit.workflow import forks\nforks._take('a_broken_module')\nprint('lives')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "lives\n"


@pytest.mark.parametrize("door", ["numbers", "models", "text"])
def test_a_fork_that_the_system_refuses_fails_its_job_and_no_other(tmp_path, monkeypatch, capsys, door):
    """Also the fork of a server that is not there yet, which a later job begins."""

    def refused():
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    reading, writing = os.pipe()
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as client, open(reading) as stdin:
        monkeypatch.chdir(tmp_path)
        listening.bind("door")
        listening.listen(4)
        client.settimeout(20)
        client.connect("door")
        client.send(b"a request")
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(os, "fork", refused)
        server = forks.Server("numbers", {door: listening}, [])
        with suppress(OSError):
            assert server.answer([door], 0)
        assert client.recv(1) == b"\1"
        assert [*server.left([door])] == [door]
    os.close(writing)
    assert "no process left for a job (Resource temporarily unavailable); run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "settings", "kind"),
    [("train", {"model": "mlp", "recipe": {"dp": None}}, "models"), ("data", {}, "numbers"),
     ("train", {"model": "mlp", "recipe": {"dp": {"epsilon": 1}}}, "privacy"), ("meta", {}, "drawings"),
     ("unlearn", {"model": "swin_s", "recipe": {"dp": None}}, "vision"),
     ("signals", {"model": "llama", "recipe": {"dp": None}}, "text"),
     ("metrics", {"metrics": {"swap": {"name": "swap"}}}, "numbers"),
     ("metrics", {"metrics": {"swap": {"name": "swap"}, "words": {"name": "rouge"}}}, "numbers"),
     ("attack", {"attacks": {"a": {"name": "art"}}}, "art"),
     ("attack", {"attacks": {"art": {"name": "loss"}}}, "numbers"), ("forecast", {"study": "digits"}, "models")],
)  # fmt: skip
def test_a_job_is_forked_by_the_server_that_has_what_it_needs(script, settings, kind):
    assert forkserver.door_for(script, settings) == kind
