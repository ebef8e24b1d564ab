"""The command audit: studies without Snakemake's vocabulary; everything is still reachable by snakemake itself."""

import argparse
import os
import subprocess
import sys
import webbrowser
from collections import Counter
from pathlib import Path

from unlearning_audit import ROOT
from unlearning_audit.command import caches, card, child, compare, completion, gpu, read, starts, tiny, tracebacks
from unlearning_audit.plugins import registry

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
        "audit new my_method.py\naudit new my_attack.py --kind attack\naudit new mine.yaml --with my_method.py\n"
        "audit new kit.py --notebook kit.ipynb --function unlearning",
    ),
    "try": (
        "run a file of any kind on something small, or on a study's data and model, with all that a study checks",
        "audit try my_method.py\naudit try repo/unlearn.py --study mine.yaml\naudit try f.py --set function=forget\n"
        "audit try my_reader.py --on results",
    ),
    "why": (
        "say why something failed, with the calls that led there; or what an edit makes anew, and through which field",
        "audit why mine.yaml\naudit why mine.yaml --since HEAD~3",
    ),
    "card": (
        "run a battery of scenarios for one method, and write a page of one screen",
        "audit card my_method.py\naudit card repo/unlearn.py --set function=forget",
    ),
    "read": (
        "audit result files of other tools: find out what they are, write a study, make its report",
        "audit read saves/eval\naudit read losses.csv --retrain retrained.csv",
    ),
    "forecast": ("hours and disk, measured on this machine", "audit forecast mine.yaml"),
    "report": ("the page, and what it still needs", "audit report mine.yaml"),
    "gpu": ("compare this machine's GPU with its processor and measure its speed; two minutes", "audit gpu"),
    "compare": (
        "which verdicts differ between finished studies, why, and whether they rank methods alike",
        "audit compare results/seed1 results/seed2\naudit compare here/results/mine there/results/mine",
    ),
    "unlock": ("go on after a run that was killed", "audit unlock mine.yaml"),
    "completion": ("print what a shell needs for tab completion", 'eval "$(audit completion bash)"'),
}


def main(arguments: list[str] | None = None) -> None:
    """Entry point. Ends with 1 and one sentence for what a user can mend."""
    asked, more = _parser().parse_known_args(arguments)
    if more and asked.command in ("check", "new", "try", "gpu", "compare", "completion"):
        sys.exit(f"audit: unknown argument {more[0]}; audit {asked.command} --help shows all")
    try:
        code = globals()[f"_{asked.command}"](asked, more)
    except ValueError as error:
        sys.exit(f"audit: {error}")
    except BrokenPipeError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 1
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    described = argparse.RawDescriptionHelpFormatter
    every = "\n".join(example for _, examples in COMMANDS.values() for example in examples.splitlines())
    parser = argparse.ArgumentParser(
        prog="audit", description=__doc__, epilog=f"examples:\n\n{every}", formatter_class=described
    )
    parser.add_argument("--version", action="version", version=_version())
    parsers = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (what, examples) in COMMANDS.items():
        one = parsers.add_parser(
            name, help=what, description=f"{what[0].upper()}{what[1:]}.", epilog=f"examples:\n\n{examples}",
            formatter_class=described,
        )  # fmt: skip
        if name == "completion":
            one.add_argument("shell", choices=("bash", "zsh"))
        elif name == "read":
            read.add_arguments(one)
        elif name == "compare":
            compare.add_arguments(one)
        elif name == "card":
            card.add_arguments(one)
        elif name in ("new", "try"):
            one.add_argument("file")
        elif name != "gpu":
            default = str(ROOT / "config.yaml")
            one.add_argument("file", nargs="?", default=default, help="a study; the default study if left out")
        if name == "report":
            one.add_argument("--open", action="store_true", help="show the page in a browser")
        if name == "try":
            one.add_argument("--study", default="", help="try it on the data and model of this study, with its options")
            one.add_argument("--scenario", default="", help="which of the study; default: the first")
            one.add_argument(
                "--on", default="", metavar="PATH", help="of a reader: the result file or folder that it reads"
            )
            one.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", dest="fields",
                             help="a field beside the file: --set function=forget --set options.lr=0.1")  # fmt: skip
        if name == "new":
            one.add_argument("--kind", choices=starts.KINDS, help="default: study for .yaml, method for .py")
            one.add_argument("--with", dest="own", action="append", default=[], metavar="FILE[:FUNCTION]",
                             help="a file of yours, of any kind, that the new study uses; may be repeated")  # fmt: skip
            one.add_argument("--notebook", default="", metavar="FILE", help="take a function out of this notebook")
            one.add_argument("--function", default="unlearn", metavar="NAME", help="which; default: unlearn")
    return parser


