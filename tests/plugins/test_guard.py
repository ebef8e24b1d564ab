"""What a plug-in raises becomes a sentence with its place; what the machine does stays what it is."""

import errno
import signal
from pathlib import Path

import pytest
import torch
from unlearning_audit.plugins.guard import MachineError, PluginError, guard, of_machine
from unlearning_audit.plugins.isolation import isolated

FILE = """import ctypes, json, os, signal, sys


def fail():
    return [][3]


def quit(code):
    sys.exit(code)


def vanish(code):
    os._exit(code)


def crash():
    ctypes.string_at(0)


def die(number):
    os.kill(os.getpid(), number)


def deep():
    json.loads("{")


def ask(error):
    raise error
"""


@pytest.fixture
def user_file(workdir):
    """The file, and what it defines."""
    path = workdir / "mine.py"
    path.write_text(FILE)
    scope = {}
    exec(compile(FILE, str(path), "exec"), scope)
    return path, scope


def call_guarded(path: Path, function, *arguments):
    with guard(path):
        function(*arguments)


def here(function, path: Path):
    """The function called in this process, as `isolated` calls it in another."""
    return function()


@pytest.mark.parametrize(
    ("process", "name", "arguments", "sentence"),
    [
        (here, "fail", (), " line 5, in fail: IndexError: list index out of range"),
        (isolated, "fail", (), " line 5, in fail: IndexError: list index out of range"),
        (here, "quit", (0,), " line 9, in quit: it called sys.exit(0)"),
        # the last line of the file itself, and not that of a library
        (here, "deep", (), " line 25, in deep: JSONDecodeError: Expecting property name enclosed in double quotes: "
         "line 1 column 2 (char 1)"),
        (isolated, "vanish", (3,), ": the process ended itself (3)"),
        (isolated, "crash", (), ": the process crashed (SIGSEGV); log.txt has the calls"),
    ],
)  # fmt: skip
def test_a_sentence_names_file_line_function_and_error(user_file, capfd, process, name, arguments, sentence):
    path, scope = user_file
    with pytest.raises(PluginError) as error:
        process(lambda: call_guarded(path, scope[name], *arguments), path)
    assert str(error.value) == f"mine.py{sentence}"


PLUGINS_FAULT = [
    FileNotFoundError(errno.ENOENT, "no"), RuntimeError("shape"),
    torch.AcceleratorError("CUDA error: device-side assert triggered", 710),
    RuntimeError("adaptive_max_pool2d_backward_cuda does not have a deterministic implementation"),
]  # fmt: skip
NOBODYS_FAULT = [
    MemoryError(), KeyboardInterrupt(), OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "broken"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    torch.AcceleratorError("CUDA error: out of memory", 2),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"),
    RuntimeError("CUDA driver initialization failed, you might not have a CUDA gpu."),
    RuntimeError("Found no NVIDIA driver on your system."), RuntimeError("HIP error: invalid device ordinal"),
]  # fmt: skip


@pytest.mark.parametrize("error", [*PLUGINS_FAULT, *NOBODYS_FAULT], ids=repr)
def test_what_is_nobodys_fault_is_raised_as_it_is(error):
    expected = error in PLUGINS_FAULT
    assert of_machine(error) is not expected or isinstance(error, KeyboardInterrupt)
    with pytest.raises(PluginError if expected else type(error)), guard(__file__):
        raise error


# ---------------------------------------------------------------- processes of their own


def test_what_a_function_returns_comes_back_and_what_it_changes_does_not(user_file):
    path, _ = user_file
    changes = []
    assert isolated(lambda: changes.append(1) or {"seconds": 1.5, "name": "ä"}, path) == {"seconds": 1.5, "name": "ä"}
    assert changes == []


def test_a_kill_is_no_fault_of_the_code(user_file):
    path, scope = user_file
    with pytest.raises(MachineError, match=r"was killed .SIGKILL., perhaps because memory ran out"):
        isolated(lambda: scope["die"](signal.SIGKILL), path)


@pytest.mark.parametrize(("error", "kind"), [(ValueError("y"), ValueError), (KeyError("z"), RuntimeError)])
def test_other_errors_keep_their_kind(user_file, capfd, error, kind):
    def fail():
        raise error

    with pytest.raises(kind) as caught:
        isolated(fail, user_file[0])
    assert not isinstance(caught.value, PluginError)
    assert str(caught.value).startswith(str(error) if kind is type(error) else type(error).__name__)


@pytest.mark.parametrize("error", [MemoryError("mine"), RuntimeError("CUDA error: out of memory")])
def test_a_machine_at_its_end_is_told_with_the_place_and_is_no_result(user_file, capfd, error):
    path, scope = user_file
    with pytest.raises(MachineError, match=r"is full"):
        isolated(lambda: call_guarded(path, scope["ask"], error), path)
