"""Snakemake for a command that waits for it: as ``python -m snakemake`` starts it, but signals end it in order while it
still imports, and it ends when the command was killed."""

import signal
import sys

from unlearning_audit import ROOT
from unlearning_audit.plugins import source
from unlearning_audit.plugins.isolation import end_with_parent
from unlearning_audit.workflow import interruption, lossy

#: What Snakemake's arguments follow.
COMMAND = [
    sys.executable, "-c", f"{source.FIND}from unlearning_audit.workflow import launch; launch.snakemake()",
    "--snakefile", str(ROOT / "Snakefile"),
]  # fmt: skip


def snakemake() -> None:
    """Be Snakemake, with this process's arguments."""
    sys.path.remove(str(source.SCRIPTS))  # whose names are those of other modules as well
    interruption.heed()
    end_with_parent(signal.SIGTERM)
    lossy.standard()
    try:
        from snakemake.cli import main
    except ModuleNotFoundError:
        sys.exit('Snakemake is not installed here; install the workflow: pip install "unlearning-audit[workflow]"')
    sys.argv[0] = "snakemake"
    main()
