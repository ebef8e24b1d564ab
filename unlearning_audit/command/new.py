"""Run ``audit new``: write a complete file to start from. Templates are in resources/start."""

from pathlib import Path

import yaml

from unlearning_audit.plugins import registry
from unlearning_audit.report import templates
from unlearning_audit.workflow import trial

#: Kind → how a study names a file of this kind.
KINDS = {
    "study": "",
    "method": "under methods: {name}: {{file: {file}}}",
    "function": "under methods: {name}: {{file: {file}}}",
    "metric": "under metrics: {name}: {{file: {file}}}",
    "protocol": "as the protocol: {{name: {name}, file: {file}}}",
    "attack": "under attacks: {name}: {{file: {file}}}",
    "model": "as the model: {{name: {name}, file: {file}}}",
    "data": "as the data: {{name: {name}, file: {file}, test_size: 0.2}}",
    "reader": "",
    "signal": "",
}

#: The data, model and protocol of a new study; and the entries of a user's file in their place.
CHOICES = {
    "data": "{name: digits, test_size: 197}",
    "models": "{name: mlp, hidden: [64]}",
    "protocols": "{name: swap, alpha: 0.25, pairs: 8, models_per_split: 2}",
}
OF_FILE = {
    "data": "{{name: {name}, file: {file}, test_size: 0.1}}",
    "models": "{{name: {name}, file: {file}}}",
    "protocols": "{{name: {name}, file: {file}}}",
}


def write(file: str, kind: str, files: list[str]) -> str:
    """Write a new file from a template, and return a sentence on what to do next.

    Parameters
    ----------
    kind
        One of `KINDS`; "" to infer it from the ending of the name (a study or a method).
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
    path.write_text(environment.get_template(template).render(**fields, **lines), encoding="utf-8")
    if kind == "study":
        return f"Wrote {file}. Next: audit check {file}, then audit run {file}"
    if kind == "signal":
        return f"Wrote {file}. Next: audit try {file}, then NEEDS = {path.stem!r} in an attack or metric beside it"
    if kind == "reader":
        return f"Wrote {file}. Next: audit try {file} --on RESULTS, then audit read RESULTS --reader {file}"
    advice = f"A study names it {KINDS[kind].format(**fields)}; audit new mine.yaml --with {file} writes one"
    return f"Wrote {file}. Next: audit try {file}. {advice}"


def entries(arguments: list[str]) -> dict[str, object]:
    """Return what the template of a new study shows for a user's files, each given as FILE or FILE:FUNCTION.

    The dict maps methods, attacks and metrics to lists of YAML lines; data, models and protocols to one choice, which a
    user's file replaces; and attacked to whether the protocol has attacks. Raises ValueError for a reader or a signal,
    which no study names.
    """
    lines: dict[str, list[str]] = {"methods": [], "attacks": [], "metrics": []}
    choices, attacked = dict(CHOICES), True
    for argument in arguments:
        file, _, function = argument.partition(":")
        kind = trial.kind(file, function)
        name = trial.name_of(file, kind)
        if kind == "readers":
            advice = f"audit read RESULTS --reader {file} writes a study of your files RESULTS"
            raise ValueError(f"--with {file}: a reader needs result files; {advice}")
        if kind == "signals":
            advice = f"name an attack or a metric beside it with NEEDS = {Path(file).stem!r}"
            raise ValueError(f"--with {file}: a signal is read by others; {advice}")
        if kind in lines:
            also = f", function: {scalar(function)}" if function else ""
            lines[kind].append(f"{name}: {{file: {scalar(file)}{also}}}")
        else:
            choices[kind] = OF_FILE[kind].format(name=name, file=scalar(file))
            if kind == "models" and trial.takes_pictures(file):
                choices["data"] = choices["data"].replace("name: digits", "name: digits, images: true")
            if kind == "protocols":
                attacked = registry.protocol(name, file).attacked
    return {**choices, **lines, "attacked": attacked}


def scalar(text: str) -> str:
    """Return text as a YAML scalar within braces, quoted if necessary."""
    # A list of one text is written as [text], in one line of any width; the brackets are cut.
    return str(yaml.safe_dump([text], default_flow_style=True, allow_unicode=True, width=1 << 20).strip()[1:-1])
