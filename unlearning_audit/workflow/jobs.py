"""What every job does around its function: fill in arguments by name, and record what made an artifact."""

import inspect
import json
import os
import platform
import resource
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from unlearning_audit.artifacts import blocks
from unlearning_audit.artifacts.files import checksum, node_of, write_spec
from unlearning_audit.plugins import isolation
from unlearning_audit.workflow.versions import VERSIONS


def arguments_of(function: Callable, inputs: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """What of a job's ``inputs`` and ``values`` a function takes by name, and of ``**files`` all other inputs."""
    parameters = inspect.signature(function).parameters
    return {
        name: value for name, value in {**values, **inputs}.items()
        if name in parameters or ("files" in parameters and name in inputs)
    }  # fmt: skip


def record(
    path: str, stage: str, settings: dict, inputs: Iterable[str], outputs: Iterable[str], facts: dict, seconds: float
) -> None:
    """Write ``spec.json`` at ``path``: what made the ``outputs`` beside it, and at which cost. ``facts``: what the
    job's function returned. Peak memory is in MiB, of this process or of one that it made; of a fork, with all that it
    shares."""
    usage, child = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    used = time.process_time() + child.ru_utime + child.ru_stime
    artifacts = {Path(output).name: output for output in outputs}
    in_part = {name: blocks.checksums(output) for name, output in artifacts.items() if name == "logits.npz"}
    spec = {
        "stage": stage,
        "settings": json.loads(json.dumps(settings)),
        "inputs": sorted(map(str, inputs)),
        "node": node_of(path),
        "checksums": {name: checksum(output) for name, output in artifacts.items()},
        **({"blocks": in_part} if any(in_part.values()) else {}),
        "packages": VERSIONS,
        "python": platform.python_version(),
        "machine": {"cpus": os.cpu_count(), "processor": processor(), "device": facts.pop("device", "cpu")},
        "seconds": {"function": round(seconds, 3), "process": round(used, 3)},
        "peak_memory_mib": max(usage.ru_maxrss, child.ru_maxrss) // 1024,
        **({"remarks": isolation.REMARKS} if isolation.REMARKS else {}),
        **facts,
    }
    write_spec(path, spec)


def processor() -> str:
    """The processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
