"""Audit whether a model really forgot: your own methods, logits, and other tools' result files."""

import argparse
import subprocess
import sys
import webbrowser
from collections import Counter
from pathlib import Path

from unlearning_audit import ROOT
from unlearning_audit.command import (
    caches,
    child,
    compare,
    gpu,
    read,
    snakemake_flags,
    starts,
    tiny,
    tracebacks,
)
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.suggest import unknown
from unlearning_audit.workflow import lossy

#: Command → (what it does, examples).
COMMANDS = {
    "run": (
        "make everything that a study asks for; what follows the study goes to snakemake",
        "audit run mine.yaml\naudit run mine.yaml --cores 8\naudit run mine.yaml --config only=[noisy]",
    ),
    "check": (
        "say what is wrong with a study, or what would be made; of a file of your own, whether it can be used",
        "audit check mine.yaml\naudit check my_reader.py",
    ),
    "new": (
        "write a study, or a file of any kind, to start from: a method, an attack, a metric, a model, a reader, …",
        "audit new my_method.py\naudit new my_attack.py --kind attack\naudit new mine.yaml --with my_method.py",
    ),
    "try": (
        "run a file of any kind on something small, or on a study's data and model, with all that a study checks",
        "audit try my_method.py\naudit try repo/unlearn.py --study mine.yaml\naudit try f.py --set function=forget\n"
        "audit try my_reader.py --on results",
    ),
    "why": (
        "say why something failed, with the calls that led there; or what an edit makes anew, and through which field",
        "audit why mine.yaml\naudit why before.yaml mine.yaml\naudit why mine.yaml --since HEAD~3",
    ),
    "read": (
        "audit result files of other tools: find out what they are, write a study, make its report",
        "audit read saves/eval\naudit read losses.csv --retrain retrained.csv",
    ),
    "forecast": ("hours and disk, measured on this machine", "audit forecast mine.yaml"),
    "report": ("show the answer of a finished study again, and where its page lies", "audit report mine.yaml --open"),
    "gpu": ("compare this machine's GPU with its processor and measure its speed; two minutes", "audit gpu"),
    "compare": (
        "which verdicts differ between finished studies, why, and whether they rank methods alike",
        "audit compare results/seed1 results/seed2\naudit compare here/results/mine there/results/mine",
    ),
    "unlock": ("go on after a run that was killed", "audit unlock mine.yaml"),
}

#: Commands that take a study, and the one that they take if none is named.
OF_STUDIES = ("run", "check", "why", "forecast", "report", "unlock")
DEFAULT = str(ROOT / "config.yaml")

#: What follows a study where Snakemake's own output is wanted, or is all that there is.
OUTPUT_OF_SNAKEMAKE = {"--verbose", "-n", "--dry-run", "--dryrun", "--unlock", "forecast"}


def main(arguments: list[str] | None = None) -> None:
    """Entry point. Ends with 1 and one sentence for what a user can mend."""
    lossy.standard()
    words = sys.argv[1:] if arguments is None else arguments
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        sys.exit(f"audit: {unknown(words[0], COMMANDS, f'command {words[0]!r}')}")
    args, further = _parser().parse_known_args(_with_each(_with_study(words or ["--help"])))
    if further and args.command in ("check", "why", "new", "try", "read", "gpu", "compare"):
        sys.exit(f"audit: unknown argument {further[0]}; audit {args.command} --help shows all")
    try:
        snakemake_flags.check(further)
        code = globals()[f"_{args.command}"](args, further)
    except ValueError as error:
        sys.exit(f"audit: {error}")
    except KeyboardInterrupt:
        code = 130
    if problem := lossy.problem():
        sys.exit(f"audit: what it says cannot be written: {problem}")
    sys.exit(code)


def _with_study(words: list[str]) -> list[str]:
    """The words of a command with its study right behind it, where others come first: without that, 8 of "--cores 8"
    would be taken for one. It is the first that is called like a study, or else the default one."""
    command, *rest = words or [""]
    if command not in OF_STUDIES or not rest or not rest[0].startswith("-"):
        return words
    studies = [word for word in rest if word.endswith((".yaml", ".yml")) and not word.startswith("-")][:1]
    for word in studies:
        rest.remove(word)
    return [command, *(studies or [DEFAULT]), *rest]


def _with_each(words: list[str]) -> list[str]:
    """The words of ``audit new`` with --with before each of several files behind one; a study is none of them."""
    spread: list[str] = []
    is_list = False
    for word in words:
        if word.startswith("-") or word.endswith((".yaml", ".yml")):
            is_list = word == "--with"
        elif is_list and spread[-1] != "--with":
            spread.append("--with")
        spread.append(word)
    return spread if words[:1] == ["new"] else words


