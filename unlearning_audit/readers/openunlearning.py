"""OpenUnlearning's evaluation logs, such as TOFU_EVAL.json and MUSE_EVAL.json (Dorna et al. 2025).

A log has an entry for each metric: ``agg_value``, and ``value_by_index`` with the values of each sample. Attacks have
two of these, ``forget`` and ``holdout``, and the AUC of both. A file ``…_SUMMARY.json`` beside it holds the aggregates.
Any log of this structure is read, whatever the names of its metrics: a metric's first word names the part of the data.
"""

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import hmean

from unlearning_audit.readers import _aggregates, _model, _recompute, _texts, _words
from unlearning_audit.readers._groups import must_share
from unlearning_audit.readers._model import FORGET, HELDOUT, OTHER, RETAIN, Agreement, Model, Reading, Unread

#: First word of a metric → part of the data; memorisation is always about the forget set.
PARTS = {"forget": FORGET, "exact": FORGET, "extraction": FORGET, "retain": RETAIN, "holdout": HELDOUT}
#: The field of a metric that holds the values of each sample.
VALUES = "value_by_index"
#: Keys under which a sample may have a value, in the order in which they are tried.
KEYS = ("score", "prob", "rougeL_recall", "rougeL_f1", "rouge1_recall", "rouge", "acc", "f1", "bleu", "avg_loss")
#: The parts of TOFU's model utility.
UTILITY = [name for names in _aggregates.UTILITY.values() for name in names]


def files(place: Path) -> list[Path]:
    """Return the logs at or below a path, recognised by their structure."""
    return [path for path in _texts.below(place, ".json") if f'"{VALUES}"' in _texts.head(path)]


def read(paths: list[Path], options: object, root: Path) -> list[Model | Unread]:
    """Return one model for each log, or an `Unread` with the reason why a file cannot be read. A file may contain
    several logs, each under a name."""
    return _model.read_all(paths, lambda path: [_of_log(path, names, root, log) for names, log in _logs(path).items()])


def joined(models: list[Model]) -> list[Unread]:
    """Give samples in logs without texts the names that samples at the same position have in logs with texts. Without
    this, logs without texts would share no samples with logs that have texts.

    A position is "group/number of samples:index", such as "forget/400:0"; a sample without text is named by it. A group
    of metrics is used only if all logs with texts and equally many samples have the same texts there. ``models`` is
    changed in place; [] is returned, because no model is left out. ``raw`` of a model has "positions", position → name
    by text, and "texts", the groups that have texts.
    """
    name_at: dict[str, str] = {}  # position → name by text
    doubtful = set()  # "group/number of samples" with different texts
    for model in models:
        for position, name in model.raw["positions"].items():
            if name_at.setdefault(position, name) != name:
                doubtful.add(position.rpartition(":")[0])
    name_at = {position: name for position, name in name_at.items() if position.rpartition(":")[0] not in doubtful}
    for model in models:
        # The names for groups of metrics that have no texts in the model's own log.
        new = {position: name for position, name in name_at.items() if position.split("/")[0] not in model.raw["texts"]}
        if not new.keys().isdisjoint(must_share(model)):
            model.notes.append("Logs without texts of their samples are paired by position with those that have texts.")
        model.ids = tuple(new.get(sample, sample) for sample in model.ids)
        for metric, reading in model.readings.items():
            ids = tuple(new.get(sample, sample) for sample in reading.ids)
            model.readings[metric] = dataclasses.replace(reading, ids=ids)
    return []


def _logs(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """Read the logs of a file: keys under which a log stands in it, outermost first → log, metric → its entry. Raises
    ValueError that names the file."""
    content = _texts.read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path}: a log must be a mapping of metrics, found {type(content).__name__}")
    logs = _find_logs(content)
    if not logs:
        raise ValueError(f"{path}: no metric of this log has {VALUES!r}")
    return logs


