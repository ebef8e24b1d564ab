"""Turn the scores and logits of one method in one scenario into numbers with intervals, and a list of records."""

import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

from job import script

import numpy as np
from unlearning_audit.adversary import likeness, plausibility
from unlearning_audit.adversary.case import Case, by_logits
from unlearning_audit.adversary.external_case import ExternalCase, usable
from unlearning_audit.artifacts import contributions as added
from unlearning_audit.artifacts import records as lists
from unlearning_audit.artifacts.files import (
    ArtifactError,
    FailedError,
    NoAnswerError,
    NotFiniteError,
    by_hand,
    read_json,
    record_of,
)
from unlearning_audit.artifacts.logits import content
from unlearning_audit.artifacts.rows import Failure, Row, problem, write
from unlearning_audit.plugins import isolation, registry, syntax
from unlearning_audit.plugins.declarations import name_in_study
from unlearning_audit.plugins.guard import PluginError, guard, printable, readable, type_of
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.plugins.names import check_names
from unlearning_audit.randomness.keyed import generator


def evaluated(
    key: str, entry: dict, file: str | None, case: Case, terms: dict
) -> tuple[list[Row | Failure], dict[str, added.Contribution]]:
    """The rows of the metric that the study calls ``key``, and what its deciding numbers rest on; a single failure that
    says why if it fails, or if other models that it needs have failed.

    ``entry``: its ``name`` in the library and its ``options``. A user's own ``file``, or one with a time limit, runs
    in a process of its own, on these ``terms``.
    """
    try:
        if file is None and not terms:
            return computed(key, entry, None, case)
        where = file or registry.source_file("metrics", entry["name"])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "contributions.npz").absolute()
            reply = isolated(lambda: sent(key, entry, file, case, path), where, **terms)
            if "missing" in reply:
                return [Failure("missing", key, reply["missing"])], {}
            plain, parts = reply["rows"], received(path, where)
        rows = [Row(**fields) for fields in plain]
        if file is not None:
            if wrong := problem(rows):
                raise PluginError(f"{readable(file)}: {wrong}")
            check_names([*(row.metric for row in rows), *parts], key, file)
            rows = [replace(row, note=printable(row.note)) for row in rows]
        return rows, parts
    except NoAnswerError as error:
        return [Failure("missing", key, str(error))], {}
    except PluginError as error:
        return [Failure("metric", key, str(error), error.file, error.line, error.trace)], {}


def computed(key: str, entry: dict, file: str | None, case: Case) -> tuple[list[Row], dict[str, added.Contribution]]:
    """What a metric's file returns, by the names of `name_in_study`. Raises PluginError unless it is rows and
    contributions."""
    module = registry.load("metrics", entry["name"], file)
    stem = Path(module.__file__).stem
    options = registry.options("metrics", entry["name"], file)(**entry["options"])
    # What a user's file makes of a sound file is its own failure, and what it finds damaged costs its row alone.
    with guard(module.__file__, but=ArtifactError if file is None else NoAnswerError):
        rows = module.rows(case, options, generator(case.seed, entry["name"]))
        parts = module.contributions(case, options) if hasattr(module, "contributions") else {}
    if not isinstance(rows, list) or not all(isinstance(row, Row) for row in rows):
        raise PluginError(f"{readable(module.__file__)}: rows must return a list of Row, it returned {type_of(rows)}")
    if not isinstance(parts, dict) or not all(isinstance(part, added.Contribution) for part in parts.values()):
        rule = "contributions must map names to Contribution"
        raise PluginError(f"{readable(module.__file__)}: {rule}, it returned {type_of(parts)}")
    return (
        [replace(row, metric=name_in_study(row.metric, key, stem)) for row in rows],
        {name_in_study(name, key, stem): part for name, part in case.for_verdicts(parts).items()},
    )


