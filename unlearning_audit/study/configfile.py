"""Read a study's YAML files strictly: a key given twice, for example, is an error that names the line."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from unlearning_audit.plugins.guard import readable
from unlearning_audit.study.messages import StudyError, as_yaml


def load(paths: Iterable[str | Path]) -> tuple[dict[str, Any], str]:
    """Return the merged content of all files, where later files take precedence, and the files' names for messages.

    Raises StudyError for a file that cannot be read, is not YAML, is empty, does not hold a mapping, or has a key twice
    (YAML would silently keep the last).
    """
    names: list[str] = []
    merged: dict[str, Any] = {}
    for path in map(Path, paths):
        names.append(readable(path))
        try:
            merged = update(merged, _read(path))
        except StudyError as error:
            raise StudyError((), f"{names[-1]}: {error}") from None
    return merged, " + ".join(names)


def line(file: str | Path, path: Iterable[str | int]) -> int:
    """Return the line, counted from 1, where the field at ``path`` stands in a YAML file, for error messages.

    If the file lacks the field, return the line of the deepest part of ``path`` that the file has; 0 if it has none.
    """
    node, number = yaml.compose(Path(file).read_text(encoding="utf-8"), _SafeLoader), 0
    for part in path:
        # Part of a path → (node where it stands, node of its value). An item of a list is both.
        if isinstance(node, yaml.SequenceNode):
            inner = dict(enumerate((item, item) for item in node.value))
        else:
            pairs = node.value if isinstance(node, yaml.MappingNode) else ()
            inner = {key.value: (key, value) for key, value in pairs}
        if part not in inner:
            break
        key, node = inner[part]
        number = key.start_mark.line + 1
    return number


def update(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of ``base`` with the values of ``over`` in place of its own. Where both have a mapping, the two are
    merged in the same way, at any depth."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = update(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def typed(value: Any) -> Any:
    """Return a value from the command line with the texts in it converted to numbers, booleans and null, as YAML would:
    Snakemake leaves them as text within mappings and lists."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    if not isinstance(value, str):
        return value
    try:
        read = yaml.safe_load(value)
    except (yaml.YAMLError, ValueError):
        return value
    return read if isinstance(read, (bool, int, float, type(None))) else value


class _SafeLoader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML has no types
    """A YAML loader that raises StudyError for a key given twice; PyYAML's own silently keeps the last."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        """Return the mapping as PyYAML does, after checking that no key is given twice."""
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":  # YAML's merge key, which may occur twice
                if key.value in lines:
                    where = f"in line {lines[key.value]} and in line {line}"
                    raise StudyError((key.value,), f"is given twice, {where}; keep one of the two")
                lines[key.value] = line
        return node


def _read(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file. Raises StudyError, with what is wrong and where, for a file that cannot be
    read, is not YAML, is empty or holds anything but a mapping."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _SafeLoader)
    except StudyError:  # of `_SafeLoader`, for a key that is given twice
        raise
    except Exception as error:  # of the system, of the encoding, and several kinds of PyYAML
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise StudyError((), f"cannot be read ({reason})") from None
    if not isinstance(content, dict):
        raise StudyError((), f"must hold a mapping of fields such as study and scenarios, found {as_yaml(content)}")
    return content
