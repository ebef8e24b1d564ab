"""Define the command ``audit``: its subcommands, and what each calls."""

import json
import sys
import webbrowser
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

from unlearning_audit import ROOT
from unlearning_audit.command import child

#: The study of a command that does not name one.
DEFAULT = str(ROOT / "config.yaml")

#: Options with which only Snakemake's own output is shown.
OUTPUT_OF_SNAKEMAKE = {"--verbose", "-n", "--dry-run", "--dryrun", "--unlock"}

app = typer.Typer(
    name="audit", add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip

#: Groups of commands in the help.
AUDIT, OWN, RESULTS, MACHINE = "Audit", "Your own files", "Finished studies", "This machine"

#: Context settings of commands whose further words are options of Snakemake.
PASSED_ON = {"ignore_unknown_options": True, "allow_interspersed_args": True}

Words = Annotated[list[str] | None, typer.Argument(metavar="[STUDY] [SNAKEMAKE'S OPTIONS]", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="print the result as JSON, for programs")]
Study = Annotated[str, typer.Argument(help="a study; the default study if left out", show_default=False)]


def main(arguments: list[str] | None = None) -> None:
    """Run the command. An error that a user can mend ends it with status 1 and one sentence."""
    try:
        app(arguments, prog_name="audit")
    except (ValueError, OSError) as error:
        sys.exit(f"audit: {error}")


@app.callback(invoke_without_command=True)
def audit(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Say which versions are installed.")] = False,
) -> None:
    """Audit whether a model really forgot: your own methods, logits, and other tools' result files."""
    if version:
        print(_version())
    elif context.invoked_subcommand is None:
        print(context.get_help())


@app.command(rich_help_panel=AUDIT, context_settings=PASSED_ON, epilog="audit run mine.yaml --cores 8")
def run(words: Words = None) -> None:
    """Run a study. What follows the study goes to Snakemake."""
    file, further = study_of(words)
    plan = planned(file)
    from unlearning_audit.report import ending

    folder = Path("results", plan.study.name)
    before = _times(folder)
    status = snakemake(file, further)
    has_target = further[:1] and not further[0].startswith("-")
    # The last job of a run shows the answer. If all results were there, no job ran, and it is shown here, unless the
    # user asked for one target only, or for what Snakemake prints.
    if not status and not has_target and not OUTPUT_OF_SNAKEMAKE & set(further) and _times(folder) == before:
        ending.show(plan.study.name, "results", sys.stderr)
    raise typer.Exit(status)


@app.command("read", rich_help_panel=AUDIT, epilog="audit read saves/eval --retrain saves/retrain99")
def read_(
    paths: Annotated[
        list[str] | None, typer.Argument(help="result files, or folders that hold some at any depth")
    ] = None,
    retrain: Annotated[list[str], typer.Option(help="results of a retrained model, FILE[:NAME]; may be repeated")] = [],  # noqa: B006
    none: Annotated[list[str], typer.Option(help="results of the model before unlearning; may be repeated")] = [],  # noqa: B006
    target: Annotated[list[str], typer.Option(help="logits (.npy) instead of result files; may be repeated")] = [],  # noqa: B006
    labels: Annotated[str, typer.Option(help="with --target: the class of every sample, .npy")] = "",
    heldout: Annotated[str, typer.Option(help="with --target: which samples no model saw, .npy of true or false")] = "",
    no_retrain: Annotated[bool, typer.Option("--no-retrain", help="continue without any retrained model")] = False,
    reader: Annotated[str, typer.Option(help="the only format that is looked for, or the file of your reader")] = "",
    columns: Annotated[list[str], typer.Option(help="WHAT=NAME of a table's column; may be repeated")] = [],  # noqa: B006
    retrain_spread: Annotated[
        list[str], typer.Option(help="NAME=SD, standard deviation of retrained models by a metric; may be repeated")
    ] = [],  # noqa: B006
    roles: Annotated[str, typer.Option(help="the table of roles, roles.csv, that you edited")] = "",
    study: Annotated[str, typer.Option(help="write the study to this file")] = "read.yaml",
    only_write: Annotated[bool, typer.Option("--only-write", help="write the study and its files, no report")] = False,
    as_json: Json = False,
) -> None:
    """Audit result files of other tools: find out what they are, write a study, make its report."""
    if bool(paths) == bool(target):
        raise ValueError("audit read: give result files or folders, or logits with --target, --retrain and --labels")
    from unlearning_audit.command import read

    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        if target:
            file = read.write_logits(target, retrain, none, labels, heldout, study)
        else:
            file = read.write_study(
                paths or [], retrain=retrain, none=none, alone=no_retrain, reader=reader, columns=columns, roles=roles,
                study=study, spread=retrain_spread,
            )  # fmt: skip
        page = None if only_write else read.audit(file)
    if as_json:
        print(json.dumps(read.json_values(file, page)))


@app.command("try", rich_help_panel=OWN, epilog="audit try repo/unlearn.py --study mine.yaml --set function=forget")
def try_(
    file: str,
    study: Annotated[str, typer.Option(help="give a method, model, source or signal this study's data and model")] = "",
    scenario: Annotated[str, typer.Option(help="which scenario of the study; by default the first")] = "",
    on: Annotated[str, typer.Option(help="of a reader: the result file or folder that it reads")] = "",
    fields: Annotated[list[str], typer.Option("--set", help="FIELD=VALUE, the file's option; may be repeated")] = [],  # noqa: B006
) -> None:
    """Run a file of any kind on something small, or on a study's data and model."""
    import yaml

    from unlearning_audit.command import tiny
    from unlearning_audit.plugins import registry
    from unlearning_audit.study import configfile, expand
    from unlearning_audit.workflow import trial

    values: dict[str, Any] = {}
    setting = None
    if study:
        plan = planned(study)
        values, setting = trial.fields(plan, file, scenario), trial.setting(plan, scenario)
    for text in fields:
        path, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set {text}: give it as FIELD=VALUE, such as --set options.lr=0.1")
        values = configfile.update(values, expand.nested(path.split("."), yaml.safe_load(value)))
    kind = trial.kind(file, values.get("function", ""))
    if kind == "readers":
        from unlearning_audit.command import read

        print(read.attempt(file, on, values))
    elif kind not in tiny.KINDS:
        print(trial.attempt(file, setting, values))
    elif study:
        tried = f"{registry.KINDS[kind].with_article} is tried in a study of seconds"
        raise ValueError(f"--study: {tried}; to use {file} in {study}, name the file there, then audit run {study}")
    else:
        print(tiny.attempt(file, values))


@app.command("new", rich_help_panel=OWN, epilog="audit new mine.yaml --with my_method.py")
def new_(
    names: Annotated[list[str], typer.Argument(metavar="FILE")],
    kind: Annotated[str, typer.Option(help="what a .py file is; by default a method")] = "",
    files: Annotated[list[str], typer.Option("--with", help="your FILE[:FUNCTION], one or several")] = [],  # noqa: B006
) -> None:
    """Write a study, or a file of any kind, to start from: a method, an attack, a metric, a model, a reader, …"""
    from unlearning_audit.command.new import KINDS, write
    from unlearning_audit.plugins.suggest import unknown

    if kind and kind not in KINDS:
        raise ValueError(f"--kind: {unknown(kind, KINDS, f'kind {kind!r}')}")
    # Names beside that of the study are a user's files, as if each had --with.
    file = next((name for name in names if name.endswith((".yaml", ".yml"))), names[0])
    names.remove(file)
    print(write(file, kind, [*files, *names]))


@app.command(rich_help_panel=OWN, epilog="audit check mine.yaml")
def check(file: Study = DEFAULT, as_json: Json = False) -> None:
    """Say what is wrong with a study or a file of your own, or what a run would make."""
    if file.endswith(".py"):
        from unlearning_audit.plugins import registry
        from unlearning_audit.study import checks
        from unlearning_audit.study.choice import Plugin
        from unlearning_audit.workflow import trial

        kind = trial.kind(file)
        if not registry.has_published_function(kind, Path(file)):
            registry.load(kind, kind, file)  # raises if it is incomplete or cannot be imported
        if problem := checks.unknown_need(Plugin(kind, kind, file)):
            raise ValueError(f"{file}: {problem}")
        valid = f"{file} is valid: {registry.KINDS[kind].with_article}. Next: audit try {file}"
        print(json.dumps({"file": file, "kind": kind}) if as_json else valid)
        return
    plan = planned(file)
    from unlearning_audit.report import lookup, naming, outlook
    from unlearning_audit.workflow import announcement

    study = plan.study
    missing = [node for node in plan.all() if not node.within and not Path(node.outputs["spec"]).exists()]
    jobs, to_make = announcement.jobs(plan, plan.all()), announcement.jobs(plan, missing)
    # `jobs` always counts the jobs of tables, figures and the report; in a finished study they are done.
    if not missing and Path("results", study.name, "report.html").exists():
        to_make = {}
    scenarios = [
        {"scenario": s.name, "protocol": s.protocol.name, "methods": list(s.methods), "attacks": list(s.attacks)}
        for s in {s.name: s for s in study.scenarios}.values()  # one of all settings of a scenario
    ]
    prospect = outlook.predict(plan)
    if as_json:
        facts = {"file": file, "study": study.name, "scenarios": scenarios, "jobs": jobs,
                 "to_make": to_make, "models": plan.models, "outlook": prospect}  # fmt: skip
        print(json.dumps(lookup.finite(facts)))
        return
    print(f"{file} is valid: study {study.name}, {naming.count(len(scenarios), 'scenario')}.")
    for s in scenarios:
        attacks = f", {naming.count(len(s['attacks']), 'attack')}" if s["attacks"] else ""
        print(f"  {s['scenario']}: {s['protocol']} with {', '.join(s['methods'])}{attacks}")
    models = f", up to {naming.count(plan.models, 'model')} trained or unlearned" if plan.models else ""
    count, rest = sum(jobs.values()), sum(to_make.values())
    print(f"{naming.count(count, 'job')} ({_by_stage(jobs)}), {count - rest} of them done{models}.")
    if 0 < rest < count:
        print(f"To be made: {_by_stage(to_make)}.")
    print(outlook.text(prospect))


@app.command(rich_help_panel=RESULTS, epilog="audit report mine.yaml --open")
def report(
    file: Study = DEFAULT,
    browser: Annotated[bool, typer.Option("--open", help="show the page in a browser")] = False,
    as_dossier: Annotated[bool, typer.Option("--dossier", help="write two pages that can be signed")] = False,
    as_json: Json = False,
) -> None:
    """Show the answer of a finished study again, and where its page lies."""
    from unlearning_audit.report import ending

    plan = planned(file)
    page = Path("results", plan.study.name, "report.html")
    if not page.exists():
        raise ValueError(f"{page}: there is no report yet; audit run {file} makes it")
    if as_dossier:
        from unlearning_audit.report import dossier

        page = dossier.write(file, plan, page)
        print(f"Dossier: {page}")
    elif as_json:
        print(page.with_name("summary.json").read_text(encoding="utf-8"))
    else:
        ending.show(plan.study.name, "results", sys.stdout)
    if browser and not webbrowser.open(page.resolve().as_uri()):
        print("No browser could be started; open the file in one.")


@app.command("compare", rich_help_panel=RESULTS, epilog="audit compare results/seed1 results/seed2")
def compare_(
    folders: Annotated[list[str], typer.Argument(help="finished studies, such as results/mine")],
    csv: Annotated[str, typer.Option(help="write the table to this file")] = "compare.csv",
) -> None:
    """Say which verdicts differ between finished studies, why, and whether they rank methods alike."""
    from unlearning_audit.report import compare, ending
    from unlearning_audit.store import tables

    if len(folders) < 2:
        raise ValueError("compare: give at least two folders, such as audit compare results/a results/b")
    studies = [compare.read(folder) for folder in folders]
    shared = compare.compare(studies)
    tables.write_rows(csv, shared, ("method", *compare.names(studies), "why"))
    print(compare.text(studies, shared, ending.terminal_width()))
    print(f"Table: {csv}")


@app.command(rich_help_panel=RESULTS, epilog="audit why before.yaml mine.yaml")
def why(
    file: Study = DEFAULT,
    other: Annotated[str, typer.Argument(help="the study as it was edited", show_default=False)] = "",
    since: Annotated[str, typer.Option(help="a commit: show what the code's changes since then make anew")] = "",
) -> None:
    """Show the traceback of each failure; or say what an edit computes again, and why."""
    from unlearning_audit.command import edits, tracebacks

    if other and since:
        raise ValueError("audit why: give a second study, or --since with a commit")
    if not (other or since):
        print("\n\n".join(tracebacks.of(planned(file))) or f"Nothing of {file} failed.")
        return
    before = edits.listed_at(file, since) if since else edits.listed(file)
    if since:
        advice = f"To see what an edit of the study changes: audit why before.yaml {file}"
        print(f"The code of {since} is compared with the present code, both with the present {file}. {advice}")
    print(*edits.lines(before, edits.listed(other or file)), sep="\n")


@app.command(rich_help_panel=MACHINE, epilog="audit forecast mine.yaml")
def forecast(file: Study = DEFAULT, as_json: Json = False) -> None:
    """Estimate hours from jobs on record, and what the study will be able to find."""
    from unlearning_audit.report import lookup, outlook

    prospect = outlook.predict(planned(file))
    print(json.dumps(lookup.finite(prospect)) if as_json else outlook.text(prospect))


@app.command(rich_help_panel=MACHINE, context_settings=PASSED_ON, epilog="audit unlock mine.yaml")
def unlock(words: Words = None) -> None:
    """Remove the lock of a run that was killed."""
    file, further = study_of(words)
    planned(file)  # raises one sentence if the study is wrong, before Snakemake reads it
    raise typer.Exit(snakemake(file, ["--unlock", *further]))


@app.command("gpu", rich_help_panel=MACHINE)
def gpu_() -> None:
    """Compare what this machine's GPU computes with its processor; two minutes."""
    from unlearning_audit.command.gpu import run

    raise typer.Exit(run())


def study_of(words: list[str] | None) -> tuple[str, list[str]]:
    """Split the words of a command into the study and all other words. The study is the first YAML file or, if there is
    none, the first word, unless that is an option; without a study, `DEFAULT`.

    >>> study_of(["--cores", "8", "mine.yaml"])
    ('mine.yaml', ['--cores', '8'])
    """
    rest = list(words or [])
    studies = [word for word in rest if word.endswith((".yaml", ".yml")) and not word.startswith("-")]
    candidates = [*studies, *(word for word in rest[:1] if not word.startswith("-"))]
    for study in candidates[:1]:
        rest.remove(study)
    return next(iter(candidates), DEFAULT), rest


def planned(file: str) -> Any:
    """Read a study's file, check it, and return its plan: all jobs and their files. Raises ValueError with one sentence
    on what is wrong, and with the line of the file if it is known."""
    from unlearning_audit.study import configfile, messages, reading

    config, origin = reading.load([file])
    try:
        study = reading.read(config, origin)
    except messages.StudyError as error:
        line = configfile.line(file, getattr(error.__cause__, "path", ()))  # the cause still has the field's path
        raise ValueError(f"{error} (line {line})" if line else str(error)) from None
    from unlearning_audit.workflow import plan

    return plan.make(study)


def snakemake(file: str, further: list[str]) -> int:
    """Run Snakemake on a study and return its exit status.

    Without an option for cores or a profile, all cores are used. --verbose prints the commands of jobs.

    Parameters
    ----------
    further
        Targets, then options of Snakemake.
    """
    sets_cores = any(word.startswith(("--cores", "-c", "--workflow-profile", "--profile")) for word in further)
    cores = [] if sets_cores else ["--cores", "all"]
    # The workflow reads config.yaml by itself.
    study = ["--configfile", file] if Path(file).resolve() != ROOT / "config.yaml" else []
    targets = [word for word in further[:1] if not word.startswith("-")]
    rest = ["--printshellcmds" if word == "--verbose" else word for word in further[len(targets) :]]
    return child.run([*targets, *study, *cores, *rest])


def _by_stage(counts: dict[str, int]) -> str:
    """Return numbers of jobs as text, such as "4 train, 8 unlearn, 9 for tables, figures and the report".

    ``counts``: Snakemake rule → number of its jobs. Rules that are no stages of the pipeline make tables, figures and
    the report.
    """
    from unlearning_audit.study.schema import STAGES

    of_stages = {rule: count for rule, count in counts.items() if rule in STAGES}
    others = sum(counts.values()) - sum(of_stages.values())
    parts = [f"{count} {rule}" for rule, count in of_stages.items()]
    return ", ".join([*parts, f"{others} for tables, figures and the report"])


def _times(folder: Path) -> dict[Path, int]:
    """Return the modification time of each file in a folder, in nanoseconds."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def _version() -> str:
    """Return a text with the versions of the package, Python, snakemake and torch, on which results depend most."""
    import platform

    from unlearning_audit.workflow.versions import installed

    names = ("unlearning-audit", "snakemake", "torch")
    package, *dependencies = (f"{name} {installed(name) or 'not installed'}" for name in names)
    return f"{package} (Python {platform.python_version()}, {', '.join(dependencies)})"
