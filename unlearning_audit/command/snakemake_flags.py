"""Flags behind a study, which go to Snakemake: what it answers with a traceback or its whole usage is one sentence."""

from unlearning_audit.plugins import suggest

#: Flags of most runs. Snakemake, which takes seconds to import, is asked about others only.
USUAL = {
    "--cores", "--jobs", "--resources", "--config", "--dry-run", "--dryrun", "--keep-going", "--quiet", "--verbose",
    "--workflow-profile", "--profile", "--forceall", "--force", "--forcerun", "--rerun-incomplete", "--unlock",
}  # fmt: skip


def check(words: list[str]) -> None:
    """Raise ValueError for a flag that Snakemake does not have, and for a field inside another after --config."""
    _flags_exist(words)
    _changes_are_nested(words)


def _flags_exist(words: list[str]) -> None:
    flags = [word.partition("=")[0] for word in words if word.startswith("--") and word != "--"]
    if USUAL.issuperset(flags):
        return
    from snakemake.cli import get_argument_parser

    parser = get_argument_parser()
    valid = sorted({flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")})
    for flag in flags:
        if not any(name.startswith(flag) for name in valid):  # it takes what a flag begins with, too
            nearest = suggest.near(flag, valid)
            hint = f"did you mean {nearest}?" if nearest else "snakemake --help lists all that a run takes"
            raise ValueError(f"there is no flag {flag}; {hint}")


def _changes_are_nested(words: list[str]) -> None:
    """Refuse a field inside another by its path after --config, for which Snakemake has a traceback only."""
    in_config = False
    for word in words:
        in_config = word in ("--config", "-C") if word.startswith("-") else in_config
        path, equals, value = word.partition("=")
        first, *rest = path.split(".")
        if in_config and equals and rest:
            nested = "".join(f"{{{name}: " for name in rest) + value + "}" * len(rest)
            raise ValueError(f"--config {word}: a field inside another is given in braces, --config '{first}={nested}'")