def listed(entry: dict, case: Case) -> list[dict]:
    """The lines of ``records(case, options)`` of a metric of the library that has such a function; none if it fails,
    which its rows say."""
    if "records" not in syntax.defined(registry.source_file("metrics", entry["name"])):
        return []
    module = registry.load("metrics", entry["name"])
    options = registry.options("metrics", entry["name"])(**entry["options"])
    try:
        with guard(module.__file__, but=ArtifactError):
            return [{name: plain(value) for name, value in line.items()} for line in module.records(case, options)]
    except (NoAnswerError, PluginError):
        return []


def sent(key: str, entry: dict, file: str | None, case: Case, path: Path) -> dict:
    """What `computed` returns, on its way to another process: rows in JSON values, the rest in the file at ``path``; or
    what is missing for it."""
    try:
        rows, parts = computed(key, entry, file, case)
    except NoAnswerError as error:
        return {"missing": str(error)}
    with guard(file or registry.source_file("metrics", entry["name"])):
        added.write(path, parts)
        return {"rows": [{name: plain(value) for name, value in asdict(row).items()} for row in rows]}


def plain(value: object) -> object:
    """A number of NumPy as one of Python."""
    return value.item() if hasattr(value, "item") else value


def received(path: Path, file: str) -> dict[str, added.Contribution]:
    """The contributions that `sent` wrote. Raises PluginError that names the field that is wrong."""
    try:
        return added.read(path)
    except ArtifactError as error:
        raise PluginError(f"{readable(file)}: contributions: {str(error).partition(': ')[2]}") from None


def unchanged(originals: list[str], unlearned: list[str]) -> list[Row]:
    """The row that says that the logits of some batches are those before unlearning: their share, and of how many.

    Nothing is said of models that were only handed on, or, of models from elsewhere, whose originals are not known.
    """
    if originals == unlearned or len(originals) != len(unlearned):
        return []
    pairs = [(content(before), content(after)) for before, after in zip(originals, unlearned, strict=True)]
    same = sum(before == after and "logits.npy" in after for before, after in pairs)
    text = f"logits of {same} of {len(pairs)} batches are identical to those before unlearning"
    return [Row("unchanged", same / len(pairs), n=len(pairs), note=text)] if same else []


def believed(case: Case, external: bool, originals: list[str], unlearned: list[str]) -> tuple[str, list[str]]:
    """Why the logits of a case cannot be what they are said to be, "" if nothing speaks against it, and what is hard to
    believe of them."""
    refused, doubts = plausibility.refusal(case) if external else "", []
    if not refused and originals != unlearned and len(originals) == len(unlearned) and not external:
        rows = likeness.evenly(np.arange(len(case.data.y)))
        before, after = (case.answers(files).of(None, rows) for files in (originals, unlearned))
        refused, doubt = plausibility.mixture(case, before, after)
        doubts += filter(None, [doubt, plausibility.exchanged(case, unlearned, originals)])
    return refused, doubts + (list(plausibility.doubts(case)) if external else [])


def remarks(*groups: list[str]) -> list[str]:
    """Sentences about users' files, from the specs of the jobs that made these files and from this job, and about files
    that were put there by hand."""
    sentences = {}
    for path in (path for group in groups for path in group):
        if Path(path).with_name("spec.json").exists():
            sentences |= dict.fromkeys([*record_of(path).get("remarks", []), *filter(None, [by_hand(path)])])
    return [*sentences, *isolation.REMARKS]


def reads_published(entry: dict) -> bool:
    """Whether a metric of the library reads what result files say in the place of logits."""
    return "published" in registry.declared("metrics", entry["name"])