def _find_logs(content: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the logs in a mapping, at any depth: keys above a log, outermost first → log. A log is a mapping in which
    some metric, or the forgotten side of some attack, has values of samples. The keys of a single log are dropped."""
    entries = {name: entry for name, entry in content.items() if isinstance(entry, dict)}
    if any(VALUES in entry or VALUES in (entry.get(FORGET) or ()) for entry in entries.values()):
        return {(): content}
    # The logs inside each entry, with the entry's name before their keys.
    logs = {(name, *keys): log for name, entry in entries.items() for keys, log in _find_logs(entry).items()}
    return {(): next(iter(logs.values()))} if len(logs) == 1 else logs


@dataclasses.dataclass
class _Field:
    """A part of a log that holds values of samples: a metric, or one side of an attack.

    Parameters
    ----------
    metric
        The name of the metric or attack.
    name
        The name of the metric again or, for an attack, of the side: "forget" or "holdout".
    printed
        The mean that the log prints, or NaN.
    rows
        Index of a sample → its values by key.
    names
        Index → name of the sample.
    """

    metric: str
    name: str
    printed: float
    rows: dict[str, dict[str, Any]]
    names: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def part(self) -> str:
        """Return the part of the data to which the samples belong, by the first word of the name (`PARTS`)."""
        return PARTS.get(self.name.split("_")[0].lower(), OTHER)

    @property
    def group(self) -> str:
        """Return the first word of the name, in lower case; "forget" for the whole forget set. All metrics of one group
        have the same samples."""
        return FORGET if self.part == FORGET else self.name.split("_")[0].lower()

    def numbers(self, key: str) -> dict[str, float]:
        """Return index of a sample → its value for ``key``; of a list of numbers, the mean.

        Samples without a finite number are left out, as in the log's own means.
        """
        values = {index: _number(row.get(key)) for index, row in self.rows.items()}
        return {index: value for index, value in values.items() if value is not None and math.isfinite(value)}


def _fields(log: dict[str, Any], prefix: str) -> Iterator[_Field]:
    """Yield the parts of a log that hold values of samples, sorted by the names of the metrics: the entry of a metric
    and, inside the entry of an attack, one entry for forgotten and one for held-out samples.

    Some tools write the index 0.0 for 0, or a list in the order of the index. A sample for which there is anything else
    than a mapping has no values. ``prefix``: file and keys of the log, with which the ValueError on values that are
    neither a mapping nor a list begins.
    """
    for metric, entry in sorted(log.items()):
        entries = {metric: entry, **entry} if isinstance(entry, dict) else {}
        for name, field in entries.items():
            if isinstance(field, dict) and VALUES in field:
                rows = field[VALUES] or {}
                rows = dict(enumerate(rows)) if isinstance(rows, list) else rows
                if not isinstance(rows, dict):
                    key = ".".join(dict.fromkeys([metric, name, VALUES]))
                    found = type(rows).__name__
                    raise ValueError(f"{prefix}{key}: must map the index of each sample to its values, found {found}")
                rows = {str(i).removesuffix(".0"): row if isinstance(row, dict) else {} for i, row in rows.items()}
                yield _Field(metric, name, _printed(field.get("agg_value")), rows)


def _number(value: object) -> float | None:
    """Return a number, the number in a text, or the mean of a list of numbers; None for anything else."""
    if isinstance(value, list):
        numbers = [number for item in value if (number := _number(item)) is not None]
        return sum(numbers) / len(numbers) if numbers and len(numbers) == len(value) else None
    try:
        return float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
    except ValueError:
        return None


def _printed(value: object) -> float:
    """Return ``value``, a number that the log prints, as a float; NaN if it is missing, infinite or no number."""
    number = _number(value)
    return number if number is not None and math.isfinite(number) else math.nan


def _damage(fields: list[_Field]) -> str:
    """Return a clause on the first kind of value that is NaN or infinite for more than half of its samples, a sign that
    the model diverged; "" if there is no such kind. Fewer samples without a finite number are no damage."""
    for field in fields:
        for key in KEYS:
            numbers = [value for row in field.rows.values() if (value := _number(row.get(key))) is not None]
            infinite = sum(not math.isfinite(number) for number in numbers)
            if 2 * infinite > len(numbers):
                name = ".".join(dict.fromkeys([field.metric, field.name, key]))
                return f"{name} is NaN or infinite for {infinite} of {len(numbers)} samples"
    return ""


def _of_log(path: Path, names: tuple[str, ...], root: Path, log: dict[str, Any]) -> Model:
    """Read one log as a model.

    Of a model that diverged (more than half of the values of a metric are NaN or infinite, `_damage`), only the names
    of its forgotten samples are kept.

    Parameters
    ----------
    names
        The keys under which the log stands in the file, if the file has several logs.
    root
        The path that the user named, below which names of folders tell what the model is.
    log
        Metric → its entry, such as {"agg_value": 0.5, "value_by_index": {"0": {"prob": 0.3}, "1": {"prob": 0.7}}}.

    Raises
    ------
    ValueError
        If no metric has values of the forget set, or if values do not stand by index.
    """
    model = _words.model_of_run(path, root, names or (_texts.bare(path).name,))
    model.entry = "/".join(names)
    fields = list(_fields(log, f"{path}: {''.join(f'{name}.' for name in names)}"))
    model.raw |= _name_samples(fields)  # this sets the names of samples in ``fields`` as well
    if damage := _damage(fields):
        model.damage = damage
        model.divide(sorted({name for field in fields if field.part == FORGET for name in field.names.values()}), ())
        return model
    sides: dict[str, list[_Field]] = {}  # attack → its two sides
    for field in fields:
        if field.name == field.metric:  # values of the metric itself, not of one side of an attack
            _add_reading(model, field)
        else:
            sides.setdefault(field.metric, []).append(field)
    _add_attacks(model, sides, log)
    if not model.samples.get(FORGET):
        if model.left_out:
            name, reason = next(iter(model.left_out.items()))
            raise ValueError(f"{path}: {name}: {reason}; there is no other metric of the forget set")
        expected = f"as prob, score and so on, under a name that begins with forget; found {', '.join(sorted(log)[:5])}"
        raise ValueError(f"{path}: no metric holds a number for each sample of the forget set, {expected}")
    _add_aggregates(model, log)
    model.agreements += _summary(path, model.raw["aggregates"])
    return model


def _name_samples(fields: list[_Field]) -> dict[str, Any]:
    """Set the names of the samples of one log, from their texts or, without texts, from their position.

    Metrics whose names begin with the same word, such as forget, are a group, and share their samples. A metric without
    texts takes the names of the first metric in its group that has texts. But if metrics of a group have different
    texts under one index, they use different data sets: then samples of metrics without texts are named by position,
    "group/number of samples:index".

    Return what is needed to pair this log with others: "positions", position → name by text, for groups in which all
    samples have texts; and "texts", the groups of metrics with texts.
    """
    sizes: dict[str, int] = {}  # group → the largest number of samples of a metric
    names_by_text: dict[str, dict[str, str]] = {}  # group → index → name, of its first metric with texts
    ambiguous = set()  # groups with different texts under one index
    for field in fields:
        sizes[field.group] = max(sizes.get(field.group, 0), len(field.rows))
        texts = [row.get("ground_truth") for row in field.rows.values()]
        # If some answers are mere numbers, the answers of the field do not name its samples.
        has_texts = bool(texts) and all(isinstance(text, str) and _number(text) is None for text in texts)
        if field.name == field.metric and has_texts:
            field.names = dict(zip(field.rows, _texts.identities(field.group, map(str, texts)), strict=True))
            first = names_by_text.setdefault(field.group, field.names)
            if any(first.get(index, sample) != sample for index, sample in field.names.items()):
                ambiguous.add(field.group)
    clear = {group: names for group, names in names_by_text.items() if group not in ambiguous}
    for field in fields:
        names, prefix = field.names or clear.get(field.group, {}), f"{field.group}/{sizes[field.group]}"
        field.names = {index: names.get(index, f"{prefix}:{index}") for index in field.rows}
    positions = {
        f"{group}/{sizes[group]}:{index}": sample
        for group, names in clear.items() if len(names) == sizes[group] for index, sample in names.items()
    }  # fmt: skip
    return {"positions": positions, "texts": {*names_by_text}}


def _add_reading(model: Model, field: _Field) -> None:
    """Add the values per sample of a metric to ``model.readings``, and compare their mean with the mean that the log
    prints.

    A sample may have values under several keys, such as prob and avg_loss; the key is read whose mean comes closest to
    the printed mean. Of a truth ratio r, the log prints the mean of one of three formulas: min(r, 1/r), max(0, 1 − r)
    or r itself; values of the formula whose mean comes closest are added. Values have direction +1 (larger if the model
    knows the sample better). Losses have −1. min(r, 1/r) has 0, because it is small both for a model that knows the
    answer and for a damaged model.

    Nothing is added for a metric without numbers. If samples have lists of values and nothing says which value is
    meant, ``model.left_out`` says so. Metrics of wrong answers (_PERT_) are compared, but not added, because they serve
    only to compute the truth ratio.
    """
    name, columns = field.name, {key: values for key in KEYS if (values := field.numbers(key))}
    if not columns:
        return
    of_ratios = "truth_ratio" in name.lower()
    arrays = {key: np.array(list(values.values())) for key, values in columns.items()}
    means: dict[tuple[str, str], float] = {}  # (formula, key) → mean
    for key, array in arrays.items():
        of_key = _recompute.ratio_means(array) if of_ratios else {"mean": float(array.mean())}
        means |= {(formula, key): value for formula, value in of_key.items()}
    # The mean closest to the printed one. If nothing is printed, all differences are NaN, and the first is taken.
    formula, key = min(means, key=lambda candidate: abs(means[candidate] - field.printed))
    mean_is_meant = "_PERT_" in name or "_PARA_" in name  # the mean over wrong answers, or over paraphrases
    if not mean_is_meant and any(isinstance(row.get(key), list) for row in field.rows.values()):
        model.left_out[name] = "each sample has a list of values, and it is unknown which one is meant"
        return
    model.agreements.append(Agreement(name, field.printed, means[formula, key], f"{formula} of {key}"))
    array, direction = arrays[key], -1 if key == "avg_loss" else 1
    if of_ratios:
        model.raw[name.lower()] = array
        if "min(" in formula:
            array, direction = np.minimum(array, 1 / np.maximum(array, _recompute.TINY)), 0
        elif "max(" in formula:
            array = np.maximum(0.0, 1 - array)
    if "_PERT_" not in name:
        share = bool((array >= 0).all() and (array <= 1).all())
        ids = tuple(field.names[index] for index in columns[key])
        model.readings[name] = Reading(field.part, ids, array, direction, share)


def _add_attacks(model: Model, attacks: dict[str, list[_Field]], log: dict[str, Any]) -> None:
    """Add the scores of attacks to a model, on the samples that all attacks score, and compare the AUCs and means that
    the log prints with recomputed ones.

    Logs print scores that are larger for less familiar samples, so the sign is changed. An attack with values of one
    side only is left out. Forgotten samples are the side called forget; the first other side is of held-out samples.
    Where no AUC is printed, the agreement has NaN for it; means that are not printed are left out. Raises ValueError if
    one of two sides has no score.

    Parameters
    ----------
    attacks
        Name → the attack's sides, in the order of the log.
    log
        Name → the attack's entry in the log, with the printed "auc".
    """
    scores: dict[str, dict[str, float]] = {}  # attack → sample → score
    forgotten: set[str] = set()
    for name, sides in attacks.items():
        by_part: dict[str, dict[str, float]] = {}
        for side in sides:
            names = side.names if side.name == FORGET else {index: f"{HELDOUT}:{index}" for index in side.rows}
            by_sample = {names[index]: -score for index, score in side.numbers("score").items()}
            by_part.setdefault(FORGET if side.name == FORGET else HELDOUT, by_sample)
        if len(by_part) < 2:
            continue
        member, nonmember = by_part[FORGET], by_part[HELDOUT]
        if not (member and nonmember):
            raise ValueError(f"{model.file}: {name}: one of its two sides has no sample with a 'score'")
        forgotten |= member.keys()
        scores[name.removeprefix("mia_")] = member | nonmember
        value = _recompute.auc(member=np.array([*member.values()]), nonmember=np.array([*nonmember.values()]))
        how = "AUC of the forgotten against the held-out side"
        model.agreements.append(Agreement(f"{name} auc", _printed(log[name].get("auc")), value, how))
        for side in sides:
            if not math.isnan(side.printed):
                mean = float(np.mean(list(side.numbers("score").values())))
                model.agreements.append(Agreement(f"{name} {side.name}", side.printed, mean, "mean of score"))
    if scores:
        common = set.intersection(*map(set, scores.values()))
        ids = [sample for sample in next(iter(scores.values())) if sample in common]
        model.divide([s for s in ids if s in forgotten], [s for s in ids if s not in forgotten])
        model.scores = {name: np.array([column[sample] for sample in model.ids]) for name, column in scores.items()}


def _add_aggregates(model: Model, log: dict[str, Any]) -> None:
    """Compare the aggregates that a log prints with the same aggregates computed from the other numbers that it prints:
    model_utility, and privleak if it was computed as if the AUC of the retrained model were .5. All printed aggregates
    are kept in ``model.raw``, because other ones need the log of a retrained model.

    ``log``: metric → its entry, whose "agg_value" is the printed number.
    """
    printed = {name: _printed(entry.get("agg_value")) for name, entry in log.items() if isinstance(entry, dict)}
    model.raw["aggregates"] = aggregates = {name: value for name, value in printed.items() if not math.isnan(value)}
    if "model_utility" in aggregates:
        utility = float(hmean([aggregates.get(name, math.nan) for name in UTILITY]))
        how = "harmonic mean of nine means"
        model.agreements.append(Agreement("model_utility", aggregates["model_utility"], utility, how))
    if "privleak" in aggregates and "mia_min_k" in aggregates:
        value = _recompute.privacy_leakage(aggregates["mia_min_k"], retrained=0.5)
        against_half = Agreement("privleak", aggregates["privleak"], value, "from the AUC of min_k, against .5")
        if against_half.agrees:  # so `across` need not try retrained models
            model.raw["privleak reference"] = 0.5
            model.agreements.append(against_half)


def across(model: Model, retrained: Model) -> list[Agreement]:
    """Compare the privleak and the forget_quality that a model's log prints with values computed with the log of a
    ``retrained`` model.

    A number is left out if one of the two logs lacks what it is computed from; privleak also if it was computed as if
    the AUC of the retrained model were .5. A number that is not reproduced counts as wrong only if the model's log
    names this retrained model as its reference. If the log does not, the number cannot be checked, and its recomputed
    value is NaN.
    """
    printed, of_retrained = (run.raw.get("aggregates", {}) for run in (model, retrained))
    agreements = []
    has_aucs = "mia_min_k" in printed and "mia_min_k" in of_retrained
    if "privleak" in printed and "privleak reference" not in model.raw and has_aucs:
        value = _recompute.privacy_leakage(printed["mia_min_k"], of_retrained["mia_min_k"])
        how = f"against the AUC of {retrained.file.parent.name}"
        agreements.append(Agreement("privleak", printed["privleak"], value, how))
    if "forget_quality" in printed:
        agreements += _recompute.forget_quality(printed["forget_quality"], model, retrained, "Kolmogorov–Smirnov test")
    if model.retrained_file and _model.same_file(model.retrained_file, retrained.file):
        return agreements
    # Users read this only if it holds for all retrained models: the first number that agrees is the one that counts.
    how = "the log does not name the retrained model, and none of those given fits"
    return [a if a.agrees else dataclasses.replace(a, recomputed=math.nan, how=how) for a in agreements]


def _summary(path: Path, aggregates: dict[str, float]) -> list[Agreement]:
    """Compare the numbers in the SUMMARY file beside a log with the ``aggregates`` that the log prints; [] if there is
    no such file. ``path``: the log, …_EVAL.json. Raises ValueError for a summary that cannot be read or is no
    mapping."""
    file = path.with_name(path.name.replace("EVAL", "SUMMARY"))
    if file == path or not file.is_file():
        return []
    summary = _texts.read_json(file)
    if not isinstance(summary, dict):
        raise ValueError(f"{file}: a summary must be a mapping of metrics to numbers")
    numbers = {name: _printed(entry) for name, entry in sorted(summary.items())}
    return [
        Agreement(f"{name} in {file.name}", value, aggregates.get(name, math.nan), f"agg_value of {path.name}")
        for name, value in numbers.items() if not math.isnan(value)
    ]  # fmt: skip
