"""Loaded by Snakemake before it reads a study, so that an error in the file is reported in one sentence.

A plugin is the only code of ours that Snakemake loads so early; which of its kinds it is does not matter. The library
is imported only where a file could not be read: a workflow's Snakefile brings a library of its own.
"""

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_logger_plugins.base import LogHandlerBase


def say_what_is_wrong_with_studies() -> None:
    """Let a file of --configfile that Snakemake cannot read end in our sentence about it: which line, and why.

    Reason: Snakemake reads these files before the Snakefile, and ends in a traceback for one that is missing, a folder
    or no text, and in words that name neither file nor line for one that is no YAML, empty or a list. What it can read
    is read by it as ever. Does nothing where Snakemake has no such function.
    """
    from snakemake.settings import types

    by_itself = getattr(types, "load_configfile", None)
    if by_itself is None:
        return

    def load_configfile(configpath):
        try:
            return by_itself(configpath)
        except Exception as error:
            raise WorkflowError(_sentence(configpath) or error) from None

    types.load_configfile = load_configfile


def _sentence(path) -> str:
    """What is wrong with a study's file; empty if nothing is."""
    from unlearning_audit.study import configfile

    try:
        configfile.load([path])
    except ValueError as error:
        return str(error)
    return ""


class LogHandler(LogHandlerBase):
    """A handler that logs nothing: Snakemake demands one of every such plugin."""

    writes_to_stream = writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def emit(self, record) -> None:
        """Nothing is done with ``record``."""


say_what_is_wrong_with_studies()
