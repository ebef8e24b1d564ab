"""Try a user's attack, metric or protocol in a study that takes seconds."""

import contextlib
import io
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from unlearning_audit.evaluation.rows import Row

#: Kinds of plug-ins that are tried in a small study.
KINDS = ("attacks", "metrics", "protocols")

#: The most rows that are printed.
MOST = 12

#: The content of the small study's file. Wrong labels can only be memorised, so that attacks find something.
STUDY: dict[str, Any] = {
    "study": "tiny",
    "bootstrap": 100,
    "scenarios": {
        "main": {
            "data": {"name": "digits", "test_size": 100, "size": 240, "label_noise": 0.2},
            "model": {"name": "mlp", "hidden": [16]},
            "recipe": {"epochs": 8, "lr": 0.05, "momentum": 0.9, "batch_size": 32},
            "protocol": {"name": "swap", "alpha": 0.25, "pairs": 2, "models_per_split": 1},
            "methods": {"none": {}, "retrain": {}, "finetune": {"epochs": 1}},
            "attacks": ["confidence", "random"],
            "controls": False,
        }
    },
}


def attempt(file: str, fields: dict[str, Any]) -> str:
    """Run a small study with a user's attack, metric or protocol, the Python ``file``; return a text with the first
    `MOST` numbers of the metric, of the AUC of the attack, or of Q and accuracies under the protocol, and their count.

    Parameters
    ----------
    fields
        Further fields of the plug-in's entry in a study, such as its options.

    Raises
    ------
    ValueError
        In one sentence if the study is not valid, or if the file fails in it.
    """
    from unlearning_audit.plugins import registry
    from unlearning_audit.plugins.guard import readable
    from unlearning_audit.report import failures
    from unlearning_audit.stages import collect, here
    from unlearning_audit.study import reading
    from unlearning_audit.workflow import parameters, plan, trial

    kind = trial.kind(file)
    name = trial.name_of(file, kind)
    plugin = {"file": str(Path(file).resolve()), **fields}
    scenario = dict(STUDY["scenarios"]["main"])
    if kind in ("attacks", "metrics"):
        scenario[kind] = {name: plugin}
    else:
        scenario["protocol"] = {"name": name, **plugin}
        if not registry.protocol(name, file).attacked:
            scenario["attacks"] = []
    whole = reading.read({**STUDY, "scenarios": {"main": scenario}}, file)
    with tempfile.TemporaryDirectory(prefix="audit-try-") as folder, contextlib.chdir(folder):
        made, near = plan.make(whole), readable(plugin["file"])
        try:
            for node in made.all():
                with contextlib.redirect_stderr(io.StringIO()):  # the error's sentence is enough
                    here.run(node)
            records = collect.gathered(parameters.collect(made)["cases"])
            for failed in failures.lines(records):  # the first line is enough
                raise ValueError(failed)
        except ValueError as error:
            raise ValueError(f"{file}: {str(error).replace(near, file)}") from None
    # Quantities whose rows are printed: those that show an attack or a protocol, or all that a user's metric declares.
    shown = {"attacks": ["auc"], "protocols": ["q", "accuracy"]}
    names = shown.get(kind) or [quantity.name for quantity in registry.quantities(name, file, name)]
    rows = [(record.method, record.row) for record in records if isinstance(record.row, Row)]
    matches = [(method, row) for method, row in rows if any(fnmatchcase(row.metric, name) for name in names)]
    lines = [f"{file} runs correctly. In a study of digits that is too small to show what it finds:"]
    for method, row in matches[:MOST]:
        about = " ".join(filter(None, [row.metric, row.attack, *(f"{name} {value}" for name, value in row.place)]))
        # Without an interval its ends are NaN, and only NaN differs from itself.
        interval = f" [{row.ci_low:.3g}, {row.ci_high:.3g}]" if row.ci_low == row.ci_low else ""
        lines.append(f"  {method:<12}{about:<32}{row.value:.3g}{interval} {row.note}".rstrip())
    return "\n".join([*lines, f"  {len(matches)} rows in all."])
