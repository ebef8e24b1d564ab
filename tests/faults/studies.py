"""Damages studies as people and disks do: whatever comes of it must be a plan, or one sentence that names the file."""

import contextlib
import io
import re
import tempfile
from pathlib import Path

import numpy as np
import snakemake_logger_plugin_unlearning  # noqa: F401 (as Snakemake does before it reads a study)
from snakemake_interface_common.exceptions import WorkflowError
from unlearning_audit import command
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError
from unlearning_audit.workflow import plan

#: Values that somebody may put anywhere, as YAML text.
VALUES = (
    "", "~", "[]", "{}", "0", "-1", "1.5", "1e9", ".inf", ".nan", "true", "no", "text", "'3'", "[1, 2]", "{a: 1}", "é",
    "2024-01-31", "0x1f", "1_000", "12:30:45", "!!int ''", "!!bool x",
    "!mine 1", "*nobody", "10000000", "none", "[none, none]", "../../etc/passwd", "a" * 300,
    "{name: swap}",
    "{file: missing.py}", "[[[[[[[[1]]]]]]]]", "? a", "- -", "%", "@", "`", "{1: 2, true: 3}", "!!binary x",
    "!!set {a}",
)  # fmt: skip
LIMIT = 10_000


def mutated(text: str, rng: np.random.Generator) -> bytes:
    """The bytes of a study with one to three faults."""
    content = text.encode()
    for _ in range(rng.integers(1, 4)):
        content = FAULTS[rng.integers(len(FAULTS))](content, rng)
    return content


def _byte(content: bytes, rng: np.random.Generator) -> bytes:
    at = rng.integers(len(content) + 1)
    return content[:at] + bytes([rng.integers(256)]) + content[at + rng.integers(2) :]


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: rng.integers(len(content) + 1)]


def _lines(content: bytes, rng: np.random.Generator) -> bytes:
    """A line more, less, elsewhere, or further in."""
    lines = content.split(b"\n")
    at, to = rng.integers(len(lines), size=2)
    match rng.integers(4):
        case 0:
            lines.insert(to, lines[at])
        case 1:
            del lines[at]
        case 2:
            lines.insert(to, lines.pop(at))
        case 3:
            lines[at] = b" " * int(rng.integers(1, 5)) + lines[at]
    return b"\n".join(lines)


def _value(content: bytes, rng: np.random.Generator) -> bytes:
    """Another value for a random key."""
    matches = list(re.finditer(rb"(?<=: )[^\s,{}\[\]#]+", content))
    if not matches:
        return content
    at = matches[rng.integers(len(matches))]
    return content[: at.start()] + VALUES[rng.integers(len(VALUES))].encode() + content[at.end() :]


def _key(content: bytes, rng: np.random.Generator) -> bytes:
    """Another name for a random key, or a key that is another's."""
    matches = list(re.finditer(rb"[A-Za-z_][\w.]*(?=:)", content))
    if not matches:
        return content
    at, second = (matches[i] for i in rng.integers(len(matches), size=2))
    name = second.group() if rng.random() < 0.7 else VALUES[rng.integers(len(VALUES))].encode()
    return content[: at.start()] + name + content[at.end() :]


FAULTS = (_byte, _cut, _lines, _value, _value, _value, _key, _key)


def attempt(text: str, rng: np.random.Generator, way: str = "a file") -> tuple[str, str]:
    """(the way and what came of it, what was wrong with that): a mutated study is read and planned in this process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mine.yaml")
        # A plan of many thousand nodes is sound, and of no interest here.
        content = mutated(f"{text}\nlimit: {LIMIT}\n", rng)
        path.write_bytes(content)
        try:
            WAYS[way](text, path)
        except StudyError as error:
            message = str(error)
            clear = message.isprintable() and ("mine.yaml: " in message or "(given by --config)" in message)
            return f"{way}: refused", "" if clear else f"{message!r} for {content!r}"
        except WorkflowError as error:
            message = str(error)
            return (
                f"{way}: refused",
                "" if message.isprintable() and "mine.yaml: " in message else f"{message!r} for {content!r}",
            )
        except ValueError as error:
            return f"{way}: refused by the plan", "" if str(error).isprintable() else f"{error!r} for {content!r}"
        except SystemExit as end:
            message = str(end.code)
            clear = message.isprintable() and message.startswith("audit: ")
            return f"{way}: refused", "" if clear or end.code == 0 else f"{message!r} for {content!r}"
        except Exception as error:
            return f"{way}: traceback", f"{type(error).__name__}: {error} for {content!r}"
    return f"{way}: planned", ""


def _file(text: str, path: Path) -> None:
    """As the one file of a study."""
    config, origin = reading.load([path])
    plan.make(reading.read({"limit": LIMIT, **config}, origin))


def _two(text: str, path: Path) -> None:
    """As a second file, over a sound one."""
    first = path.with_name("first.yaml")
    first.write_text(f"{text}\nlimit: {LIMIT}\n")
    plan.make(reading.read(*reading.load([first, path])))


def _config_option(text: str, path: Path) -> None:
    """As what --config adds to a sound one, if it is YAML."""
    additions, _ = reading.load([path])
    sound = path.with_name("mine.yaml")
    sound.write_text(f"{text}\nlimit: {LIMIT}\n")
    plan.make(reading.read(*reading.load([sound]), additions))


def _command(text: str, path: Path) -> None:
    """By the command that people type."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            command.main(["check", str(path)])
        except SystemExit as end:
            if end.code not in (0, None):
                raise


#: The ways to give a study.
WAYS = {
    "a file": _file, "two files": _two, "--config": _config_option, "audit check": _command,
}  # fmt: skip
