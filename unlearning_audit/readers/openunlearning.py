"""OpenUnlearning's evaluation logs, such as TOFU_EVAL.json and MUSE_EVAL.json (Dorna et al. 2025).

A log has an entry for each metric: ``agg_value``, and ``value_by_index`` with the values of each sample. Attacks have
two of these, ``forget`` and ``holdout``, and the AUC of both. A file ``…_SUMMARY.json`` beside it holds the aggregates.
Any log of this structure is read, whatever the names of its metrics: a metric's first word names the part of the data.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from unlearning_audit.readers import _aggregates, _model, _recompute, _texts, _words
from unlearning_audit.readers._groups import subject
from unlearning_audit.readers._model import FORGET, HELDOUT, OTHER, RETAIN, Agreement, Model, Reading, Unread

#: First word of a metric → part of the data; memorisation is always about the forget set.
PARTS = {"forget": FORGET, "exact": FORGET, "extraction": FORGET, "retain": RETAIN, "holdout": HELDOUT}
#: The field of a metric that holds the values of each sample.
VALUES = "value_by_index"
#: Possible values of a sample, in the order in which a metric's own formula is looked for.
FIELDS = ("score", "prob", "rougeL_recall", "rougeL_f1", "rouge1_recall", "rouge", "acc", "f1", "bleu", "avg_loss")
#: The parts of TOFU's model utility.
UTILITY = [name for names in _aggregates.UTILITY.values() for name in names]


def files(place: Path) -> list[Path]:
    """Return the logs at or below a path, recognised by their structure."""
    return [path for path in _texts.below(place, ".json") if f'"{VALUES}"' in _texts.head(path)]


def read(paths: list[Path], options: object, root: Path) -> list[Model | Unread]:
    """Return one model for each log, or why a file cannot be read. A file may contain several logs by name."""

    def of_file(path: Path) -> list[Model]:
        return [
            _of_log(path, names, root, log, _Samples(_counts(log), _identities(log)))
            for names, log in _logs(path).items()
        ]

    return _model.read_all(paths, of_file)


def joined(models: list[Model]) -> list[Unread]:
    """Give samples in logs without texts the names that they have in other logs with texts, by position.

    Otherwise such logs would share no samples. Names are given only within a part of the data of which all logs with
    texts have the same texts and number of samples. ``models`` is changed in place; returns [], because none is left
    out.
    """
    texts: dict[str, str] = {}
    doubtful = set()
    for model in models:
        for position, sample in model.raw["positions"].items():
            if texts.setdefault(position, sample) != sample:
                doubtful.add(position.rpartition(":")[0])
    texts = {position: sample for position, sample in texts.items() if position.rpartition(":")[0] not in doubtful}
    for model in models:
        lent = {place: text for place, text in texts.items() if place.partition("/")[0] not in model.raw["texts"]}
        if not lent.keys().isdisjoint(subject(model)):
            model.notes.append("Logs without texts of their samples are paired by position with those that have texts.")
        model.ids = tuple(lent.get(sample, sample) for sample in model.ids)
        for name, reading in model.readings.items():
            ids = tuple(lent.get(sample, sample) for sample in reading.ids)
            model.readings[name] = dataclasses.replace(reading, ids=ids)
    return []


def _logs(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """Read the logs of a file: names under which a log stands in it → log.

    Indices of samples are made equal in all logs, since some tools write 0.0 for 0, or a list. Texts of numbers become
    numbers. Raises ValueError that names the file and the key.
    """
    content = _texts.read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path}: a log must be a mapping of metrics, found {type(content).__name__}")
    logs = _inside(content)
    if not logs:
        raise ValueError(f"{path}: no metric of this log has {VALUES!r}")
    for names, log in logs.items():
        for name, entry in log.items():
            sides = {f"{name}.{key}": side for key, side in entry.items()} if isinstance(entry, dict) else {}
            for key, field in {name: entry, **sides}.items():
                if isinstance(field, dict):
                    field |= {key: _texts.number(field[key]) for key in ("agg_value", "auc") if key in field}
                if _holds_values(field):
                    field[VALUES] = _by_index(field[VALUES], f"{path}: {'.'.join((*names, key))}.{VALUES}")
    return logs


def _inside(content: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Find the logs in the ``content`` of a file, which are mappings of metrics at any depth: names above a log → log.
    If there is a single log, its names are dropped; {} if there is none."""
    if any(map(_is_metric, content.values())):
        return {(): content}
    logs = {
        (name, *more): log
        for name, entry in content.items() if isinstance(entry, dict)
        for more, log in _inside(entry).items()
    }  # fmt: skip
    return dict.fromkeys([()], *logs.values()) if len(logs) == 1 else logs


