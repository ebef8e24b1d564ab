"""Calls a script's function with the values that its rule names, and records time and memory in spec.json."""

import inspect
import json
import logging
import os
import platform
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import library  # noqa: F401 (the library is found by it)

from unlearning_audit.artifacts import blocks, folders
from unlearning_audit.artifacts.files import checksum, node_of, seal, unwritable, write_spec
from unlearning_audit.plugins import isolation
from unlearning_audit.plugins.guard import MachineError, of_machine
from unlearning_audit.workflow.versions import VERSIONS


def script(function: Callable) -> Callable:
    """Run ``function`` if Snakemake started this script, filling each argument by name.

    Names are looked up in the rule's input, output, params and wildcards; ``**files`` takes all other inputs. A user's
    files must hold what they held when the run was planned. An error the user can mend (a ValueError) ends the job with
    its one sentence; the traceback is in the log. If the rule has an output ``spec``, it is written last: settings,
    inputs, checksums of the other outputs, package versions, device, seconds, memory, and what the function returned.
    Without one, a seal beside each output holds its checksum.
    """
    job = getattr(sys.modules["__main__"], "snakemake", None)
    if job is None or function.__module__ != "__main__":
        return function
    try:
        log = open(job.log[0], "w", buffering=1) if job.log else sys.stderr  # noqa: SIM115 (open until the process ends)
    except OSError as error:
        print(f"\n{job.rule}: {unwritable(job.log[0], error)}\n", file=sys.stderr, flush=True)
        sys.exit(1)
    sys.stdout = sys.stderr = log
    # By force, for libraries that were imported may have spoken first.
    logging.basicConfig(level=logging.INFO, stream=log, format="%(asctime)s %(message)s", force=True)
    values = dict(job.wildcards.items()) | dict(job.params.items()) | dict(job.output.items())
    arguments = arguments_of(function, dict(job.input.items()), values)
    started, used = time.perf_counter(), time.process_time()
    try:
        of_the_past(job.input)
        folders.unchanged(job.params.get("place", {}).get("contents", {}))
        returned = function(**arguments)
        seconds = time.perf_counter() - started
        logging.info("%s took %.3f s, %.3f s of a processor", job.rule, seconds, time.process_time() - used)
        if "spec" in job.output.keys():  # noqa: SIM118 (not a dict)
            write_spec(job.output.spec, spec(job, returned or {}, seconds))
        else:
            for path in job.output:
                seal(path)
    except Exception as error:
        expected = isinstance(error, ValueError)
        with suppress(OSError):  # the disk may be full
            traceback.print_exc(file=log)
        # The log may never be seen; the sentence belongs on the terminal as well.
        machine = isinstance(error, MachineError) or of_machine(error)
        cause = "a fault of the machine; more" if machine else "a defect; traceback"
        sentence = str(error) if expected else f"{type(error).__name__}: {error}"
        if machine or not expected:
            sentence += f" ({cause} in {job.log[0]})"
        print(f"\n{job.rule}: {sentence}\n", file=sys.__stderr__, flush=True)
        sys.exit(1)
    return function


def arguments_of(function: Callable, inputs: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """What of a job's ``inputs`` and ``values`` a function takes by name, and of ``**files`` all other inputs."""
    parameters = inspect.signature(function).parameters
    return {
        name: value for name, value in {**values, **inputs}.items()
        if name in parameters or ("files" in parameters and name in inputs)
    }  # fmt: skip


def of_the_past(paths: Iterable[str]) -> None:
    """Raise ValueError for an input from the future: its result would be older, and Snakemake would end the run."""
    for path in paths:
        date = Path(path).stat().st_mtime if Path(path).exists() else 0
        if date > time.time() + FUTURE:
            day = time.strftime("%Y-%m-%d", time.localtime(date))
            raise ValueError(f"{path}: this file is dated {day}, in the future; set the clock right, or: touch {path}")


#: Seconds by which the clocks of two machines may differ.
FUTURE = 3600


def spec(job, facts: dict, seconds: float) -> dict:
    """What made an artifact, and at which cost: JSON values only. Peak memory is in MiB, of this process or of one that
    it made; of a fork, with all that it shares."""
    usage, child = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    used = time.process_time() + child.ru_utime + child.ru_stime
    artifacts = {Path(path).name: path for path in job.output if path != job.output.spec}
    in_part = {name: blocks.checksums(path) for name, path in artifacts.items() if name == "logits.npz"}
    return {
        "stage": job.rule,
        "settings": json.loads(json.dumps(job.params.get("settings", {}))),
        "inputs": sorted(str(path) for path in job.input),
        "node": node_of(job.output.spec),
        "checksums": {name: checksum(path) for name, path in artifacts.items()},
        **({"blocks": in_part} if any(in_part.values()) else {}),
        "packages": VERSIONS,
        "python": platform.python_version(),
        "machine": {"cpus": os.cpu_count(), "processor": processor(), "device": facts.pop("device", "cpu")},
        "seconds": {"function": round(seconds, 3), "process": round(used, 3)},
        "peak_memory_mib": max(usage.ru_maxrss, child.ru_maxrss) // 1024,
        **({"remarks": isolation.REMARKS} if isolation.REMARKS else {}),
        **facts,
    }


def processor() -> str:
    """The processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
