"""Run ``audit new``: write a complete file to start from. Templates are in resources/start."""

from pathlib import Path

import yaml

from unlearning_audit.plugins import registry
from unlearning_audit.report import templates
from unlearning_audit.workflow import trial

#: What can be written.
KINDS = ("study", "method", "function", "metric", "protocol", "attack", "model", "data", "reader", "signal")


def write(file: str, kind: str, files: list[str]) -> str:
    """Write a new file from a template, and return a sentence on what to do next.

    Parameters
    ----------
    file
        The path of the new file.
    kind
        One of `KINDS`; if it is "", the ending of ``file`` decides: .yaml is a study, .py a method.
    files
        A user's files, FILE or FILE:FUNCTION, that a new study names.

    Raises
    ------
    ValueError
        For a file that exists or does not fit the kind, and for ``files`` without a study.
    """
    path = Path(file)
    kind = kind or {".yaml": "study", ".yml": "study", ".py": "method"}.get(path.suffix, "")
    suits_kind = (path.suffix != ".py") if kind == "study" else path.suffix == ".py"
    if not kind or not suits_kind:
        raise ValueError(f"{file}: give the name of a study, such as mine.yaml, or of a method, such as my_method.py")
    if files and kind != "study":
        raise ValueError("--with: works with a study only, such as audit new mine.yaml --with my_method.py")
    if path.exists():
        raise ValueError(f"{file}: this file already exists; give another name")
    # The kind of plug-in, by which a name is found that the library does not use: "methods" for a method or function.
    plugin_kind = {"study": "study", "function": "methods", "data": "data"}.get(kind, f"{kind}s")
    fields = {"file": file, "name": trial.name_of(file, plugin_kind), "title": path.stem.replace("_", " ").capitalize()}
    lines = entries(files) if kind == "study" else {}
    template = f"{kind}.yaml.jinja" if kind == "study" else f"{kind}.py.jinja"
    environment = templates.environment("start", keep_trailing_newline=True)
    environment.filters["scalar"] = scalar
    path.write_text(environment.get_template(template).render(**fields, **lines), encoding="utf-8")
    if kind == "study":
        return f"Wrote {file}. Next: audit check {file}, then audit run {file}"
    if kind == "signal":
        return f"Wrote {file}. Next: audit try {file}, then NEEDS = {path.stem!r} in an attack or metric beside it"
    if kind == "reader":
        return f"Wrote {file}. Next: audit try {file} --on RESULTS, then audit read RESULTS --reader {file}"
    name, size = fields["name"], ", test_size: 0.2" if kind == "data" else ""
    entry = f"as the {kind}: {{name: {name}, file: {file}{size}}}"
    if plugin_kind in ("methods", "attacks", "metrics"):
        entry = f"under {plugin_kind}: {name}: {{file: {file}}}"
    advice = f"A study names it {entry}; audit new mine.yaml --with {file} writes one"
    return f"Wrote {file}. Next: audit try {file}. {advice}"


def entries(arguments: list[str]) -> dict[str, object]:
    """Return what the template of a new study shows for a user's files, each given as FILE or FILE:FUNCTION.

    ``own``: kind → for each file its name, file and function. ``pictures``: whether one of the user's models reads
    pictures. ``attacked``: whether all protocols of the user need attacks, True without such protocols. Raises
    ValueError for a reader or a signal, which no study names.
    """
    own: dict[str, list[dict[str, str]]] = {kind: [] for kind in registry.KINDS}
    for argument in arguments:
        file, _, function = argument.partition(":")
        kind = trial.kind(file, function)
        if kind == "readers":
            advice = f"audit read RESULTS --reader {file} writes a study of your files RESULTS"
            raise ValueError(f"--with {file}: a reader needs result files; {advice}")
        if kind == "signals":
            raise ValueError(f"--with {file}: name the attack or metric that reads it, NEEDS = {Path(file).stem!r}")
        own[kind].append({"name": trial.name_of(file, kind), "file": file, "function": function})
    pictures = any(trial.takes_pictures(model["file"]) for model in own["models"])
    attacked = all(registry.protocol(entry["name"], entry["file"]).attacked for entry in own["protocols"])
    return {"own": own, "pictures": pictures, "attacked": attacked}


def scalar(text: str) -> str:
    """Return text as a YAML scalar within braces, quoted if necessary."""
    # A list of one text is written as [text], in one line of any width; the brackets are cut.
    return str(yaml.safe_dump([text], default_flow_style=True, allow_unicode=True, width=1 << 20).strip()[1:-1])
