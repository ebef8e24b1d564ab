"""The command audit: studies without Snakemake's vocabulary; everything is still reachable by snakemake itself."""

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from unlearning_audit import ROOT, caches, completion, starts

#: Command → (what it does, examples).
COMMANDS = {
    "run": (
        "make everything that a study asks for; what follows the study goes to snakemake",
        "audit run mine.yaml\naudit run mine.yaml --cores 8\naudit run mine.yaml --config only=[noisy]",
    ),
    "check": ("say what is wrong with a study, or what would be made", "audit check mine.yaml"),
    "new": (
        "write a study, a method, an attack, a model or a data source to start from",
        "audit new my_method.py\naudit new my_attack.py --kind attack\naudit new mine.yaml --with my_method.py",
    ),
    "try": (
        "run a method, an attack, a model or a data source on something small, with all that a study checks",
        "audit try my_method.py",
    ),
    "why": ("say what an edit makes anew, and through which field", "audit why mine.yaml --since HEAD~3"),
    "forecast": ("hours and disk, measured on this machine", "audit forecast mine.yaml"),
    "report": ("the page, and what it still needs", "audit report mine.yaml"),
    "unlock": ("go on after a run that was killed", "audit unlock mine.yaml"),
    "completion": ("print what a shell needs for tab completion", 'eval "$(audit completion bash)"'),
}


def main(arguments: list[str] | None = None) -> None:
    """Entry point. Ends with 1 and one sentence for what a user can mend."""
    asked, more = _parser().parse_known_args(arguments)
    if more and asked.command in ("check", "new", "try", "completion"):
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
    parsers = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (what, examples) in COMMANDS.items():
        one = parsers.add_parser(
            name, help=what, description=f"{what[0].upper()}{what[1:]}.", epilog=f"examples:\n\n{examples}",
            formatter_class=described,
        )  # fmt: skip
        if name == "completion":
            one.add_argument("shell", choices=("bash", "zsh"))
        elif name in ("new", "try"):
            one.add_argument("file")
        else:
            default = str(ROOT / "config.yaml")
            one.add_argument("file", nargs="?", default=default, help="a study; the default study if left out")
        if name == "new":
            one.add_argument("--kind", choices=starts.KINDS, help="default: study for .yaml, method for .py")
            one.add_argument("--with", dest="own", action="append", default=[], metavar="FILE",
                             help="a method's or attack's file that the new study uses; may be repeated")  # fmt: skip
    return parser


def _planned(file: str):
    """The plan of a study. Raises ValueError with one sentence for a file that is none."""
    from unlearning.study import reading
    from unlearning.workflow import plan

    return plan.make(reading.read(*reading.load([file])))


def _check(asked: argparse.Namespace, more: list[str]) -> int:
    from unlearning.display import outlook
    from unlearning.workflow import rehearsal

    found = _planned(asked.file)
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
    for file in rehearsal.models(found):
        print(f"  {file}: a model was built, trained on one batch and asked, as it must be.")
    print(outlook.text(found, asked.file))
    return 0


def _run(asked: argparse.Namespace, more: list[str]) -> int:
    from unlearning.workflow import rehearsal

    rehearsal.models(_planned(asked.file))
    return _snakemake(asked.file, more)


def _forecast(asked: argparse.Namespace, more: list[str]) -> int:
    _planned(asked.file)
    return _snakemake(asked.file, ["forecast", *more])


def _report(asked: argparse.Namespace, more: list[str]) -> int:
    return _snakemake(asked.file, [f"results/{_planned(asked.file).study.name}/report.html", *more])


def _unlock(asked: argparse.Namespace, more: list[str]) -> int:
    _planned(asked.file)
    return _snakemake(asked.file, ["--unlock", *more])


def _why(asked: argparse.Namespace, more: list[str]) -> int:
    _planned(asked.file)
    command = [sys.executable, str(ROOT / "scripts" / "why.py"), asked.file, *more]
    return subprocess.run(command, check=False).returncode


def _new(asked: argparse.Namespace, more: list[str]) -> int:
    """Raises ValueError for a file that is there, or of another kind."""
    file, path = asked.file, Path(asked.file)
    kind = asked.kind or {".yaml": "study", ".yml": "study", ".py": "method"}.get(path.suffix)
    if kind is None or (path.suffix == ".py") == (kind == "study"):
        raise ValueError(f"{file}: give the name of a study, such as mine.yaml, or of a method, such as my_method.py")
    if asked.own and kind != "study":
        raise ValueError("--with: goes with a study, such as audit new mine.yaml --with my_method.py")
    if path.exists():
        raise ValueError(f"{file}: this file is there already; give another name")
    text, how = starts.KINDS[kind]
    known = {"file": file, "name": starts.named(path.stem), "title": path.stem.replace("_", " ").capitalize()}
    if kind == "study":
        known |= _lines(asked.own)
    try:
        path.write_text(text.format(**known), encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{file}: could not be written ({error.strerror})") from None
    if kind == "study":
        print(f"Wrote {file}. Next: audit check {file}, then audit run {file}")
        return 0
    study = f"audit new mine.yaml --with {file}" if kind in ("method", "attack") else "audit new mine.yaml"
    print(f"Wrote {file}. Next: audit try {file}. A study names it {how.format(**known)}; {study} writes one")
    return 0


def _lines(own: list[str]) -> dict[str, str]:
    """What a new study says of files of one's own: lines of methods, and more attacks."""
    from unlearning.workflow import trial

    kinds = {"methods": [], "attacks": []}
    for file in own:
        kind = trial.kind(file)
        if kind not in kinds:
            raise ValueError(f"{file}: --with takes methods and attacks; this file belongs to {kind}")
        kinds[kind].append(f"{starts.named(Path(file).stem)}: {{file: {file}}}")
    kinds["methods"] = kinds["methods"] or ["# mine: {file: my_method.py}    # audit new my_method.py writes one"]
    return {field: "".join(f"    {line}\n" for line in lines) for field, lines in kinds.items()}


def _try(asked: argparse.Namespace, more: list[str]) -> int:
    from unlearning.workflow import trial

    print(trial.attempt(asked.file))
    return 0


def _completion(asked: argparse.Namespace, more: list[str]) -> int:
    print(completion.script(asked.shell, list(COMMANDS), list(starts.KINDS)), end="")
    return 0


def _snakemake(file: str, more: list[str]) -> int:
    cores = [] if any(one.startswith(("--cores", "-c", "--workflow-profile", "--profile")) for one in more) else ["all"]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    study = ["--configfile", file] if Path(file).resolve() != ROOT / "config.yaml" else []
    targets = [one for one in more if not one.startswith("-")][:1] if more[:1] and not more[0].startswith("-") else []
    rest = more[len(targets) :]
    where = ["--cores", *cores] if cores else []
    typed = [*command, *targets, *study, *where, *rest]
    return subprocess.run(typed, check=False, env=caches.environment()).returncode


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


if __name__ == "__main__":
    main()