def _holds_values(field: object) -> bool:
    return isinstance(field, dict) and VALUES in field


def _is_metric(entry: object) -> bool:
    return isinstance(entry, dict) and (_holds_values(entry) or _holds_values(entry.get(FORGET)))


def _by_index(values: object, place: str) -> dict[str, object]:
    """Return index → values of a sample, from a mapping or a list; numbers that are texts are converted.

    None gives {}. ``place``: the file and key, for the ValueError on anything else.
    """
    if isinstance(values, list):
        values = dict(enumerate(values))
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ValueError(f"{place}: must map the index of each sample to its values, found {type(values).__name__}")
    whole = {}
    for index, row in values.items():
        if isinstance(row, dict):
            row = {key: _texts.number(value) for key, value in row.items()}
        whole[str(index).removesuffix(".0")] = row
    return whole


def _damage(log: dict[str, Any]) -> str:
    """Return which value is NaN or infinite for more than half of its samples, because the model diverged; else "".
    With fewer, only these samples are left out."""
    for name, side, field in _fields(log):
        place = name if side == name else f"{name}.{side}"
        rows = [row for row in field[VALUES].values() if isinstance(row, dict)]
        for key in FIELDS:
            numbers = [row[key] for row in rows if isinstance(row.get(key), float)]
            infinite = sum(not math.isfinite(number) for number in numbers)
            if 2 * infinite > len(numbers):
                return f"{place}.{key} is NaN or infinite for {infinite} of {len(numbers)} samples"
    return ""


