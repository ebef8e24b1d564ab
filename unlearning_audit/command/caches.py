"""Caches of libraries go elsewhere where the home folder cannot be written."""

import os
from pathlib import Path


def environment() -> dict[str, str]:
    """This process's environment; with caches below .snakemake/ here if the home folder takes none."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(home).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if writable:
        return dict(os.environ)
    cache = Path.cwd() / ".snakemake" / "cache"
    return {**os.environ, "XDG_CACHE_HOME": str(cache), "MPLCONFIGDIR": str(cache / "matplotlib")}
