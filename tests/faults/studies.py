"""Damages studies as people and disks do: whatever comes of it must be a plan, or one sentence that names the file."""

import re
import tempfile
from pathlib import Path

import numpy as np

from unlearning.study import reading
from unlearning.study.messages import StudyError
from unlearning.workflow import plan

#: Values that somebody may put anywhere, as YAML text.
VALUES = (
    "", "~", "[]", "{}", "0", "-1", "1.5", "1e9", ".inf", ".nan", "true", "no", "text", "'3'", "[1, 2]", "{a: 1}", "é",
    "2024-01-31", "0x1f", "1_000", "12:30:45", '"\\n"', '"\\ud800"', "!!int ''", "!!timestamp foo", "!!bool x",
    "!mine 1", "&x [*x]", "*nobody", "10000000", "none", "[none, none]", "../../etc/passwd", "a" * 300, '"\\0"',
    "{name: swap}",
    "{file: missing.py}", "[[[[[[[[1]]]]]]]]", "? a", "- -", "%", "@", "`", "{1: 2, true: 3}", "!!binary x",
    "!!set {a}",
)  # fmt: skip
LIMIT = 3_000


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
    found = list(re.finditer(rb"(?<=: )[^\s,{}\[\]#]+", content))
    if not found:
        return content
    at = found[rng.integers(len(found))]
    return content[: at.start()] + VALUES[rng.integers(len(VALUES))].encode() + content[at.end() :]


def _key(content: bytes, rng: np.random.Generator) -> bytes:
    """Another name for a random key, or a key that is another's."""
    found = list(re.finditer(rb"[A-Za-z_][\w.]*(?=:)", content))
    if not found:
        return content
    at, other = (found[i] for i in rng.integers(len(found), size=2))
    name = other.group() if rng.random() < 0.7 else VALUES[rng.integers(len(VALUES))].encode()
    return content[: at.start()] + name + content[at.end() :]


FAULTS = (_byte, _cut, _lines, _value, _value, _value, _key, _key)


def attempt(text: str, rng: np.random.Generator) -> tuple[str, str]:
    """(what came of it, what was wrong with that): a mutated study is read and planned in this process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mine.yaml")
        content = mutated(text, rng)
        path.write_bytes(content)
        try:
            config, origin = reading.load([path])
            # A plan of many thousand nodes is sound, and of no interest here.
            config = {**config, "limit": LIMIT} if config.get("limit") is None else config
            plan.make(reading.read(config, origin))
        except StudyError as error:
            said = str(error)
            return "refused", "" if said.isprintable() and "mine.yaml: " in said else f"{said!r} for {content!r}"
        except ValueError as error:
            return "refused by the plan", "" if str(error).isprintable() else f"{error!r} for {content!r}"
        except Exception as error:
            return "traceback", f"{type(error).__name__}: {error} for {content!r}"
    return "planned", ""