def _fields(log: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield every part of a log that holds values of samples: the metric's name, the name of the part, and its content.

    The part is the metric itself, or one side of an attack.
    """
    for name, entry in log.items():
        for key, field in {name: entry, **entry}.items() if isinstance(entry, dict) else ():
            if isinstance(field, dict) and isinstance(field.get(VALUES), dict):
                yield name, key, field


def _of_log(path: Path, names: tuple[str, ...], root: Path, log: dict[str, Any], samples: "_Samples") -> Model:
    """Read one log as a model. ``names``: the keys under which the log stands in the file; ``samples``: its samples'
    names.

    A diverged model gets only the names of its forgotten samples. Raises ValueError if no metric has values of the
    forget set.
    """
    of_path = _words.of_path(path, root, names or (_texts.bare(path).name,))
    model = _words.joined(_words.of_config(path, root), of_path).model(path, entry="/".join(names))
    model.raw |= {"positions": samples.positions, "texts": {_group(name) for name in samples.identities}}
    model.damage = _damage(log)
    if model.damage:
        read = (samples.of(key, field[VALUES]).values() for _, key, field in _fields(log) if _part(key) == FORGET)
        model.ids = tuple(sorted(set().union(*read)))
        model.forget, model.heldout = np.ones(len(model.ids), bool), np.zeros(len(model.ids), bool)
        return model
    for name, entry in sorted(log.items()):
        if isinstance(entry, dict) and isinstance(entry.get(VALUES), dict):
            _add_reading(model, name, entry, samples)
    _add_attacks(model, log, samples)
    if not model.samples.get(FORGET):
        if model.left_out:
            name, reason = next(iter(model.left_out.items()))
            raise ValueError(f"{path}: {name}: {reason}; there is no other metric of the forget set")
        existing = ", ".join(sorted(log)[:5])
        raise ValueError(
            f"{path}: no metric holds a number for each sample of the forget set; the names of such metrics begin with "
            f"forget, found {existing}"
        )
    _add_aggregates(model, log)
    model.agreements += _summary(path, log)
    return model


def _part(name: str) -> str:
    return PARTS.get(name.split("_")[0].lower(), OTHER)


def _group(name: str) -> str:
    """Return the first word of a metric's name, in lower case, as its group; "forget" for all metrics of the forget
    set. Metrics of one group have the same samples."""
    first = name.split("_")[0].lower()
    return FORGET if PARTS.get(first) == FORGET else first


def _identities(log: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return the names of samples, derived from their texts: name of a metric, or of a group of metrics, → index → name
    of the sample.

    Metrics without texts have no entry. If metrics of one group have different texts under one index, they use
    different data sets, and the group has no entry.
    """
    identities: dict[str, dict[str, str]] = {}
    ambiguous = set()
    for name, key, field in sorted(_fields(log), key=lambda part: part[0]):
        rows = field[VALUES].values()
        texts: list[Any] = [row.get("ground_truth") if isinstance(row, dict) else None for row in rows]
        if key == name and texts and all(isinstance(text, str) for text in texts):
            group = _group(name)
            names = dict(zip(field[VALUES], _texts.identities(group, texts), strict=True))
            identities[name] = names
            before = identities.setdefault(group, names)
            if any(before.get(index, sample) != sample for index, sample in names.items()):
                ambiguous.add(group)
    return {name: names for name, names in identities.items() if name not in ambiguous}


def _counts(log: dict[str, Any]) -> dict[str, int]:
    """Return group → the largest number of samples of its metrics."""
    counts: dict[str, int] = {}
    for _, key, field in _fields(log):
        group = _group(key)
        counts[group] = max(counts.get(group, 0), len(field[VALUES]))
    return counts


@dataclasses.dataclass(frozen=True)
class _Samples:
    """The names of the samples of one log: ``counts`` of each group, and ``identities`` derived from texts."""

    counts: dict[str, int]
    identities: dict[str, dict[str, str]]

    def of(self, name: str, indices: Iterable[str]) -> dict[str, str]:
        """Return index → name of the sample, derived from its text, or else from group and position."""
        group = _group(name)
        names = self.identities.get(name) or self.identities.get(group) or {}
        return {index: names.get(index, self._position(group, index)) for index in indices}

    @property
    def positions(self) -> dict[str, str]:
        """Return the name by group and position → the name by text, for the samples of groups in which all have texts.
        `joined` names samples of other logs by it."""
        return {
            self._position(group, index): sample
            for group, count in self.counts.items()
            if len(names := self.identities.get(group, {})) == count
            for index, sample in names.items()
        }

    def _position(self, group: str, index: str) -> str:
        return f"{group}/{self.counts.get(group, 0)}:{index}"


def _numbers(entry: dict[str, Any], key: str) -> dict[str, float]:
    """Return index of a sample → its value for ``key``, or the mean of it if it is a list of numbers.

    Samples without a number are left out, as in the log's own means.
    """
    values = {}
    for index, row in entry[VALUES].items():
        value = row.get(key) if isinstance(row, dict) else None
        if isinstance(value, list):
            value = sum(value) / len(value) if value and all(map(_number, value)) else None
        if _number(value):
            values[index] = float(value)
    return values


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _add_reading(model: Model, name: str, entry: dict[str, Any], samples: _Samples) -> None:
    """Add the values per sample of one metric to ``model.readings``, and compare their mean with the one that the log
    prints.

    ``name`` and ``entry``: the metric's name and content in the log; ``samples``: the names of its samples. A sample
    may have several fields, such as prob and avg_loss; the field is read whose mean is printed. Values have direction
    +1 (larger if the model knows the sample better); losses have −1, and min(r, 1/r) of a truth ratio r has 0, because
    it is small for a model that knows the answer and for a damaged one. They are a share if all lie between 0 and 1.

    Nothing is added for a metric without numbers. If samples have lists of values and nothing says which one is meant,
    ``model.left_out`` says so. Metrics of wrong answers (_PERT_) are compared, but not added, because they enter only
    the truth ratio.
    """
    printed = float(entry["agg_value"]) if _number(entry.get("agg_value")) else math.nan
    columns = {key: values for key in FIELDS if (values := _numbers(entry, key))}
    if not columns:
        return
    ratios = "truth_ratio" in name.lower()
    candidates: dict[str, tuple[float, str]] = {}
    for key, values in columns.items():
        array = np.array(list(values.values()))
        means = _recompute.ratio_means(array) if ratios else {"mean": float(array.mean())}
        candidates |= {f"{how} of {key}": (value, key) for how, value in means.items()}
    agreement = _recompute.closest(name, printed, {how: value for how, (value, _) in candidates.items()})
    key = candidates[agreement.how][1]
    meant = "_PERT_" in name or "_PARA_" in name  # the mean over wrong answers, or over paraphrases
    if not meant and any(isinstance(row.get(key), list) for row in entry[VALUES].values() if isinstance(row, dict)):
        model.left_out[name] = "each sample has a list of values, and it is unknown which one is meant"
        return
    model.agreements.append(agreement)
    values = columns[key]
    array = np.array(list(values.values()))
    if ratios:
        model.raw[name.lower()] = array
        if "min(" in agreement.how:
            array = np.minimum(array, 1 / np.maximum(array, _recompute.TINY))
        elif "max(" in agreement.how:
            array = np.maximum(0.0, 1 - array)
    if "_PERT_" in name:  # values of wrong answers only enter the truth ratio
        return
    names = samples.of(name, entry[VALUES])
    # min(R, 1/R) is small for a model that knows the answer and for one that was destroyed.
    near = 0 if "min(" in agreement.how else -1 if key.startswith("avg_loss") else 1
    share = bool((array >= 0).all() and (array <= 1).all())
    model.readings[name] = Reading(_part(name), tuple(names[index] for index in values), array, near, share)


def _add_attacks(model: Model, log: dict[str, Any], samples: _Samples) -> None:
    """Add the scores of attacks to a model, on the samples that all attacks score. Logs print scores that are larger
    for less familiar samples, so the sign is changed."""
    columns: dict[str, dict[str, float]] = {}
    member_ids: set[str] = set()
    for name, entry in sorted(log.items()):
        sides = _sides(entry)
        if sides is None:
            continue
        if not all(sides):
            raise ValueError(f"{model.file}: {name}: one of its two sides has no sample with a 'score'")
        member, outside = sides
        names = samples.of(FORGET, entry[FORGET][VALUES])
        member_ids |= set(names.values())
        columns[name.removeprefix("mia_")] = {names[index]: -value for index, value in member.items()} | {
            f"{HELDOUT}:{index}": -value for index, value in outside.items()
        }
        model.agreements += _of_attack(name, entry, member, outside)
    if not columns:
        return
    common = set.intersection(*(set(column) for column in columns.values()))
    model.ids = tuple(sample for sample in next(iter(columns.values())) if sample in common)
    model.forget = np.array([sample in member_ids for sample in model.ids])
    model.heldout = ~model.forget
    model.scores = {name: np.array([column[sample] for sample in model.ids]) for name, column in columns.items()}


def _sides(entry: object) -> tuple[dict[str, float], dict[str, float]] | None:
    """Return the scores of forgotten samples and of the others by index; None for an entry that is not an attack."""
    if not isinstance(entry, dict):
        return None
    sides = {key: side for key, side in entry.items() if _holds_values(side)}
    nonmember = next((side for key, side in sides.items() if key != FORGET), None)
    if FORGET not in sides or nonmember is None:
        return None
    member, outside = (_numbers(side, "score") for side in (sides[FORGET], nonmember))
    return member, outside


def _of_attack(name: str, entry: dict[str, Any], member: dict[str, float], others: dict[str, float]) -> list[Agreement]:
    """Compare the AUC and the means that a log prints of an attack with recomputed ones.

    ``entry``: the attack's content in the log; ``member`` and ``others``: index → score of its forgotten and its other
    samples. An AUC that is not printed is NaN in its agreement; means that are not printed are left out.
    """
    printed = float(entry["auc"]) if _number(entry.get("auc")) else math.nan
    scores = [-np.array(list(side.values())) for side in (member, others)]
    value = _recompute.auc(member=scores[0], nonmember=scores[1])
    agreements = [Agreement(f"{name} auc", printed, value, "AUC of the forgotten against the held-out side")]
    for key, side in entry.items():
        if _holds_values(side) and _number(side.get("agg_value")):
            mean = float(np.mean(list(_numbers(side, "score").values())))
            agreements.append(Agreement(f"{name} {key}", float(side["agg_value"]), mean, "mean of score"))
    return agreements


def _add_aggregates(model: Model, log: dict[str, Any]) -> None:
    """Compare the aggregates that a log prints with those computed from its own metrics: model_utility, and privleak if
    it reproduces against an AUC of .5.

    privleak against a retrained model, and forget_quality, need the log of that model; `across` compares them.
    """
    aggregates = {
        name: float(entry["agg_value"])
        for name, entry in log.items()
        if isinstance(entry, dict) and _number(entry.get("agg_value"))
    }
    model.raw["aggregates"] = aggregates
    parts = [aggregates[name] for name in UTILITY if name in aggregates]
    if "model_utility" in aggregates:
        value = _recompute.harmonic(parts) if len(parts) == len(UTILITY) else math.nan
        model.agreements.append(
            Agreement("model_utility", aggregates["model_utility"], value, "harmonic mean of nine means")
        )
    if "privleak" in aggregates and "mia_min_k" in aggregates:
        value = _recompute.privacy_leakage(aggregates["mia_min_k"], 0.5)
        by_half = Agreement("privleak", aggregates["privleak"], value, "from the AUC of min_k, against .5")
        if by_half.agrees:
            model.raw["privleak reference"] = 0.5
            model.agreements.append(by_half)


def across(model: Model, retrained: Model) -> list[Agreement]:
    """Compare the privleak and the forget_quality that a log prints with values computed with the log of a
    ``retrained`` model.

    A number is left out if one of the logs lacks what it is computed from. A number that is not reproduced counts as
    wrong only if the log names this retrained model as its reference; otherwise it cannot be checked.
    """
    aggregates, reference = (run.raw.get("aggregates", {}) for run in (model, retrained))
    is_retrained = model.retrained_file and _model.same_file(model.retrained_file, retrained.file)
    agreements = []
    if (
        "privleak" in aggregates
        and "privleak reference" not in model.raw
        and "mia_min_k" in aggregates
        and "mia_min_k" in reference
    ):
        value = _recompute.privacy_leakage(aggregates["mia_min_k"], reference["mia_min_k"])
        agreements.append(
            Agreement("privleak", aggregates["privleak"], value, f"against the AUC of {retrained.file.parent.name}")
        )
    ratio, other = (run.raw.get("forget_truth_ratio") for run in (model, retrained))
    if "forget_quality" in aggregates and ratio is not None and other is not None:
        value = _recompute.forget_quality(ratio, other)
        agreements.append(Agreement("forget_quality", aggregates["forget_quality"], value, "Kolmogorov–Smirnov test"))
    how = "the log does not name the retrained model, and none of those given fits"
    return [
        one if one.agrees or is_retrained else dataclasses.replace(one, recomputed=math.nan, how=how)
        for one in agreements
    ]


def _summary(path: Path, log: dict[str, Any]) -> list[Agreement]:
    """Compare the SUMMARY file beside a log with the log's own aggregates; [] if there is no such file."""
    place = path.with_name(path.name.replace("EVAL", "SUMMARY")) if "EVAL" in path.name else path
    if place == path or not place.is_file():
        return []
    summary = _texts.read_json(place)
    if not isinstance(summary, dict):
        raise ValueError(f"{place}: a summary must be a mapping of metrics to numbers")
    agreements = []
    for name, value in sorted(summary.items()):
        entry = log.get(name)
        aggregate = entry.get("agg_value") if isinstance(entry, dict) else None
        if _number(value):
            stated = float(aggregate) if _number(aggregate) else math.nan
            agreements.append(Agreement(f"{name} in {place.name}", float(value), stated, f"agg_value of {path.name}"))
    return agreements