def _planned(file: str):
    """The plan of a study. Raises ValueError with one sentence about what is wrong with the file."""
    return _written_and_planned(file)[1]


def _written_and_planned(file: str):
    """A study as it is written, and its plan. Raises ValueError as `_planned`."""
    from unlearning_audit.study import reading
    from unlearning_audit.workflow import plan

    config, origin = reading.load([file])
    return config, plan.make(reading.read(config, origin))


def _check(asked: argparse.Namespace, more: list[str]) -> int:
    from unlearning_audit.display import outlook
    from unlearning_audit.workflow import rehearsal, trial

    if asked.file.endswith(".py"):
        kind = trial.kind(asked.file)
        if not registry.is_function(kind, Path(asked.file), "unlearn"):
            registry.load(kind, trial.name_of(asked.file), asked.file)
        noun = next(noun for part, noun in trial.NOUNS.items() if trial.KINDS[part] == kind)
        print(f"{asked.file} is sound: {noun}. Next: audit try {asked.file}")
        return 0
    config, found = _written_and_planned(asked.file)
    files, model_files = rehearsal.imports(found, config), rehearsal.models(found, config)
    study, nodes = found.study, [node for stage in found.nodes.values() for node in stage.values()]
    done = sum(Path(node.outputs["spec"]).exists() for node in nodes)
    stages = Counter(node.stage for node in nodes)
    print(f"{asked.file} is sound: study {study.name}, {_many(len({s.name for s in study.scenarios}), 'scenario')}.")
    for scenario in {s.name: s for s in study.scenarios}.values():
        attacks = f", {_many(len(scenario.attacks), 'attack')}" if scenario.attacks else ""
        print(f"  {scenario.name}: {scenario.protocol.name} with {', '.join(scenario.methods)}{attacks}")
    made = ", ".join(f"{count} {stage}" for stage, count in stages.items() if count)
    models = f", up to {_many(found.models, 'model')} trained or unlearned" if found.models else ""
    print(f"{_many(len(nodes), 'job')} ({made}), of which {done} are done{models}.")
    for file in files:
        print(f"  {file} can be imported, with all that it needs.")
    for file in model_files:
        print(f"  {file}: a model was built, trained on one batch and asked, as it must be.")
    print(outlook.text(found, asked.file))
    return 0


def _run(asked: argparse.Namespace, more: list[str]) -> int:
    from unlearning_audit.workflow import rehearsal

    config, plan = _written_and_planned(asked.file)
    rehearsal.imports(plan, config)
    rehearsal.models(plan, config)
    return _snakemake(asked.file, more)


def _read(asked: argparse.Namespace, more: list[str]) -> int:
    file = read.written(asked)
    return 0 if asked.only_write else _snakemake(file, more)


def _card(asked: argparse.Namespace, more: list[str]) -> int:
    fields: dict = {}
    for text in asked.fields:
        _set(fields, text)
    return card.run(asked, fields, lambda study: _snakemake(study, more))


def _forecast(asked: argparse.Namespace, more: list[str]) -> int:
    _planned(asked.file)
    return _snakemake(asked.file, ["forecast", *more])


