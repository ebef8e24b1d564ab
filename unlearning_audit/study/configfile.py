"""Reads a study's YAML files strictly: duplicate keys and the like are errors that name their line."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from unlearning_audit.study.messages import StudyError, as_yaml

#: How deeply a study may be nested, and how many values it may unfold into through aliases.
DEEPEST, MOST = 30, 100_000


def load(paths: Iterable[str | Path]) -> tuple[dict[str, Any], str]:
    """The merged content of all files, later ones over earlier ones, and their names for messages.

    Raises StudyError for a file that cannot be read, is no YAML, is empty, holds no mapping, or gives a key twice
    (of which YAML would silently keep the last).
    """
    names, merged = [], {}
    for path in map(Path, paths):
        name = os.path.relpath(path)
        names.append(str(path) if name.startswith("..") else name)
        try:
            merged = update(merged, _read(path))
        except StudyError as error:
            raise StudyError((), f"{names[-1]}: {error}") from None
    return merged, " + ".join(names)


def update(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """``over`` on top of ``base``, mapping by mapping, as Snakemake merges its configurations."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = update(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def typed(value: Any) -> Any:
    """A value of the command line, which Snakemake leaves as text inside mappings and lists, with YAML's types."""
    if isinstance(value, dict):
        return {key: _scalar(item) for key, item in value.items()}
    return [_scalar(item) for item in value] if isinstance(value, list) else value


def _scalar(value: Any) -> Any:
    if not isinstance(value, str):
        return typed(value)
    try:
        read = yaml.safe_load(value)
    except (yaml.YAMLError, ValueError):
        return value
    return read if isinstance(read, (bool, int, float, type(None))) else value


class _Loader(yaml.SafeLoader):
    """YAML with plain values only. A value that does not fit its tag raises StudyError, which names its line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (yaml.YAMLError, StudyError, RecursionError):
            raise
        except Exception:
            kind, line = node.tag.rpartition(":")[2], node.start_mark.line + 1
            hint = "" if kind == "timestamp" else "; leave the tag out"
            raise StudyError(
                (),
                f"holds {as_yaml(node.value)} in line {line}, which is no {kind}; put it in quotes if it is text{hint}",
            ) from None


def _read(path: Path) -> dict[str, Any]:
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe or a device, which may never end
        raise StudyError((), "is no file; give one that holds a study")
    try:
        text = path.read_bytes().decode("utf-8")
        loader = _Loader(text)
        node = loader.get_single_node()
        _refuse_endless(node, (), {})
        _refuse_twins(node, (), set())
        content = None if node is None else loader.construct_document(node)
    except StudyError:
        raise
    except OSError as error:
        raise StudyError((), f"cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise StudyError((), f"is not text in UTF-8 (line {line}); give a YAML file, saved as UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        if isinstance(error, yaml.reader.ReaderError):
            place = f" in line {text[: error.position].count(chr(10)) + 1}"
        why = getattr(error, "problem", None) or getattr(error, "reason", None) or "unknown reason"
        raise StudyError((), f"is not valid YAML{place}: {why}") from None
    except RecursionError:
        raise StudyError((), f"is nested more deeply than the {DEEPEST} levels that a study may have") from None
    if content is None:
        raise StudyError((), "is empty; a study needs at least the fields study and scenarios")
    if not isinstance(content, dict):
        description = "a list" if isinstance(content, list) else as_yaml(content)
        raise StudyError((), f"must hold a mapping of fields such as study and scenarios, found {description}")
    return content


def _refuse_endless(node: yaml.Node | None, above: tuple[int, ...], sizes: dict[int, int]) -> int:
    """How many values a node unfolds into. Raises StudyError for an alias within what it stands for, for more levels
    than `DEEPEST` and for more values than `MOST`."""
    if node is None or id(node) in sizes:
        return 0 if node is None else sizes[id(node)]
    line = node.start_mark.line + 1
    if id(node) in above:
        raise StudyError((), f"has an alias inside of what it stands for (line {line}); let no alias contain itself")
    if len(above) > DEEPEST:
        raise StudyError((), f"is nested more deeply than {DEEPEST} levels in line {line}")
    inner = []
    if isinstance(node, yaml.SequenceNode):
        inner = node.value
    elif isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    size = 1 + sum(_refuse_endless(part, (*above, id(node)), sizes) for part in inner)
    if size > MOST:
        raise StudyError((), f"unfolds into more than {MOST:,} values in line {line}; use fewer aliases")
    sizes[id(node)] = size
    return size


def _refuse_twins(node: yaml.Node | None, path: tuple[str, ...], visited: set[int]) -> None:
    """Raise StudyError for a mapping with the same key twice; each alias is checked once."""
    if node is None or id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            _refuse_twins(item, (*path, str(i)), visited)
    if isinstance(node, yaml.MappingNode):
        lines = {}
        for key, item in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode):
                if key.value in lines and key.value != "<<":
                    where = f"in line {line} and before in line {lines[key.value]}"
                    raise StudyError((*path, key.value), f"is given twice, {where}; keep one of the two")
                lines[key.value] = line
            _refuse_twins(item, (*path, str(key.value)), visited)
