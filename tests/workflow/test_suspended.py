"""A run that is suspended (Ctrl-Z, a debugger) stands in nobody's way."""

import errno
import os
import socket
import tempfile
import threading
from contextlib import ExitStack

from unlearning_audit.workflow import forkserver


def test_a_suspended_run_makes_no_other_wait(tmp_path, monkeypatch):
    """Its server answers nobody, so that connections to it queue up, until one more would wait for it to go on."""
    folder = tmp_path / f"{forkserver.PREFIX}suspended"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(folder)
    with ExitStack() as opened, socket.socket(socket.AF_UNIX) as door:
        door.bind("numbers")
        door.listen(1)
        answers = []
        for _ in range(10):
            asking = opened.enter_context(socket.socket(socket.AF_UNIX))
            asking.setblocking(False)
            answers.append(asking.connect_ex("numbers"))
        assert (answers[0], answers[-1]) == (0, errno.EAGAIN), "the queue is full"
        os.utime(folder, (0, 0))
        tidying = threading.Thread(target=forkserver._tidy, daemon=True)
        tidying.start()
        tidying.join(60)
        assert not tidying.is_alive()
        assert folder.exists()
    forkserver._tidy()
    assert not folder.exists()