def _report(asked: argparse.Namespace, more: list[str]) -> int:
    page = Path("results", _planned(asked.file).study.name, "report.html")
    code = _snakemake(asked.file, [str(page), *more])
    if page.exists() and not code:
        print(f"Report: {page.resolve()}")
        if asked.open and not webbrowser.open(page.resolve().as_uri()):
            print("No browser could be started here; open the file with one.")
    return code


def _gpu(asked: argparse.Namespace, more: list[str]) -> int:
    return gpu.run()


def _compare(asked: argparse.Namespace, more: list[str]) -> int:
    return compare.run(asked)


def _unlock(asked: argparse.Namespace, more: list[str]) -> int:
    _planned(asked.file)
    return _snakemake(asked.file, ["--unlock", *more])


def _why(asked: argparse.Namespace, more: list[str]) -> int:
    plan = _planned(asked.file)
    if not more:
        print("\n\n".join(tracebacks.of(plan)) or f"Nothing of {asked.file} failed.")
        return 0
    command = [sys.executable, str(ROOT / "scripts" / "why.py"), asked.file, *more]
    return subprocess.run(command, check=False).returncode


def _new(asked: argparse.Namespace, more: list[str]) -> int:
    """Raises ValueError for a file that is there, or of another kind."""
    from unlearning_audit.workflow import trial

    file, path = asked.file, Path(asked.file)
    kind = asked.kind or {".yaml": "study", ".yml": "study", ".py": "method"}.get(path.suffix)
    if kind is None or (path.suffix == ".py") == (kind == "study"):
        raise ValueError(f"{file}: give the name of a study, such as mine.yaml, or of a method, such as my_method.py")
    if asked.own and kind != "study":
        raise ValueError("--with: goes with a study, such as audit new mine.yaml --with my_method.py")
    if path.exists():
        raise ValueError(f"{file}: this file is there already; give another name")
    if asked.notebook:
        if kind != "method":
            raise ValueError("--notebook: goes with a method, such as audit new my_method.py --notebook mine.ipynb")
        return _taken(asked)
    text, how = starts.KINDS[kind]
    room = {"study": "study", "function": "methods", "data": "data"}.get(kind, f"{kind}s")
    known = {"file": file, "name": trial.name_of(file, room), "title": path.stem.replace("_", " ").capitalize()}
    if kind == "study":
        known |= _lines(asked.own)
    _write(path, text.format(**known))
    if kind == "study":
        print(f"Wrote {file}. Next: audit check {file}, then audit run {file}")
        return 0
    if kind == "reader":
        print(f"Wrote {file}. Next: audit try {file} --on RESULTS, then audit read RESULTS --reader {file}")
        return 0
    print(
        f"Wrote {file}. Next: audit try {file}. A study names it {how.format(**known)}; "
        f"audit new mine.yaml --with {file} writes one"
    )
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path}: could not be written ({error.strerror})") from None


def _taken(asked: argparse.Namespace) -> int:
    """Write a function of a notebook as a file."""
    from unlearning_audit.command import notebooks

    source = notebooks.extracted(Path(asked.notebook), asked.function)
    _write(Path(asked.file), source)
    also = "" if asked.function == "unlearn" else f" --set function={asked.function}"
    print(
        f"Wrote {asked.file}: {asked.function} of {asked.notebook} with what it refers to, {len(source.splitlines())} "
        f"lines. Next: audit try {asked.file}{also}"
    )
    return 0


