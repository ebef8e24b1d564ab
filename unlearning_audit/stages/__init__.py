"""Score, compare and show: each module has a function of its name, which reads files, calls the library and writes
files."""

import runpy
from collections.abc import Callable
from typing import Any

from unlearning_audit.plugins import source


def function_of(stage: str) -> Callable[..., Any]:
    """Return the function of a stage, which a file of the same name defines, here or among the scripts."""
    function: Callable[..., Any] = runpy.run_path(str(source.file_of_stage(stage)))[stage]
    return function