def _parser() -> argparse.ArgumentParser:
    described = argparse.RawDescriptionHelpFormatter
    all_examples = "\n".join(example for _, examples in COMMANDS.values() for example in examples.splitlines())
    parser = argparse.ArgumentParser(
        prog="audit", description=__doc__, epilog=f"examples:\n\n{all_examples}", formatter_class=described
    )
    parser.add_argument("--version", action="version", version=_version())
    parsers = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (summary, examples) in COMMANDS.items():
        command = parsers.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=f"examples:\n\n{examples}",
            formatter_class=described,
        )  # fmt: skip
        if name == "read":
            read.add_arguments(command)
        elif name == "compare":
            compare.add_arguments(command)
        elif name in ("new", "try"):
            command.add_argument("file")
        elif name != "gpu":
            command.add_argument("file", nargs="?", default=DEFAULT, help="a study; the default study if left out")
        if name == "why":
            command.add_argument("other", nargs="?", help="the study as it was edited: what is made anew, and why")
            command.add_argument(
                "--since", metavar="COMMIT", help="what the code makes anew that was edited since then"
            )
        if name == "report":
            command.add_argument("--open", action="store_true", help="show the page in a browser")
        if name == "try":
            command.add_argument(
                "--study", default="", help="try it on the data and model of this study, with its options"
            )
            command.add_argument("--scenario", default="", help="which of the study; default: the first")
            command.add_argument(
                "--on", default="", metavar="PATH", help="of a reader: the result file or folder that it reads"
            )
        if name == "try":
            command.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", dest="fields",
                             help="a field beside the file: --set function=forget --set options.lr=0.1")  # fmt: skip
        if name == "new":
            command.add_argument("--kind", choices=starts.KINDS, help="default: study for .yaml, method for .py")
            command.add_argument("--with", dest="files", action="append", default=[], metavar="FILE[:FUNCTION]",
                             help="files of yours, of any kind, that the new study uses; may be repeated")  # fmt: skip
    return parser


def _planned(file: str):
    """A study as it is written, and its plan. Raises ValueError with one sentence about what is wrong with the file."""
    from unlearning_audit.study import reading
    from unlearning_audit.workflow import plan

    config, origin = reading.load([file])
    return config, plan.make(reading.read(config, origin))


def _check(args: argparse.Namespace, further: list[str]) -> int:
    from unlearning_audit.display import outlook
    from unlearning_audit.study import checks
    from unlearning_audit.workflow import advice, rehearsal, trial

    if args.file.endswith(".py"):
        kind = trial.kind(args.file)
        if not registry.is_function(kind, Path(args.file), "unlearn"):
            registry.inspect(kind, trial.name_of(args.file), args.file)
        print(f"{args.file} is sound: {registry.KINDS[kind].with_article}. Next: audit try {args.file}")
        return 0
    config, plan = _planned(args.file)
    rehearsal.samples(plan, config)
    files, model_files = rehearsal.imports(plan, config), rehearsal.models(plan, config)
    state_dicts = rehearsal.checkpoints(plan, config)
    study, nodes = plan.study, [node for stage in plan.nodes.values() for node in stage.values()]
    missing = [node for node in nodes if not Path(node.outputs["spec"]).exists()]
    print(f"{args.file} is sound: study {study.name}, {_plural(len({s.name for s in study.scenarios}), 'scenario')}.")
    for scenario in {s.name: s for s in study.scenarios}.values():
        attacks = f", {_plural(len(scenario.attacks), 'attack')}" if scenario.attacks else ""
        print(f"  {scenario.name}: {scenario.protocol.name} with {', '.join(scenario.methods)}{attacks}")
    for kind, displays in (("tables", study.tables), ("figures", study.figures)):
        for name, display in displays.items():
            if remark := checks.without_numbers(kind, name, display, study.scenarios):
                print(f"  {remark}")
    models = f", up to {_plural(plan.models, 'model')} trained or unlearned" if plan.models else ""
    print(f"{_plural(len(nodes), 'job')} ({_by_stage(nodes)}), of which {len(nodes) - len(missing)} are done{models}.")
    if 0 < len(missing) < len(nodes):
        print(f"To be made: {_by_stage(missing)}.")
    for file in files:
        print(f"  {file} can be imported, with all that it needs.")
    for file in model_files:
        print(f"  {file}: a model was built, trained on one batch and asked, as it must be.")
    if state_dicts:
        print(f"  {_plural(state_dicts, 'state dict')} of the names and shapes of the model that the study names.")
    if remark := advice.slow_precision(plan):
        print(f"Slow: {remark}")
    print(outlook.text(plan, args.file))
    return 0


