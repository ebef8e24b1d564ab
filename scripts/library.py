"""Finds the library of this workflow, installed or not: in a clone, a container, or around an installed workflow."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(next(folder for folder in HERE.parents if (folder / "unlearning_audit" / "workflow").is_dir())))
