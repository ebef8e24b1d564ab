"""Run ``audit read``: make a study and its report from result files of other tools."""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from unlearning_audit import readers
from unlearning_audit.command.arrays import ATTACKS
from unlearning_audit.report import ending
from unlearning_audit.report.tables import formats
from unlearning_audit.stages import failures, here
from unlearning_audit.store import cells, tables
from unlearning_audit.store.files import read_json
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan, trial


def write_study(
    paths: list[str],
    *,
    retrain: list[str],
    none: list[str],
    alone: bool,
    reader: str,
    columns: list[str],
    roles: str,
    study: str,
    spread: Sequence[str] = (),
) -> str:
    """Read result files of other tools, write a study of them and the files that it needs, print a summary, and return
    the path of the study.

    Beside the models lie roles.csv, which says which model has which role, and recomputed.csv: numbers that the result
    files print, beside the same ones computed from their samples.

    Raises ValueError with one sentence for what cannot be read or is ambiguous.

    Parameters
    ----------
    paths
        Result files or folders, besides those of retrained models (``retrain``) and of models before unlearning
        (``none``).
    alone
        Whether to go on if there is no retrained model.
    reader
        The only format that is looked for, or the file of a user's reader; "" for any format.
    columns
        WHAT=NAME of a table's column.
    roles
        The table of roles that the user edited; "" if the user gives none.
    study
        The file to write.
    spread
        NAME=SD, the standard deviation of a metric over retrained models.
    """
    file = Path(study)
    if file.suffix not in (".yaml", ".yml"):
        raise ValueError(f"{file}: the study's file must end in .yaml")
    named = _pairs(columns, "--columns: give WHAT=NAME, such as --columns loss=my_loss --columns side=which", str)
    imported = readers.imported(
        [Path(path) for path in paths], retrain=[Path(path) for path in retrain], none=[Path(path) for path in none],
        reader=reader, options={"columns": named} if named else None, alone=alone, roles=Path(roles) if roles else None,
    )  # fmt: skip
    folder = file.parent / f"{file.stem}_models"
    content = readers.write(imported, folder, trial.name_of(file, "study"))
    if spread:
        advice = "--retrain-spread: give NAME=SD, such as --retrain-spread auc=0.03"
        content["retrain_spread"] = _pairs(spread, advice, float)
    head = "# Written by audit read; paths are relative to the folder from which the study is run.\n"
    file.write_text(head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    agreements = folder / "recomputed.csv"
    agreements.unlink(missing_ok=True)  # an earlier call may have left one
    if rows := readers.agreement_rows(imported):
        tables.write_rows(agreements, rows, tuple(rows[0]))  # all rows have the same columns
    decided = readers.roles(imported.groups, imported.unread)
    tables.write_rows(folder / "roles.csv", decided, readers.ROLE_COLUMNS)
    print("\n".join([*_table(decided), *_summary(imported, agreements)]))
    print(f"Wrote {file} and {folder}/. If a role is wrong, edit {folder}/roles.csv and add --roles {folder}/roles.csv")
    return str(file)


def write_logits(target: list[str], retrain: list[str], none: list[str], labels: str, heldout: str, study: str) -> str:
    """Write a study that audits logits in files of arrays, and copies of these arrays beside it; return the path of the
    study.

    Each file of logits has [models, samples, classes] or, for one model, [samples, classes]; the models of all files of
    an argument are joined. Raises ValueError with one sentence for what is missing or does not fit.

    Parameters
    ----------
    target
        Files of logits after unlearning.
    retrain
        Files of logits of retrained models.
    none
        Files of logits before unlearning.
    labels
        The file of the classes.
    heldout
        The file that says which samples were held out; all other samples were to be forgotten. "" if no sample was held
        out.
    study
        The path of the study.
    """
    if not (retrain and labels):
        needed = "the logits of retrained models on the same samples, and the class of every sample"
        raise ValueError(f"--target: needs {needed}; give --retrain FILE and --labels FILE")
    file = Path(study)
    folder = file.parent / f"{file.stem}_models"
    y = readers.load(Path(labels), "iu")  # kinds of dtypes: "iu" whole numbers, "b" true or false, "f" real numbers
    unseen = readers.load(Path(heldout), "b") if heldout else np.zeros(len(y), bool)
    for population, names in {"target": target, "retrain": retrain, "original": none}.items():
        if models := [readers.load(Path(name), "f") for name in names]:
            (folder / population).mkdir(parents=True, exist_ok=True)
            # Files of one model lack the first dimension, models, and get it.
            stacked = np.concatenate([logits.reshape(-1, *logits.shape[-2:]) for logits in models])
            np.save(folder / population / "logits.npy", stacked)
    for name, array in {"labels": y, "forget": ~unseen, "heldout": unseen}.items():
        np.save(folder / f"{name}.npy", array)
    protocol = {"name": "external", "path": folder.as_posix()}
    scenarios = {"logits": {"protocol": protocol, "methods": ["unlearned"], "attacks": list(ATTACKS)}}
    file.write_text(yaml.safe_dump({"study": trial.name_of(file, "study"), "scenarios": scenarios}, sort_keys=False))
    others = f"{unseen.sum()} held out" if unseen.any() else "none held out (--heldout)"
    print(f"Wrote {file} and {folder}/: {(~unseen).sum()} samples to be forgotten, {others}.")
    return str(file)


def audit(file: str) -> Path:
    """Compute and report a study of imported models in this process, print its answer, and return the path of the
    report.

    Raises ValueError with a line for each attack, metric or method that failed, after everything else has been
    computed.
    """
    made = plan.make(reading.read(*reading.load([file])))
    page = here.make(made, file, progress=True)
    failures.failures(str(page.with_name("metrics.csv")), str(page), str(page.with_name("failures.txt")))
    ending.show(made.study.name, "results", sys.stdout, f"Next: audit report {file} --dossier")
    return page


def json_values(file: str, page: Path | None) -> dict[str, Any]:
    """Return what ``audit read --json`` prints: the study's ``file``, the role of every result that was read and, if
    there is a report (``page``), the fields of its summary."""
    roles = Path(file).with_name(f"{Path(file).stem}_models") / "roles.csv"
    answer = read_json(page.with_name("summary.json")) if page else {}
    return {"file": file, "roles": cells.table(roles) if roles.exists() else [], **answer}


#: The most lines of the table of roles that are printed; the file has all.
SHOWN = 40


def _table(roles: list[dict[str, str]]) -> list[str]:
    """Return lines for the terminal: a table of the first `SHOWN` results that were read and their roles (model before
    unlearning, retrained, …), how many further results there are, and a blank line. Empty columns are left out.

    ``roles``: the rows of roles.csv.
    """
    names = ("file", "entry", "role", "method", "replicate", "scenario", "why")
    columns = [name for name in names if any(row[name] for row in roles)]
    # Paths are shown relative to the folder that holds all files; a single path, to the working directory.
    folders = [os.path.dirname(os.path.abspath(row["file"])) for row in roles]
    common = os.path.commonpath(folders) if len(roles) > 1 else os.getcwd()
    shown = [{**row, "file": os.path.relpath(row["file"], common)} for row in roles[:SHOWN]]
    lines = formats.aligned([tuple(columns), *(tuple(row[name] for name in columns) for row in shown)])
    if len(roles) > SHOWN:
        lines.append(f"… and {len(roles) - SHOWN} more in roles.csv")
    return [*lines, ""]


def attempt(file: str, place: str, options: dict[str, Any]) -> str:
    """Try a user's reader, a Python ``file``, on result files at or below the path ``place``; return a text with a line
    for every model that the reader found.

    Parameters
    ----------
    options
        The options of the reader.

    Raises
    ------
    ValueError
        With one sentence if no path is given, or if the reader fails.
    """
    if not place:
        raise ValueError(f"{file}: this is a reader of result files; name one, or a folder: audit try {file} --on PATH")
    models = readers.models(Path(place), file, options)
    lines = [f"{file} runs correctly. At {place} it reads {len(models)} model{'s' if len(models) > 1 else ''}:"]
    for model in models:
        columns = [*model.scores, *model.readings]
        about = f"{int(model.forget.sum())} forgotten and {int(model.heldout.sum())} held-out samples"
        source = f"{model.file}:{model.entry}" if model.entry else model.file
        lines.append(f"  {source}: {model.name}; {about}; {', '.join(columns) or 'nothing of any sample'}")
    return "\n".join([*lines, f"Next: audit read {place} --reader {file}"])


def _pairs(given: Sequence[str], advice: str, convert: Callable[[str], Any]) -> dict[str, Any]:
    """Return name → value from texts "NAME=VALUE", each value converted by ``convert``. Raises ValueError with the
    sentence ``advice`` for any other text, and for a value that cannot be converted."""
    pairs = [text.partition("=") for text in given]  # (name, "=", value)
    with suppress(ValueError):  # of ``convert``; the error below is raised then
        if all(name and value for name, _, value in pairs):
            return {name: convert(value) for name, _, value in pairs}
    raise ValueError(advice)


def _summary(imported: readers.Imported, path: Path) -> list[str]:
    """Return lines for the terminal on what was read: files by format, the models of each scenario with remarks on
    them, what was left out and why, and the first ten printed numbers that do not match their samples.

    Parameters
    ----------
    imported
        What `readers.imported` returned.
    path
        The file with all comparisons of printed numbers.
    """
    files = Counter(imported.formats.values())
    lines = [f"Read {sum(files.values())} files: {', '.join(f'{n} {name}' for name, n in files.items())}."]
    for group in imported.groups:
        members = {"none": group.none, "retrain": group.retrain, "retrain_control": group.control, **group.methods}
        # The methods of the scenario, each with the number of its models if there are several.
        sizes = ", ".join(name + (f" ({len(models)} models)" if len(models) > 1 else "")
                          for name, models in members.items() if models)  # fmt: skip
        lines.append(f"  {group.name}: {sizes}; {len(group.samples)} samples to forget")
        remarks = readers.notes_on_retrained(group.retrain) if group.retrain else []
        lines += [f"    {note}" for note in (*group.notes, *remarks)]
    lines += _left_out(imported.unread)
    left_out = [item for group in imported.groups for model in group.models for item in model.left_out.items()]
    sentences = Counter(f"{name} is left out, {reason}" for name, reason in left_out)
    lines += [f"  {sentence} ({count} logs)" for sentence, count in sentences.most_common(5)]
    every = ((file, agreement) for file, agreements in imported.agreements.items() for agreement in agreements)
    comparable = [(file, agreement) for file, agreement in every if agreement.agrees is not None]
    wrong = [(file, agreement) for file, agreement in comparable if not agreement.agrees]
    if comparable:
        equal = f"{len(comparable) - len(wrong):,} of {len(comparable):,} printed numbers"
        lines.append(f"{equal} equal those that their samples give, to 1e-6 ({path}).")
    for file, agreement in wrong[:10]:
        computed = f"but its samples give {agreement.recomputed:.8g}"
        lines.append(f"  {file}: {agreement.quantity} is printed as {agreement.printed:.8g}, {computed}")
    return lines


def _left_out(unread: list[Any]) -> list[str]:
    """Return lines on results that could not be read or compared (``unread``): one example for each of the five most
    frequent reasons, and the number of results with other reasons; [] if nothing was left out."""
    if not unread:
        return []
    # Sentences that differ only in numbers and the file's name state the same reason.
    reasons: dict[str, list[str]] = {}
    for result in unread:
        without_numbers = re.sub(r"[\d.]*\d", "", result.sentence.replace(str(result.file), ""))
        reasons.setdefault(without_numbers, []).append(result.sentence)
    lines = [f"Left out {len(unread)} files, or models in them:"]
    most = sorted(reasons.values(), key=len, reverse=True)
    for example, *others in most[:5]:
        lines.append(f"  {example}" + (f" (and {len(others)} more for this reason)" if others else ""))
    return [*lines, f"  and {sum(map(len, most[5:]))} for other reasons"] if len(most) > 5 else lines
