"""Measure whether a model really forgot: `audit` for arrays in memory, the command ``audit``, and the library of the
workflow."""

from importlib import import_module
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

#: The workflow's files (Snakefile, rules, scripts, …): inside an installed package, or around this folder in a clone.
ROOT = _PACKAGE / "pipeline" if (_PACKAGE / "pipeline").is_dir() else _PACKAGE.parent

__all__ = ["ROOT", "Audit", "audit"]


def __getattr__(name: str) -> object:
    # Jobs import the library a thousand times, and none of them needs the call for notebooks.
    if name in ("Audit", "audit"):
        return getattr(import_module("unlearning_audit.command.arrays"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