def _by_stage(nodes: list) -> str:
    return ", ".join(f"{count} {stage}" for stage, count in Counter(node.stage for node in nodes).items())


def _run(args: argparse.Namespace, further: list[str]) -> int:
    from unlearning_audit.display import ending
    from unlearning_audit.workflow import rehearsal

    config, plan = _planned(args.file)
    rehearsal.samples(plan, config)
    rehearsal.imports(plan, config)
    rehearsal.models(plan, config)
    rehearsal.checkpoints(plan, config)
    folder = Path("results", plan.study.name)
    before = _times(folder)
    code = _snakemake(args.file, further)
    targets = further[:1] and not further[0].startswith("-")
    if not code and not targets and not OUTPUT_OF_SNAKEMAKE & set(further) and _times(folder) == before:
        ending.show(plan.study.name, "results", sys.stderr)  # Snakemake calls nothing at the end of a run without jobs
    return code


def _times(folder: Path) -> dict[Path, int]:
    """When the files of a study were written, in nanoseconds."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def _read(args: argparse.Namespace, further: list[str]) -> int:
    file = read.write_study(args)
    if not args.only_write:
        read.audit(file)
    return 0


def _forecast(args: argparse.Namespace, further: list[str]) -> int:
    _planned(args.file)
    return _snakemake(args.file, ["forecast", *further])


def _report(args: argparse.Namespace, further: list[str]) -> int:
    from unlearning_audit.display import ending

    _, plan = _planned(args.file)
    page = Path("results", plan.study.name, "report.html")
    if not page.exists():
        raise ValueError(f"{page}: there is no report yet; audit run {args.file} makes it")
    ending.show(plan.study.name, "results", sys.stdout)
    if args.open and not webbrowser.open(page.resolve().as_uri()):
        print("No browser could be started here; open the file with one.")
    return 0


def _gpu(args: argparse.Namespace, further: list[str]) -> int:
    return gpu.run()


def _compare(args: argparse.Namespace, further: list[str]) -> int:
    return compare.run(args)


def _unlock(args: argparse.Namespace, further: list[str]) -> int:
    _planned(args.file)
    return _snakemake(args.file, ["--unlock", *further])


def _why(args: argparse.Namespace, further: list[str]) -> int:
    _, plan = _planned(args.file)
    compared = [args.other] if args.other else []
    compared += ["--since", args.since] if args.since else []
    if not compared:
        print("\n\n".join(tracebacks.of(plan)) or f"Nothing of {args.file} failed.")
        return 0
    command = [sys.executable, str(ROOT / "scripts" / "why.py"), args.file, *compared]
    return subprocess.run(command, check=False).returncode


def _new(args: argparse.Namespace, further: list[str]) -> int:
    """Raises ValueError for a file that is there, or of another kind."""
    from unlearning_audit.workflow import trial

    file, path = args.file, Path(args.file)
    kind = args.kind or {".yaml": "study", ".yml": "study", ".py": "method"}.get(path.suffix)
    if kind is None or (path.suffix == ".py") == (kind == "study"):
        raise ValueError(f"{file}: give the name of a study, such as mine.yaml, or of a method, such as my_method.py")
    if args.files and kind != "study":
        raise ValueError("--with: goes with a study, such as audit new mine.yaml --with my_method.py")
    if path.exists():
        raise ValueError(f"{file}: this file is there already; give another name")
    text, how = starts.KINDS[kind]
    room = {"study": "study", "function": "methods", "data": "data"}.get(kind, f"{kind}s")
    fields = {"file": file, "name": trial.name_of(file, room), "title": path.stem.replace("_", " ").capitalize()}
    if kind == "study":
        fields |= _lines(args.files)
    _write(path, text.format(**fields))
    if kind == "study":
        print(f"Wrote {file}. Next: audit check {file}, then audit run {file}")
        return 0
    if kind == "reader":
        print(f"Wrote {file}. Next: audit try {file} --on RESULTS, then audit read RESULTS --reader {file}")
        return 0
    print(
        f"Wrote {file}. Next: audit try {file}. A study names it {how.format(**fields)}; "
        f"audit new mine.yaml --with {file} writes one"
    )
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path}: could not be written ({error.strerror})") from None


def _lines(arguments: list[str]) -> dict[str, str]:
    """What a new study says of files of a user: lines of methods, attacks and metrics, and the model, the data and
    the protocol in place of ours."""
    import yaml

    from unlearning_audit.workflow import trial

    lines: dict[str, list[str]] = {"methods": [], "attacks": [], "metrics": []}
    choices = dict(starts.CHOICES)
    files = [(file, function) for file, _, function in (argument.partition(":") for argument in arguments)]
    for file, function in files:
        kind = trial.kind(file, function)
        name = trial.name_of(file, kind)
        if kind == "readers":
            raise ValueError(
                f"--with {file}: a study has the models that a reader has read; audit read RESULTS --reader {file} "
                "writes one, with RESULTS your files"
            )
        if kind in lines:
            also = f", function: {_scalar(function)}" if function else ""
            lines[kind].append(f"{name}: {{file: {_scalar(file)}{also}}}")
        else:
            choices[kind] = starts.OF_FILE[kind].format(name=name, file=_scalar(file))
            if kind == "models" and trial.takes_pictures(file):
                choices["data"] = choices["data"].replace("name: digits", "name: digits, images: true")
    attacked = True
    if "protocols" in {trial.kind(file, function) for file, function in files}:
        protocol = yaml.safe_load(choices["protocols"])
        attacked = registry.protocol(protocol["name"], protocol["file"]).attacked
    lines["methods"] = lines["methods"] or ["# mine: {file: my_method.py}    # audit new my_method.py writes one"]
    blocks = {field: "".join(f"    {line}\n" for line in entries) for field, entries in lines.items()}
    blocks["attacks"] = starts.ATTACKS + blocks["attacks"] if attacked else "  attacks: {}\n"
    blocks["metrics"] = f"  metrics:\n{blocks['metrics']}" if lines["metrics"] else ""
    return {**choices, **blocks}


def _scalar(text: str) -> str:
    """Text as YAML has it between braces, in quotes where it must be."""
    import yaml

    return yaml.safe_dump([text], default_flow_style=True, allow_unicode=True, width=1 << 20).strip()[1:-1]


def _try(args: argparse.Namespace, further: list[str]) -> int:
    from unlearning_audit.workflow import trial

    fields: dict = {}
    setting = None
    if args.study:
        from unlearning_audit.workflow import rehearsal

        _, plan = _planned(args.study)
        fields = rehearsal.fields(plan, args.file, args.scenario)
        setting = rehearsal.setting(plan, args.scenario)
    for text in args.fields:
        _set(fields, text)
    kind = trial.kind(args.file, fields.get("function", ""))
    if kind == "readers":
        print(read.attempt(args.file, args.on, fields))
    elif kind in ("metrics", "protocols"):
        if args.study:
            raise ValueError(
                f"--study: a metric or a protocol is tried in a study of seconds; to use {args.file} in {args.study},"
                f" name it there, and audit run {args.study}"
            )
        print(tiny.attempt(args.file, fields))
    else:
        print(trial.attempt(args.file, setting, fields))
    return 0


def _set(fields: dict, text: str) -> None:
    """Set "options.lr=0.1" among the fields. Raises ValueError for another form."""
    import yaml

    path, equals, value = text.partition("=")
    *above, last = path.split(".")
    if not equals or not all([*above, last]):
        raise ValueError(f"--set {text}: give it as FIELD=VALUE, such as --set options.lr=0.1")
    for part in above:
        fields = fields.setdefault(part, {})
        if not isinstance(fields, dict):
            raise ValueError(f"--set {text}: {part} was set to {fields}, which has no fields; leave one of the two out")
    try:
        fields[last] = yaml.safe_load(value)
    except yaml.YAMLError:
        raise ValueError(f"--set {text}: {value} is not YAML; put text with special characters in quotes") from None
    if path == "function" and not isinstance(fields[last], str):
        raise ValueError(f"--set {text}: give the name of a function of the file")


def _version() -> str:
    """The package's version and those on which results depend most."""
    import platform

    from unlearning_audit.workflow.versions import installed

    package, *dependencies = (
        f"{name} {installed(name) or 'not installed'}" for name in ("unlearning-audit", "snakemake", "torch")
    )
    return f"{package} (Python {platform.python_version()}, {', '.join(dependencies)})"


def _snakemake(file: str, further: list[str]) -> int:
    sets_cores = any(word.startswith(("--cores", "-c", "--workflow-profile", "--profile")) for word in further)
    cores = [] if sets_cores else ["--cores", "all"]
    study = ["--configfile", file] if Path(file).resolve() != ROOT / "config.yaml" else []
    targets = [word for word in further[:1] if not word.startswith("-")]
    rest = further[len(targets) :]
    rest = ["--printshellcmds" if word == "--verbose" else word for word in rest]
    return child.run([*targets, *study, *cores, *rest], caches.environment())


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


if __name__ == "__main__":
    main()
