"""What every job does around its function: fill in arguments by name, and record how an artifact was made."""

import inspect
import json
import logging
import os
import platform
import re
import resource
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import unlearning_audit
from unlearning_audit.store import folders
from unlearning_audit.store.files import ArtifactError, Json, checksum, node_of, paths_in, verify, write_spec
from unlearning_audit.workflow.versions import VERSIONS

#: The task of making one node of the plan: settings decide the results besides the inputs, and the place does not.
TASK = ("stage", "settings", "inputs", "outputs", "place")


def file_of(stage: str) -> Path:
    """Return the file that defines the function of a ``stage``: its script, or a file of the library's stages."""
    script = unlearning_audit.ROOT / "scripts" / f"{stage}.py"
    return script if script.exists() else Path(__file__).parents[1] / "stages" / script.name


def function_of(stage: str) -> Callable[..., Any]:
    """Return the function of a stage, which has the stage's name."""
    loader = SourceFileLoader(f"unlearning_stage_{stage}", str(file_of(stage)))
    module = ModuleType(loader.name)
    loader.exec_module(module)
    function: Callable[..., Any] = getattr(module, stage)
    return function


def arguments_of(function: Callable[..., Any], inputs: Mapping[str, Any], values: Mapping[str, Any]) -> Json:
    """Return the arguments, by name, that a job's function takes from the job's ``inputs`` (role of an input →
    files) and from other ``values``. An input and a value of the same name are one argument, the input.

    A function with a parameter ``**files`` gets all inputs, and one with ``**shown`` all values, whatever their names.
    """
    parameters = inspect.signature(function).parameters
    values = {name: value for name, value in values.items() if name in parameters or "shown" in parameters}
    return values | {name: files for name, files in inputs.items() if name in parameters or "files" in parameters}


def run_and_record(task: Json, used: float = 0.0) -> Json:
    """Call the function of a stage, and return the record for its ``spec.json``: how its other files were made, and at
    which cost, as JSON values.

    The function gets inputs, outputs, ``settings`` and ``place`` by name. What it returns is added to the record,
    except ``device``, which is put under ``machine``. The peak memory, in MiB, is the larger of the peaks of this
    process and of its children. The peak of a fork includes memory that it shares with the process from which it was
    forked.

    Parameters
    ----------
    task
        The task of making a node of the plan (`TASK`). In its ``place``, "contents" are the digests of the user's
        files, which must not have changed since the plan was made.
    used
        Processor seconds (`process_time`) of this process before the job.
    """
    stage, settings, inputs, outputs, place = (task[name] for name in TASK)
    function = function_of(stage)
    folders.refuse_changes(place.get("contents", {}))
    started = time.perf_counter()
    facts = function(**arguments_of(function, inputs, {**outputs, "settings": settings, "place": place})) or {}
    seconds, spent = time.perf_counter() - started, process_time() - used
    logging.info("%s took %.3f s, %.3f s of a processor", stage, seconds, spent)
    artifacts = {Path(path).name: path for role, path in outputs.items() if role != "spec"}
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "stage": stage,
        "settings": json.loads(json.dumps(settings)),
        "inputs": sorted(map(str, paths_in(inputs))),
        "node": node_of(outputs["spec"]),
        "checksums": {name: checksum(path) for name, path in artifacts.items()},
        "packages": VERSIONS,
        "python": platform.python_version(),
        "machine": {"cpus": os.cpu_count(), "processor": processor(), "device": facts.pop("device", "cpu")},
        "seconds": {"function": round(seconds, 3), "process": round(spent, 3)},
        "peak_memory_mib": max(usage.ru_maxrss for usage in usages) // 1024,  # the system counts KiB
        **facts,
    }


def make_part(part: Json) -> None:
    """Make the files of one node of the plan, and write its ``spec.json``, inside the job that Snakemake runs for
    another node.

    So a job that makes models also computes the signals that are read from them, without jobs of their own. Nothing is
    done if all files exist and are intact.

    ``part``: the task of making the node (`TASK`). Its ``spec.json`` is the last of the outputs.
    """
    *files, record = part["outputs"].values()
    with suppress(ArtifactError):  # a missing or damaged file is made anew
        if Path(record).exists():
            for path in files:
                verify(path)
            return
    write_spec(record, run_and_record(part, used=process_time()))


def process_time() -> float:
    """Return the processor seconds that this process and its children have used."""
    child = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + child.ru_utime + child.ru_stime


def processor() -> str:
    """Return the processor's name: from /proc/cpuinfo, or, if that file does not state it, as Python knows it. If
    neither knows the name, return the kind of machine, such as "x86_64"."""
    facts = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", facts.read_text() if facts.exists() else "")
    return found[1] if found else platform.processor() or platform.machine()
