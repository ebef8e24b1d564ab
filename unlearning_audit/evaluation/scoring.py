"""From logits to scores: attacks learn from shadow models and score every target sample."""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.shadow import Score, Shadow, known_mask, needs
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, guard, readable, type_of
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.plugins.registry import Module, load, source_file
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.store import tables
from unlearning_audit.store.files import NoAnswerError

#: Why an attack that fits a model per sample cannot be evaluated.
OTHER_SAMPLES = (
    "the shadow models cover other samples than the audited models are asked about: this attack needs the same samples "
    "in both, each with shadow models that saw, or forgot, it and others that never did"
)

#: A name in the library and options, or the limits of a process.
Entry = Mapping[str, Any]


def score(
    evaluation: Evaluation,
    attacks: Mapping[str, Entry],
    *,
    seed: int = 0,
    own_rows: bool = False,
    files: Mapping[str, str] | None = None,
    terms: Mapping[str, Entry] | None = None,
    known: Mapping[tuple[str, str], dict[str, np.ndarray]] | None = None,
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Score the audited models of ``evaluation`` by ``attacks``, each in all of its forms.

    An attack that fails loses its own scores only, and the reason is printed to standard error. Without any score, the
    columns have no rows.

    Parameters
    ----------
    evaluation
        The models. Its ``missing`` receives why an attack could not be evaluated in a form.
    attacks
        Name of an attack in the study → its ``name`` in the library and its ``options``.
    seed
        The seed of the study.
    own_rows
        Whether attacks learn from other rows of the model that they score, instead of from shadow models.
    files
        Attack → a user's own file.
    terms
        Attack → the limits of the process in which it runs.
    known
        (attack, form) → columns: scores of the same models by some of the attacks from an earlier run, which are used
        unchanged.

    Returns
    -------
    columns : dict
        Attack, form, model, index, role, score and decision, all [rows].
    failed : dict
        Attack → why it has no scores.

    Raises
    ------
    NoAnswerError
        The models have no logits.
    """
    evaluation.require_logits()
    run = score_by_own_rows if own_rows else score_by_shadows
    files, terms, known = files or {}, terms or {}, known or {}
    parts, failed = [], {}  # parts: the columns of one attack in one form each
    for name, entry in attacks.items():
        if already := tables.rows_of(known, name):
            parts += already
            continue
        file, limits = files.get(name), terms.get(name, {})
        apart = file or (source_file("attacks", entry["name"]) if limits else None)  # in a process of its own
        try:
            reply = isolated(partial(_run, run, evaluation, name, file, entry, seed), apart, **limits)
            parts += reply["parts"]
            evaluation.missing |= reply["missing"]
        except (PluginError, NoAnswerError) as error:
            failed[name] = str(error)  # NoAnswerError: the models lack a signal that the attack reads
            print(error, file=sys.stderr)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
    return columns or tables.no_scores(), failed


def _run(
    run: Callable[..., Any], evaluation: Evaluation, name: str, file: str | None, entry: Entry, seed: int
) -> dict[str, Any]:
    """Run one attack; return the columns of scores of each form ("parts"), and why other forms are "missing".

    Parameters
    ----------
    run
        The function that runs the attack, `score_by_shadows` or `score_by_own_rows`.
    name
        The attack's name in the study.
    file
        The user's file of the attack, or None.
    entry
        The attack's ``name`` in the library and its ``options``.
    seed
        The seed of the study.

    Raises
    ------
    PluginError
        If the attack fails.
    """
    module = load("attacks", entry["name"], file)
    # Any error is a failure of a user's file. With an attack of the library, a ValueError that the attack itself did
    # not raise passes: `score` catches a NoAnswerError, and any other ends the job.
    with guard(module.__file__, but=PluginError if file else ValueError):
        return {"parts": list(run(evaluation, name, module, entry, seed)), "missing": evaluation.missing}


def score_by_shadows(
    evaluation: Evaluation, name: str, module: Module, settings: Entry, seed: int
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the scores of one attack in each of its forms, "trained" and "unlearned" or else "both", as columns attack,
    form, model, index, role, score and decision.

    ``evaluation.missing`` receives why an attack could not be evaluated in a form. An attack that needs
    ``same_samples`` cannot be evaluated by imported shadow models of other samples.

    Parameters
    ----------
    name
        The attack's name in the study.
    module
        The attack's file.
    settings
        The attack's ``name`` in the library and its ``options``.
    seed
        The seed of the study.

    Raises
    ------
    PluginError
        If the attack fails for another reason than missing shadow models, or returns a value that is not finite for a
        row that it has to score.
    """
    for form, shadow in evaluation.shadows(needs(module)):  # a sentence, if the form cannot be evaluated
        if isinstance(shadow, str):
            evaluation.missing[f"{name}/{form}"] = shadow
            continue
        covered = shadow.index is None or np.array_equal(shadow.index, evaluation.queried)
        if "same_samples" in registry.declared_in(module) and not covered:
            evaluation.missing[f"{name}/{form}"] = OTHER_SAMPLES
            continue
        try:
            rng = generator(seed, "attack", name, form)
            yield score_form(evaluation, name, form, module, settings, shadow, rng, models=evaluation.target)
        except PluginError as error:
            why = evaluation.why_insufficient(form, error, module.__file__)
            if not why:
                raise
            evaluation.missing[f"{name}/{form}"] = why


def score_by_own_rows(
    evaluation: Evaluation, name: str, module: Module, settings: Entry, seed: int
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the scores of one attack that learns from rows of the model that it scores, without shadow models, form by
    form and model by model, as columns attack, form, model, index, role, score and decision.

    In the form "own", members are the samples that the model keeps. Originals are also scored in the form "seen", in
    which members include the forget set; Becker & Liebig 2022 compare it with "own" after unlearning. Non-members are
    the test part.

    Parameters
    ----------
    name
        The attack's name in the study.
    module
        The attack's file.
    settings
        The attack's ``name`` in the library and its ``options``.
    seed
        The seed of the study.

    Raises
    ------
    ValueError
        If there is no test part.
    """
    test = evaluation.data.part == 1
    if not test.any():
        raise ValueError(f"attack {name!r} needs a test part as its non-members; set test_size under data")
    files, membership = evaluation.unlearned_files, evaluation.membership[evaluation.target]
    # form → which samples are members, bool [models, samples]
    members = {"own": membership.retain} | ({"seen": membership.train} if files == evaluation.originals else {})
    for form, member in members.items():
        # number: among the scored models; model: among all models
        for number, model in enumerate(np.flatnonzero(evaluation.target)):
            alone = np.arange(len(evaluation.target)) == model
            learned = np.flatnonzero(member[number] | test)  # the rows from which the attack learns
            logits, y = evaluation.outputs(files).stacked(alone, learned), evaluation.labels_of(alone)[..., learned]
            values = {name: evaluation.signal(name, files, alone, learned) for name in needs(module)}
            # [None]: the one model, as masks are [models, rows]
            inside, outside = (mask[learned][None] & known_mask(values) for mask in (member[number], test))
            shadow = Shadow(logits, y, inside, outside, signals=values)
            rng = generator(seed, "attack", name, form, number)
            columns = score_form(evaluation, name, form, module, settings, shadow, rng, models=alone)
            yield {**columns, "model": columns["model"] + np.int32(number)}


def score_form(
    evaluation: Evaluation,
    name: str,
    form: str,
    module: Module,
    settings: Entry,
    shadow: Shadow,
    rng: np.random.Generator,
    *,
    models: np.ndarray,
) -> dict[str, np.ndarray]:
    """Score some ``models`` by one attack that learned from ``shadow``; return columns attack, form, model, index,
    role, score and decision.

    Parameters
    ----------
    name
        The attack's name in the study.
    form
        From which shadow models the attack learned, and whether it reads logits before unlearning
        (`Evaluation.shadows`).
    module
        The attack's file.
    settings
        The attack's ``name`` in the library and its ``options``.
    shadow
        The shadow models.
    rng
        The generator of the attack's random numbers.
    models
        bool [models]: the scored models, among which the column "model" counts.

    Raises
    ------
    PluginError
        If the attack fails or returns scores that are not finite. The message then names the signal that is wholly NaN
        for one of the samples, or else the attack.
    """
    membership, files = evaluation.membership[models], evaluation.unlearned_files
    rows = np.flatnonzero(membership.queries.any(0))
    logits, y = evaluation.outputs(files).stacked(models, rows), evaluation.labels_of(models)[..., rows]
    values = {signal: evaluation.signal(signal, files, models, rows) for signal in needs(module)}
    score, decision = call_score(module, logits, y, shadow, settings, rng, **values)
    asked = model, column = np.nonzero(membership.queries[:, rows])  # what attacks are asked about each model
    if not np.isfinite(score[asked]).all():
        for signal, value in values.items():
            if np.isnan(value[asked]).all(axis=tuple(range(1, value.ndim - 1))).any():
                raise PluginError(f"signal {signal!r} is NaN for samples that attack {name!r} ({form}) scores; mend it")
        raise PluginError(f"attack {name!r} ({form}) returned scores that are not finite; mend its score function")
    place = model, rows[column]  # positions in masks [models, samples]
    role = np.where(membership.forget[place], "forget", np.where(membership.train[place], "retain", "heldout"))
    return {
        "attack": np.full(len(model), name), "form": np.full(len(model), form), "model": model.astype(np.int32),
        "index": rows[column].astype(np.int32), "role": role, "score": score[asked].astype(np.float64),
        "decision": decision[asked],
    }  # fmt: skip


def call_score(
    module: Module,
    logits: np.ndarray,
    y: np.ndarray,
    shadow: Shadow,
    settings: Entry,
    rng: np.random.Generator,
    **signal: np.ndarray,
) -> Score:
    """Call the ``score`` of an attack's ``module``; return its score, a number, and its decision, bool, each [models,
    rows].

    Parameters
    ----------
    logits
        [models, rows, classes]: the logits of the audited models.
    y
        [rows] or [models, rows]: the labels of the audited models.
    shadow
        The shadow models from which the attack learns.
    settings
        The attack's ``name`` in the library and its ``options``.
    rng
        The generator of the attack's random numbers.
    signal
        Name → [models, rows, …]: the other values that the attack reads of the audited models.

    Raises
    ------
    PluginError
        If the attack fails or returns something of another type or shape.
    """
    shape, file = logits.shape[:2], readable(module.__file__)
    demand = f"must return (score, decision), arrays of numbers and of bool with shape {shape}"
    with guard(module.__file__):
        options = getattr(module, "Options", Settings)(**settings["options"])
        returned = registry.call("attacks", module, "score", logits, y, shadow, options, rng, **signal)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise PluginError(f"{file}: score {demand}, it returned {type_of(returned)}")
        for name, array, kinds in zip(("score", "decision"), returned, ("fiu", "b"), strict=True):
            if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds or array.shape != shape:
                raise PluginError(f"{file}: score {demand}, its {name} is {type_of(array)}")
    return returned
