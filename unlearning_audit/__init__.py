"""Measure whether a model really forgot: the command ``audit``, and `audit` for arrays in memory.

Importing this makes the library ``unlearning`` importable, too.
"""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent

#: The workflow's files: inside an installed package, or around this folder in a clone.
ROOT = _HERE / "workflow" if (_HERE / "workflow").is_dir() else _HERE.parent

# At the end, so that no file of the user's is hidden by a script of ours.
if str(ROOT / "scripts") not in sys.path:
    sys.path.append(str(ROOT / "scripts"))

from unlearning_audit.arrays import Audit, audit  # noqa: E402 (it imports the library)

__all__ = ["ROOT", "Audit", "audit"]
