"""Find the library of this workflow, installed or not: in a clone, in a container, or around an installed workflow."""

import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
LIBRARY = next(folder for folder in SCRIPTS.parents if (folder / "unlearning_audit" / "workflow").is_dir())
sys.path.insert(0, str(LIBRARY))
