"""From scores and logits to numbers with intervals: run the metrics of an evaluation."""

import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.evaluation import mistakes, plausibility
from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.logits import checksums
from unlearning_audit.evaluation.rows import Failure, Row, problem
from unlearning_audit.evaluation.scoring import Entry
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.declarations import name_in_study
from unlearning_audit.plugins.guard import PluginError, guard, readable, type_of
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.plugins.names import check_names
from unlearning_audit.plugins.registry import Module
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.store.files import ArtifactError, Check, FailedError, NoAnswerError, NotFiniteError

#: The rule of an effect that is not compared with retraining. Its margin does not exist, so a verdict raises an error.
NO_RULE = DecisionRule(direction=1, margin="none")


@dataclass(frozen=True)
class Numbers:
    """The results of metrics.

    Parameters
    ----------
    rows
        The rows of ``metrics.csv``.
    effects
        Name → what models and samples contribute to a deciding number.
    records
        The lines of ``records.csv``, each column → value.
    parts
        For each metric that did not fail, which ``rows`` and ``records`` (first, end) and which ``effects`` (names) are
        its own, and the ``seconds`` that it took.
    """

    rows: list[Row | Failure]
    effects: dict[str, Effect] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)


def measure(
    evaluation: Evaluation,
    metrics: Mapping[str, Mapping[str, Any]],
    *,
    files: Mapping[str, str] | None = None,
    terms: Mapping[str, Mapping[str, Any]] | None = None,
    known: Mapping[str, Numbers] | None = None,
) -> Numbers:
    """Compute the ``metrics`` of an evaluation.

    If the models failed, the result is a single `Failure`; if their logits are impossible, a `Failure`, remarks and
    doubts. Otherwise there is first a `Failure` for each attack that failed, then remarks and doubts, then the numbers
    of metrics. A metric that fails has a `Failure` in place of its numbers. Metrics of the library that read logits are
    left out where there are only published scores, and the reverse.

    Parameters
    ----------
    evaluation
        The models and the scores of attacks on them.
    metrics
        Name of a metric in the study → its ``name`` in the library and its ``options``.
    files
        Metric → a user's own file.
    terms
        Metric → the limits of the process in which it runs.
    known
        Metric → its numbers of an earlier run on the same models, which are used unchanged.

    Returns
    -------
    Numbers
        Rows, effects and records of all metrics.
    """
    files, terms, known = files or {}, terms or {}, known or {}
    published = evaluation.published  # scores of result files in place of logits, else None
    try:
        if published is None:
            evaluation.require_logits()
    except (FailedError, NotFiniteError) as error:
        # A FailedError names the part that failed; logits that are not finite mean that models diverged.
        return Numbers([Failure(getattr(error, "part", "diverged"), "", str(error))])
    rows: list[Row | Failure] = [Failure("attack", name, error) for name, error in evaluation.failed_attacks.items()]
    check = plausibility.refusal_and_doubts if evaluation.imported else mistakes.refusal_and_doubts
    refused, doubts = ("", []) if published else check(evaluation)
    if refused:  # no metric is computed from impossible logits
        rows, metrics = [Failure("method", "", refused)], {}
    rows += [Row("remark", note=text) for text in evaluation.sentences]
    rows += [Row("doubt", note=text) for text in doubts if text]
    numbers = Numbers(rows)
    for key, entry in metrics.items():
        # A metric of the library reads either logits or published scores.
        if key not in files and ("published" in registry.declared("metrics", entry["name"])) != bool(published):
            continue
        started, first_row, first_record = time.perf_counter(), len(numbers.rows), len(numbers.records)
        result = known.get(key) or evaluate(key, entry, files.get(key), evaluation, terms.get(key, {}))
        seconds = result.parts[key]["seconds"] if key in known else round(time.perf_counter() - started, 3)
        numbers.rows.extend(result.rows)
        numbers.effects.update(result.effects)
        numbers.records.extend(result.records)
        if not any(isinstance(row, Failure) for row in result.rows):
            lines = {"rows": [first_row, len(numbers.rows)], "records": [first_record, len(numbers.records)]}
            numbers.parts[key] = {**lines, "effects": [*result.effects], "seconds": seconds}
    return numbers


def evaluate(key: str, entry: Entry, file: str | None, evaluation: Evaluation, terms: Entry) -> Numbers:
    """Return the numbers of one metric. If the metric fails, or models that it needs have failed, return a single
    failure that says why.

    A user's metric, or one with a time limit, runs in a separate process.

    Parameters
    ----------
    key
        The metric's name in the study.
    entry
        The metric's ``name`` in the library and its ``options``.
    file
        A user's own file, or None.
    terms
        The limits of the process; empty if there are none.
    """
    apart = file or (registry.source_file("metrics", entry["name"]) if terms else None)
    try:
        return Numbers(**isolated(lambda: run_metric(key, entry, file, evaluation), apart, **terms))
    except NoAnswerError as error:
        return Numbers([Failure("missing", key, str(error))])
    except PluginError as error:
        return Numbers([Failure("metric", key, str(error), error.file, error.line, error.trace)])


