"""The command audit: studies for people who do not know Snakemake; everything is still reachable by snakemake itself.

audit check mine.yaml       what is wrong with it, or what would be made
audit run mine.yaml         make it all; what follows the study goes to snakemake, such as --cores 8
audit forecast mine.yaml    hours and disk, measured on this machine
audit report mine.yaml      the page alone, from what is there
audit why mine.yaml --since HEAD~3    what an edit makes anew, and through which field
audit new mine.yaml         a commented study to start from; mine.py: a method
audit try my_method.py      run a method on small models and see what it does
audit unlock mine.yaml      after a run that was killed
"""

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

METHOD = '''"""{title}: say in a sentence how it makes models forget."""

from pydantic import Field

from unlearning.bank.bank import Bank
from unlearning.bank.optim import Optimiser
from unlearning.bank.streams import Rows, Stream


class Options(Optimiser):
    """What a study may set: the optimiser's fields, and how many ``epochs``."""

    lr: float = 0.05
    epochs: int = Field(1, ge=0)


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Change the models of ``bank``; ``forget`` and ``retain`` are rows, int [models, samples]. Returns nothing."""
    bank.fit(Stream(retain), optimiser=options, epochs=options.epochs, purpose="unlearn")
'''
STUDY = """# A study of minutes. Fields: docs/fields.md; "audit check {file}" says what is wrong, or what would be made.
study: {name}
defaults:
  data: {{name: digits, test_size: 197}}
  model: {{name: mlp, hidden: [64]}}
  recipe: {{epochs: 40, lr: 0.1, momentum: 0.9}}
  protocol: {{name: swap, alpha: 0.25, pairs: 2, models_per_split: 2}}
  methods:
    none: {{}}        # does nothing: what there is to find
    retrain: {{}}     # starts over without the forget set: what others are held against
    finetune: {{lr: 0.05, epochs: 5}}
    # mine: {{file: my_method.py}}    # "audit new my_method.py" writes one to start from
  attacks: [correctness, confidence, entropy, modified_entropy, shadow, random]
scenarios:
  clean: {{}}
  noisy: {{data: {{label_noise: 0.2}}}}
"""


def main(arguments: list[str] | None = None) -> None:
    """Entry point. Ends with 1 and one sentence for what a user can mend."""
    parser = argparse.ArgumentParser(
        prog="audit", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = {
        "check": check, "run": run, "forecast": forecast, "report": report, "why": why, "new": new, "try": attempt,
        "unlock": unlock,
    }  # fmt: skip
    parser.add_argument("command", choices=commands, metavar="command", help=", ".join(commands))
    parser.add_argument("file", nargs="?", default=str(ROOT / "config.yaml"), help="the default study if left out")
    asked, more = parser.parse_known_args(arguments)
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        code = commands[asked.command](asked.file, more)
    except ValueError as error:
        sys.exit(f"audit: {error}")
    except BrokenPipeError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 1
    sys.exit(code)


def planned(file: str):
    """The plan of a study. Raises ValueError with one sentence for a file that is none."""
    from unlearning.study import reading
    from unlearning.workflow import plan

    return plan.make(reading.read(*reading.load([file])))


def check(file: str, more: list[str]) -> int:
    """Say what is wrong with a study, or what it would make and what of that is there."""
    _nothing(more)
    found = planned(file)
    study, nodes = found.study, [node for stage in found.nodes.values() for node in stage.values()]
    done = sum(Path(node.outputs["spec"]).exists() for node in nodes)
    stages = Counter(node.stage for node in nodes)
    print(f"{file} is sound: study {study.name}, {_many(len({s.name for s in study.scenarios}), 'scenario')}.")
    for scenario in {s.name: s for s in study.scenarios}.values():
        attacks = f", {_many(len(scenario.attacks), 'attack')}" if scenario.attacks else ""
        print(f"  {scenario.name}: {scenario.protocol.name} with {', '.join(scenario.methods)}{attacks}")
    made = ", ".join(f"{count} {stage}" for stage, count in stages.items())
    print(f"{_many(len(nodes), 'job')} ({made}), of which {done} are done. Hours and disk: audit forecast {file}")
    return 0


def run(file: str, more: list[str]) -> int:
    """Check a study, then make it."""
    planned(file)
    return _snakemake(file, more)


def forecast(file: str, more: list[str]) -> int:
    """What it will cost."""
    planned(file)
    return _snakemake(file, ["forecast", *more])


def report(file: str, more: list[str]) -> int:
    """The study's page."""
    return _snakemake(file, [f"results/{planned(file).study.name}/report.html", *more])


def unlock(file: str, more: list[str]) -> int:
    """Remove the lock that a killed run left."""
    planned(file)
    return _snakemake(file, ["--unlock", *more])


def why(file: str, more: list[str]) -> int:
    """What an edit makes anew: see scripts/why.py."""
    planned(file)
    return subprocess.run([sys.executable, str(ROOT / "scripts" / "why.py"), file, *more], check=False).returncode


def new(file: str, more: list[str]) -> int:
    """Write a study or a method to start from. Raises ValueError for a file that is there, or of another kind."""
    _nothing(more)
    path = Path(file)
    kinds = {".yaml": STUDY, ".yml": STUDY, ".py": METHOD}
    if path.suffix not in kinds:
        raise ValueError(f"{file}: give the name of a study, such as mine.yaml, or of a method, such as my_method.py")
    if path.exists():
        raise ValueError(f"{file}: this file is there already; give another name")
    name = "".join(c if c.isalnum() else "_" for c in path.stem.lower())
    try:
        path.write_text(kinds[path.suffix].format(file=file, name=name, title=path.stem.replace("_", " ").capitalize()))
    except OSError as error:
        raise ValueError(f"{file}: could not be written ({error.strerror})") from None
    print(f"Wrote {file}. Next: audit {'try' if path.suffix == '.py' else 'check'} {file}")
    return 0


def attempt(file: str, more: list[str]) -> int:
    """Run a method on two small models of real digits, with all that a study checks, and say what it changed."""
    _nothing(more)
    from unlearning.workflow import trial

    print(trial.method(file))
    return 0


def _snakemake(file: str, more: list[str]) -> int:
    cores = [] if any(one.startswith(("--cores", "-c", "--workflow-profile", "--profile")) for one in more) else ["all"]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    study = ["--configfile", file] if Path(file).resolve() != ROOT / "config.yaml" else []
    targets = [one for one in more if not one.startswith("-")][:1] if more[:1] and not more[0].startswith("-") else []
    rest = more[len(targets) :]
    where = ["--cores", *cores] if cores else []
    try:
        return subprocess.run([*command, *targets, *study, *where, *rest], check=False).returncode
    except KeyboardInterrupt:  # which snakemake got as well
        return 130


def _nothing(more: list[str]) -> None:
    if more:
        raise ValueError(f"unknown argument {more[0]}; audit --help shows all")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


if __name__ == "__main__":
    main()
