"""What one attack or one metric says is a part of a file; found by its key in files about the same models, it is not
computed twice."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from unlearning_audit.store.files import ArtifactError, record_of


def beside(folder: Path, keys: Mapping[str, str]) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Name → where a part with its key lies, in a folder of the same label as this one, and what its record says; of
    parts that are not there, nothing. ``keys``: name → key."""
    names = {key: name for name, key in keys.items()}
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for spec in sorted(folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*/spec.json")):
        with suppress(ArtifactError):
            parts = record_of(spec).get("parts", {})
            found |= {names[key]: (spec.parent, part) for key, part in parts.items() if key in names}
    return found