def run_metric(key: str, entry: Entry, file: str | None, evaluation: Evaluation) -> dict[str, Any]:
    """Load one metric and run it; return its "rows", its "effects" as verdicts use them, and the lines of "records.csv"
    that a metric of the library computes. Rows and lines hold numbers of Python, not of NumPy; rows and effects are
    named after ``key``.

    Parameters
    ----------
    key
        The metric's name in the study.
    entry
        The metric's ``name`` in the library and its ``options``.
    file
        A user's own file, or None.

    Raises
    ------
    PluginError
        If the metric fails, or returns anything but rows and effects, or if rows and effects of a user's metric are not
        what they must be.
    """
    module = registry.load("metrics", entry["name"], file)
    stem, where = Path(module.__file__).stem, readable(module.__file__)
    options = registry.options("metrics", entry["name"], file)(**entry["options"])
    # All errors but `passing` become a PluginError, which costs the numbers of this metric only. A damaged file that a
    # metric of the library reads is an ArtifactError: it passes, and ends the job.
    passing = ArtifactError if file is None else NoAnswerError
    with guard(module.__file__, but=passing):
        if hasattr(module, "rows"):
            rng = generator(evaluation.seed, entry["name"])
            rows = registry.call("metrics", module, "rows", evaluation, options, rng)
            comparable = hasattr(module, "effects")
            effects = registry.call("metrics", module, "effects", evaluation, options) if comparable else {}
        else:
            effect = effect_of_values(module, evaluation, options)
            rows = [Row("", *astuple(effect.estimate()))]  # metric, then value, limits, n and note
            effects = {"": effect} if hasattr(module, "RULE") else {}
        records = module.records(evaluation, options) if file is None and hasattr(module, "records") else []
        if not isinstance(rows, list) or not all(isinstance(row, Row) for row in rows):
            raise PluginError(f"{where}: rows must return a list of Row, it returned {type_of(rows)}")
        if not isinstance(effects, dict) or not all(isinstance(effect, Effect) for effect in effects.values()):
            raise PluginError(f"{where}: effects must map names to Effect, it returned {type_of(effects)}")
        rows = [replace(Row(*map(plain, astuple(row))), metric=name_in_study(row.metric, key, stem)) for row in rows]
        for_verdicts = evaluation.for_verdicts(effects)
        effects = {name_in_study(name, key, stem): effect for name, effect in for_verdicts.items()}
        if file is not None:
            for name, effect in effects.items():
                Effect.checked(Check(f"effects: {name}", effect.arrays()))
            if wrong := problem(rows):
                raise PluginError(f"{where}: {wrong}")
            check_names([*(row.metric for row in rows), *effects], key, file)
    lines = [{name: plain(value) for name, value in line.items()} for line in records]
    return {"rows": rows, "effects": effects, "records": lines}


def effect_of_values(module: Module, evaluation: Evaluation, options: Settings) -> Effect:
    """Return what the function ``value`` of a metric gives for the audited models and the signals in its ``NEEDS``, as
    an effect with the metric's ``RULE``. Models of one block and one split are repeats of one another.

    Without a ``RULE``, the effect has `NO_RULE`: it serves for the mean and its interval, and must not be used for
    verdicts. Raises ValueError unless there is one finite number for each model.
    """
    models = evaluation.targets
    samples = np.arange(models.forget.shape[1])
    signals = {
        name: evaluation.signal(name, evaluation.unlearned_files, evaluation.target, samples)
        for name in registry.needed_signals("metrics", module.__name__, module.__file__)
    }
    value = np.asarray(registry.call("metrics", module, "value", models, options, **signals))
    one_each = value.shape == models.block.shape and value.dtype.kind in "fiub"
    if not one_each or not np.isfinite(value).all():
        found = value.tolist() if one_each else f"{value.dtype} {list(value.shape)}"
        demand = f"an array of {len(models.block)} finite numbers, one for each model"
        raise ValueError(f"value must return {demand}, it returned {found}")
    rule = getattr(module, "RULE", NO_RULE)
    return single(value=value.astype(np.float64), unit=models.block, split=models.split, rule=rule)


def plain(value: Any) -> Any:
    """Convert a number of NumPy to one of Python. Any other value is returned unchanged."""
    return value.item() if hasattr(value, "item") else value


def unchanged(originals: list[str], unlearned: list[str]) -> list[Row]:
    """Return a row "unchanged" if unlearning left the logits of some batches identical: the share of such batches, with
    the number of batches as ``n``.

    No row if both are the same files, as for the method none, or if they differ in number, because the originals of
    imported models are unknown.

    Parameters
    ----------
    originals, unlearned
        A file of logits for each batch, before and after.
    """
    if originals == unlearned or len(originals) != len(unlearned):
        return []
    pairs = [(checksums(before), checksums(after)) for before, after in zip(originals, unlearned, strict=True)]
    # The file of a method that failed has no logits.
    same = sum(before == after and "logits.npy" in after for before, after in pairs)
    text = f"logits of {same} of {len(pairs)} batches are identical to those before unlearning"
    return [Row("unchanged", same / len(pairs), n=len(pairs), note=text)] if same else []