def judged(
    case: Case, metrics: dict[str, dict], place: dict, originals: list[str], unlearned: list[str]
) -> tuple[list[Row | Failure], dict[str, added.Contribution], list[dict], dict[str, float]]:
    """Rows, contributions and lines of records of all ``metrics``, and the seconds of each; a single row where the
    models failed, or answered what they cannot have answered."""
    external = isinstance(case, ExternalCase)
    published = case.published if external else None
    try:
        _ = published or (case.answers(case.unlearned_files), case.originals and case.answers(case.originals))
        rows = [Failure("attack", name, error) for name, error in case.failed_attacks.items()]
    except FailedError as error:
        return [Failure(error.part, "", str(error))], {}, [], {}
    except NotFiniteError as error:
        return [Failure("diverged", "", str(error))], {}, [], {}
    refused, doubts = ("", []) if published else believed(case, external, originals, unlearned)
    if refused:
        rows = [Failure("method", "", refused)]
    rows += [Row("remark", note=text) for text in (published.sentences if published else ())]
    rows += [Row("doubt", note=text) for text in doubts]
    contributed, lines, seconds = {}, [], {}
    for key, entry in metrics.items() if not refused else ():
        if key not in place["files"] and reads_published(entry) != bool(published):
            continue
        started, file, terms = time.perf_counter(), place["files"].get(key), place.get("terms", {}).get(key, {})
        computed_rows, parts = evaluated(key, entry, file, case, terms)
        rows, contributed = rows + computed_rows, contributed | parts
        lines += [] if file else listed(entry, case)
        seconds[key] = round(time.perf_counter() - started, 3)
    return rows, contributed, lines, seconds


#: Inputs of the rule that a case has one file of, and that it has lists of.
SINGLE = ("scores", "selection")
SEVERAL = ("retrained", "control", "relearned", "compared_relearned", "generated", "compared_generated", "sampled",
           "compared_sampled")  # fmt: skip


def case_of(data: str, splits: list[str], originals: list[str], unlearned: list[str], **files: list[str]) -> Case:
    """The case of models that were unlearned here, from the rule's inputs."""
    logits = {"unlearned": unlearned} | {name: files.get(name, []) for name in ("retrained", "control")}
    readings = [(paths, files.get(f"{name}_readings", [])) for name, paths in logits.items()]
    features = [(paths, files.get(f"{name}_features", [])) for name, paths in {"original": originals, **logits}.items()]
    return Case(
        data, splits, originals, unlearned, readings=by_logits(*readings),
        hidden={path: hidden for paths, files in features for path, hidden in zip(paths, files, strict=False)},
        **{f"{name}_file": files[name][0] for name in SINGLE if name in files},
        **{f"{name}_files": files[name] for name in SEVERAL if name in files},
    )  # fmt: skip


@script
def metrics(
    metrics: str, contributions: str, records: str, settings: dict, place: dict, **files: str | list[str]
) -> dict:
    """A method that failed, or whose logits are not finite, gets one row that says so, and no number; so does every
    attack and every metric that fails, beside the numbers of the others.

    ``contributions``: where what models and samples add to the numbers that decide goes; ``records``: where the lines
    of records go; ``files``: the inputs, as `workflow.nodes.ROLES` names them; of models from elsewhere
    ``populations``, the three files of each, ``scores``, and ``reasons``, why attacks failed.
    """
    unread: list[str] = []
    if "populations" in files:
        names, paths, unread = usable(settings["populations"], list(files["populations"]))
        case = ExternalCase.of(names, paths, *files.get("scores", ()))
        _, _, *originals = case.files.get("original", ["", ""])  # data, membership and logits, if it is there
        case.design = settings["design"]
        case.missing = read_json(files["reasons"][0]).get("missing", {}) if "reasons" in files else {}
    else:
        case, originals = case_of(**files), list(files["originals"])
    case.seed, case.draws = settings["seed"], settings["bootstrap"]
    case.sets = {"paper": settings["paper_set"], "adaptive": settings["adaptive_set"]}
    unlearned = list(case.unlearned_files)
    rows, contributed, lines, seconds = judged(case, settings["metrics"], place, originals, unlearned)
    doubts = (*unread, *remarks(unlearned, files.get("scores", [])))
    rows += [*(Row("doubt", note=text) for text in doubts), *unchanged(originals, unlearned)]
    added.write(contributions, contributed)
    lists.write(records, lines)
    write(metrics, rows)
    return {"rows": len(rows), "seconds_of": seconds}