def _lines(own: list[str]) -> dict[str, str]:
    """What a new study says of files of one's own: lines of methods, attacks and metrics, and the model, the data and
    the protocol in place of ours."""
    import yaml

    from unlearning_audit.workflow import trial

    lines: dict[str, list[str]] = {"methods": [], "attacks": [], "metrics": []}
    chosen = dict(starts.CHOICES)
    files = [(file, function) for file, _, function in (one.partition(":") for one in own)]
    for file, function in files:
        kind = trial.kind(file, function)
        name = trial.name_of(file, kind)
        if kind == "readers":
            raise ValueError(
                f"--with {file}: a study has the models that a reader has read; audit read RESULTS --reader {file} "
                "writes one, with RESULTS your files"
            )
        if kind in lines:
            also = f", function: {function}" if function else ""
            lines[kind].append(f"{name}: {{file: {file}{also}}}")
        else:
            chosen[kind] = starts.OWN[kind].format(name=name, file=file)
            if kind == "models" and trial.takes_pictures(file):
                chosen["data"] = chosen["data"].replace("name: digits", "name: digits, images: true")
    attacked = True
    if "protocols" in {trial.kind(file, function) for file, function in files}:
        drawn = yaml.safe_load(chosen["protocols"])
        attacked = registry.protocol(drawn["name"], drawn["file"]).attacked
    lines["methods"] = lines["methods"] or ["# mine: {file: my_method.py}    # audit new my_method.py writes one"]
    blocks = {field: "".join(f"    {line}\n" for line in some) for field, some in lines.items()}
    blocks["attacks"] = starts.ASKED + blocks["attacks"] if attacked else "  attacks: {}\n"
    blocks["metrics"] = f"  metrics:\n{blocks['metrics']}" if lines["metrics"] else ""
    return {**chosen, **blocks}


def _try(asked: argparse.Namespace, more: list[str]) -> int:
    from unlearning_audit.workflow import trial

    fields: dict = {}
    setting = None
    if asked.study:
        from unlearning_audit.workflow import rehearsal

        plan = _planned(asked.study)
        fields = rehearsal.fields(plan, asked.file, asked.scenario)
        setting = rehearsal.setting(plan, asked.scenario)
    for text in asked.fields:
        _set(fields, text)
    kind = trial.kind(asked.file, fields.get("function", ""))
    if kind == "readers":
        print(read.attempt(asked.file, asked.on, fields))
    elif kind in ("metrics", "protocols"):
        if asked.study:
            raise ValueError(
                f"--study: a metric or a protocol is tried in a study of seconds; to use {asked.file} in {asked.study},"
                f" name it there, and audit run {asked.study}"
            )
        print(tiny.attempt(asked.file, fields))
    else:
        print(trial.attempt(asked.file, setting, fields))
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
    from importlib import metadata

    def of(package: str) -> str:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return "not installed"

    parts = ", ".join(f"{name} {of(name)}" for name in ("snakemake", "torch"))
    return f"unlearning-audit {of('unlearning-audit')} (Python {platform.python_version()}, {parts})"


def _completion(asked: argparse.Namespace, more: list[str]) -> int:
    print(completion.script(asked.shell, list(COMMANDS), list(starts.KINDS)), end="")
    return 0


def _snakemake(file: str, more: list[str]) -> int:
    from unlearning_audit.workflow import launch, terminal

    cores = [] if any(one.startswith(("--cores", "-c", "--workflow-profile", "--profile")) for one in more) else ["all"]
    command = [*launch.COMMAND, "--snakefile", str(ROOT / "Snakefile")]
    study = ["--configfile", file] if Path(file).resolve() != ROOT / "config.yaml" else []
    targets = [one for one in more if not one.startswith("-")][:1] if more[:1] and not more[0].startswith("-") else []
    rest = more[len(targets) :]
    where = ["--cores", *cores] if cores else []
    environment = caches.environment()
    # What Snakemake says itself is for those who ask for it, and for what it only tells.
    if not {"--verbose", "-n", "--dry-run", "--dryrun", "--unlock", "forecast"} & set(more):
        environment[terminal.BRIEF] = "1"
        rest = [*rest, "--quiet", "host", "progress", "rules", "reason"]
    rest = [word for word in rest if word != "--verbose"]
    typed = [*command, *targets, *study, *where, *rest]
    return child.run(typed, environment)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


if __name__ == "__main__":
    main()
