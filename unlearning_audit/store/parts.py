"""Parts of files: the results of one attack or one metric. A part that exists in a file about the same models is not
computed again."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from unlearning_audit.store.files import ArtifactError, spec_of


def beside(folder: Path, keys: Mapping[str, str]) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Find results of attacks or metrics that earlier jobs wrote: return name → the folder that holds its results, and
    what the spec.json in this folder says of them.

    Names without results are left out, and folders whose spec cannot be read.

    Parameters
    ----------
    folder
        The folder of the present job, whose name ends with a hyphen and the job's key. The folders beside it are
        searched that have the same name with any key.
    keys
        Name of each attack or metric → the key of its results.
    """
    names = {key: name for name, key in keys.items()}
    results: dict[str, tuple[Path, dict[str, Any]]] = {}
    for spec in sorted(folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*/spec.json")):
        with suppress(ArtifactError):
            parts = spec_of(spec).get("parts", {})
            results |= {names[key]: (spec.parent, part) for key, part in parts.items() if key in names}
    return results
