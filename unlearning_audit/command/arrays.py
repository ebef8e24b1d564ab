"""Audit arrays in memory, for notebooks: with the same files and numbers as the protocol external."""

import contextlib
import html
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import yaml

from unlearning_audit.comparisons import distances, sensitivity
from unlearning_audit.evaluation import external as reader
from unlearning_audit.evaluation import records as record_lists
from unlearning_audit.evaluation import rows
from unlearning_audit.evaluation import verdicts as verdict_files
from unlearning_audit.plugins.suggest import unknown
from unlearning_audit.protocols import external
from unlearning_audit.report import failures, words
from unlearning_audit.report.lookup import Cell
from unlearning_audit.report.tables.typeset import interval
from unlearning_audit.stages import here
from unlearning_audit.stats import decide
from unlearning_audit.store import tables
from unlearning_audit.store.files import FailedError
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan as planning
from unlearning_audit.workflow.nodes import Plan

#: The default attacks: those of Tu, Hu & Ma 2024, and a control that must find nothing.
ATTACKS = ("correctness", "confidence", "entropy", "modified_entropy", "shadow", "random")
#: The name of the study that `audit` writes, and of its folder of results.
STUDY = "audit"

#: How a doubt is shown.
DOUBTED = "Doubted: {}"


@dataclass(frozen=True)
class Picture:
    """A figure that a notebook shows; ``path`` is its svg."""

    path: Path

    def _repr_svg_(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def _repr_png_(self) -> bytes:
        return self.path.with_suffix(".png").read_bytes()


@dataclass(repr=False)
class Audit:
    """The results of `audit`: tables, figures and the report. A notebook shows the verdicts.

    Parameters
    ----------
    folder
        The folder of all files; a temporary one is removed with this object.
    _plan
        The plan of the study, whose paths are relative to the folder.
    failures
        One line for each attack or metric that failed; all others were computed.
    doubts
        One line for each thing about the arrays that is implausible, such as samples in another order.
    remarks
        One line for each other thing to know about the arrays.
    _temporary
        The temporary folder, kept only so that it lives as long as this object; None for a folder of the user.
    """

    folder: Path
    _plan: Plan
    failures: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _temporary: Any = None

    @cached_property
    def metrics(self) -> pandas.DataFrame:
        """All numbers, one in each row; metrics and attacks that failed have none. A row whose metric is "doubt" or
        "remark" has only a note.

        The columns are ``method``, ``attack`` and ``metric``; the ``value``, the limits of its 95 % interval
        (``ci_low``, ``ci_high``), and ``n``, the number of samples, pairs or models over which it is a mean; a
        ``note``, which says why a value is missing; and columns that say what the number is of, such as ``role`` (of
        the samples) and ``pair``.
        """
        records = rows.read_study(self._results / "metrics.csv")  # numbers, and failures, which are left out below
        table = [(record.method, *astuple(record.row)) for record in records if isinstance(record.row, rows.Row)]
        return pandas.DataFrame(table, columns=["method", *rows.COLUMNS])

    @cached_property
    def verdicts(self) -> pandas.DataFrame:
        """The verdict on each method, one in each row: whether it is distinguishable from retraining, by which metric,
        and by how much.

        Empty if no metric that decides could be computed.
        """
        paths = [self.folder / comparison.outputs["verdicts"] for comparison in self._plan.comparisons]
        lines = [line for path in paths for line in verdict_files.read(path, verdict_files.VERDICTS)]
        return pandas.DataFrame(lines, columns=verdict_files.VERDICTS)

    @cached_property
    def records(self) -> pandas.DataFrame:
        """The scores of attacks on each forgotten and held-out sample.

        Columns: ``method``; ``attack`` as "name/form"; ``sample``; ``role``, "forget" or "heldout"; ``models``, how
        many models have the sample in this role; ``score``, the mean over these models (higher = more likely
        forgotten); ``called_member``, the share of these models for which the attack decides that the sample was a
        member.
        """
        columns = ["method", "attack", "sample", "role", "models", "score", "called_member"]
        summary = {"models": ("score", "size"), "score": ("score", "mean"), "called_member": ("decision", "mean")}
        found = [pandas.DataFrame(columns=columns)]  # without rows, for a result without scores
        paths = {case.method: case.scores for case in self._plan.cases if case.scores}  # of methods that were attacked
        for method, path in paths.items():
            for (attack, form), scores in tables.read_scores(self.folder / path).items():
                about = {name: scores[name] for name in ("index", "role", "score", "decision")}
                rows = pandas.DataFrame(about).query("role in ('forget', 'heldout')")  # one for each model and sample
                samples = rows.groupby(["index", "role"], observed=True).agg(**summary).reset_index()
                samples = samples.rename(columns={"index": "sample"})
                found.append(samples.assign(method=method, attack=f"{attack}/{form}")[columns])
        return pandas.concat([table for table in found if len(table)] or found, ignore_index=True)

    @cached_property
    def recognised(self) -> pandas.DataFrame:
        """Each forgotten sample with its p-value under the hypothesis that it was never seen, and whether it is on the
        list of samples that are still recognised (docs/metrics.md). The list has a false discovery rate of 10 %.

        The most exposed samples have their picture or values.
        """
        # `forgotten` keeps the rows on forgotten samples; records.csv has other rows of samples too.
        lines = filter(record_lists.forgotten, record_lists.read(self._results / "records.csv", record_lists.UNION))
        return pandas.DataFrame(lines, columns=["method", *record_lists.COLUMNS])

    def figure(self, name: str = "verdicts") -> Picture:
        """Return a figure of the report, which a notebook shows. Raises ValueError for an unknown name."""
        path = self._results / "figures" / f"{name}.svg"
        if not path.is_file():
            names = [file.stem for file in path.parent.glob("*.svg")]
            raise ValueError(f"figure: {unknown(name, names, f'figure {name!r}')}")
        return Picture(path)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Copy the report, one file that needs no network, to ``path``, and return ``path``.

        Raises OSError if the file cannot be written.
        """
        return Path(shutil.copyfile(self._results / "report.html", path))

    @property
    def matrix(self) -> pandas.DataFrame:
        """The verdicts in words, one in each row, with a note if a distance is missing or rests on an assumption. If
        there is no verdict at all, the values of Q."""
        if not len(self.verdicts):
            numbers = self.metrics.query("metric == 'q'")[["method", "attack", "value", "ci_low", "ci_high", "note"]]
            return numbers.set_index("method")
        lines = [
            {
                "verdict": words.state(line["verdict"]).word,
                "removed": "" if np.isnan(line["share_closed"]) else f"{line['share_closed']:.0%}",
                "distance": interval(Cell(line["distance"], line["ci_low"], line["ci_high"]), places=2),
                "found by": line["found_by"],
                "note": _reason(line),
            }
            for line in self.verdicts.to_dict("records")
        ]
        table = pandas.DataFrame(lines, index=pandas.Index(self.verdicts["method"]))
        return table if table["note"].any() else table.drop(columns="note")

    def __repr__(self) -> str:
        return "\n".join([self.matrix.to_string(), *self._below])

    def _repr_html_(self) -> str:
        return str(self.matrix._repr_html_() + "".join(f"<p>{html.escape(line)}</p>" for line in self._below))

    @property
    def _below(self) -> list[str]:
        """The lines below the table of verdicts: failures, doubts, remarks, and what to change."""
        return [*self.failures, *map(DOUBTED.format, self.doubts), *self.remarks, *_advice(self.verdicts)]

    @property
    def _results(self) -> Path:
        """The study's folder of results."""
        return self.folder / "results" / STUDY


def _advice(verdicts: pandas.DataFrame) -> list[str]:
    """Return a line for each reason why methods have a distance but no clear verdict, with the names of these methods
    and what to change.

    ``verdicts`` is the table of verdicts of a study. Its notes consist of clauses: the first two say why there is no
    verdict and what to change; further clauses are remarks. Where retrained models disagree, the first clause says
    both.
    """
    methods_of: dict[str, list[str]] = {}  # reason → methods
    for line in verdicts.to_dict("records"):
        if line["verdict"] in (*decide.STATES, decide.INCONCLUSIVE) and line["note"] and not np.isnan(line["distance"]):
            shown = 1 if line["verdict"] == decide.YARDSTICKS_DISAGREE else 2  # how many clauses
            reason = "; ".join(line["note"].split("; ")[:shown])
            methods_of.setdefault(reason, []).append(line["method"])
    return [f"{', '.join(names)}: {reason}" for reason, names in methods_of.items()]


def _reason(verdict: Mapping[str, Any]) -> str:
    """Return the note that `Audit.matrix` shows on a row of the table of verdicts.

    With a distance, it is the assumption on which the verdict rests, or that the interval contains 0 all the same (""
    if there is nothing to say); without a distance, it is the reason why there is none.

    For a method that failed, the reason is not returned, because its failure is shown elsewhere.
    """
    if not np.isnan(verdict["distance"]) or verdict["verdict"] == "failed":
        remark = distances.DISAGREE if distances.DISAGREE in verdict["note"] else ""
        return sensitivity.condition(verdict["note"]) or remark
    return str(verdict["note"].partition("; ")[0])  # the first clause of the note says it


def audit(
    *,
    target: Any,
    labels: Any,
    forget: Any,
    train: Any = None,
    heldout: Any = None,
    test: Any = None,
    weight: Any = None,
    pair: Any = None,
    original: Any = None,
    retrain: Any = None,
    retrain_control: Any = None,
    shadow: Any = None,
    shadow_original: Any = None,
    design: str = "given",
    method: str = "mine",
    attacks: str | Sequence[str] | Mapping[str, dict[str, Any] | None] = ATTACKS,
    metrics: str | Sequence[str] | Mapping[str, dict[str, Any] | None] = (),
    retrain_spread: float | Mapping[str, float] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Audit:
    """Audit models by their logits; nothing is trained.

    Parameters
    ----------
    target : array, float [models, samples, classes]
        Logits after unlearning, before softmax.
    labels : array, int [samples]
        The class of every sample, from 0 on.
    forget : array, bool [models, samples] or [samples]
        Which samples each model was to forget.
    train : array, bool [models, samples] or [samples], optional
        Which samples each model was trained on before unlearning. This or ``heldout`` is needed, unless all samples are
        to be forgotten.
    heldout : array, bool [models, samples] or [samples], optional
        Which samples each model never saw although they come from the same distribution.
    test : array, bool [samples], optional
        Which samples are the test part.
    weight : array, float [samples], optional
        Weights of the samples in Q.
    pair : array, int [samples], optional
        The number of each sample's pair of canaries; -1 for all others.
    original, retrain, retrain_control, shadow, shadow_original : array or mapping, optional
        Other models. ``original``: the audited models before unlearning; ``retrain``: models trained without the forget
        set; ``retrain_control``: a second, independent group of retrained models; ``shadow``: the attacker's models,
        unlearned by the same method; ``shadow_original``: the attacker's models before unlearning. An array holds
        logits, like ``target``: of the same models in the same order, or of models with the same memberships. A mapping
        holds ``logits`` and the arrays that differ from those of the audited models, such as
        ``{"logits": ..., "train": ..., "forget": ...}``. docs/models.md says which numbers each group allows.
    design : {"given", "random", "swapped"}
        How forgotten and held-out samples were chosen. After a random draw, theory predicts the numbers of retraining.
        If the samples were given (a class, a person's data), only the models ``retrain`` show these numbers.
    method : str
        The name of the method.
    attacks, metrics : str, list of str, or mapping of name to options
        Attacks to run, and metrics to compute beside the default ones, or default metrics with other options, such as
        ``{"ruli": {"minimum": 3}}``. ``{"mine": {"file": "my_attack.py"}}`` is a user's file.
    retrain_spread : float or mapping of metric to float, optional
        The standard deviation of metrics over retrained models, which a verdict from a single retrained model needs.
    bootstrap : int
        Number of bootstrap replicates for the simultaneous intervals.
    seed : int
        Seed of all random draws.
    folder : path, optional
        The folder for all files; by default a temporary folder.
    progress : bool
        Whether to show a progress bar on a terminal or in a notebook.

    Returns
    -------
    Audit
        The results, which a notebook shows as a table of verdicts: ``verdicts``, ``metrics``, ``records``,
        ``figure()`` and ``report()``.

    Raises
    ------
    ValueError
        With one sentence, for arrays that do not fit their arguments, and for other arguments that are not valid.

    Examples
    --------
    ``unlearned``, ``originals`` and ``retrained`` are logits; ``seen`` and ``forget`` are memberships:

    >>> result = audit(target=unlearned, original=originals, retrain=retrained, labels=y, train=seen, forget=forget)
    >>> result.verdicts[["method", "verdict", "distance"]]
    >>> result.report("page.html")
    """
    audited = {"logits": target, "forget": forget, "train": train, "heldout": heldout, "pair": pair}
    populations = {"": {"labels": labels, "test": test, "weight": weight}, "target": audited}
    others = {
        "original": original, "retrain": retrain, "retrain_control": retrain_control, "shadow": shadow,
        "shadow_original": shadow_original,
    }  # fmt: skip
    for name, value in others.items():
        if isinstance(value, Mapping):
            populations[name] = dict(value)
        elif value is not None:
            # Shadow models without memberships of their own have those of the audited models.
            memberships = {**audited, "pair": None} if name.startswith("shadow") else {}
            populations[name] = {**memberships, "logits": value}
    arrays = _as_arrays(populations)
    scenario = {
        "protocol": {"name": "external", "path": "logits", "design": design},
        "methods": [method],
        "attacks": _by_name(attacks),
        "metrics": _by_name(metrics),
    }
    study = {"study": STUDY, "bootstrap": bootstrap, "seed": seed, "scenarios": {"audit": scenario}}
    if retrain_spread is not None:
        study["retrain_spread"] = dict(retrain_spread) if isinstance(retrain_spread, Mapping) else retrain_spread
    temporary = tempfile.TemporaryDirectory(prefix="audit-") if folder is None else None
    place = Path(temporary.name if temporary else str(folder)).resolve()
    place.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(place):
        _write(arrays)
        try:
            plan = _planned(study)
        except ValueError as error:
            raise ValueError(_about_arguments(str(error))) from None
        Path("audit.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
        here.make(plan, "audit.yaml", progress=progress)
    failed, doubted, remarks = _messages(place, method)
    for line in (*failed, *map(DOUBTED.format, doubted)):
        warnings.warn(line, stacklevel=2)
    return Audit(place, plan, failed, doubted, remarks, temporary)


def _argument(population: str, name: str) -> str:
    """Return by which argument of `audit` a user gives the array ``name`` of a ``population``.

    It is "retrain" for the logits of retrained models. Any other array of the audited models, or one that all models
    share (population ""), is an argument of its own, such as "train" or "labels". Any other array of another population
    is an entry of a mapping: "retrain['train']".
    """
    if name == "logits":
        return population
    return name if population in ("", "target") else f"{population}[{name!r}]"


#: Path of an array's file → the argument of `audit` that it is.
ARGUMENTS = {
    str(Path("logits", population, f"{name}.npy")): _argument(population, name)
    for population in ("", *external.PER_METHOD, *external.SHARED) for name in external.ARRAYS
}  # fmt: skip


def _as_arrays(populations: Mapping[str, Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Convert all given arrays to NumPy, and return the path of the file in which each will be saved → array.

    ``populations``: group of models ("target", "retrain", …; "" for what all share) → name of an array → value or None.
    None is left out. Raises ValueError for an unknown array or a group without logits.
    """
    arrays = {}
    for population, given in populations.items():
        for name in given:
            if name not in external.ARRAYS:
                raise ValueError(f"{population}: {unknown(name, external.ARRAYS, f'array {name!r}')}")
        if population and given.get("logits") is None:
            raise ValueError(f"{population}: must be given")
        for name, value in given.items():
            if value is not None:
                path = str(Path("logits", population, f"{name}.npy"))
                arrays[path] = _array(value, ARGUMENTS[path])
    return arrays


def _about_arguments(sentence: str) -> str:
    """Rewrite a ``sentence`` of an error, which is about files of arrays, so that it is about the arguments of `audit`
    by which the arrays were given."""
    # A path becomes the argument's name, which is kept once where the message repeats it: "labels: labels must …".
    for path, argument in ARGUMENTS.items():
        sentence = sentence.replace(path, argument).replace(f"{argument}: {argument} ", f"{argument} ")
    sentence = sentence.replace("this file is missing; save it with numpy.save", "must be given")
    sentence = sentence.replace("this file is missing, and so is heldout.npy; one of the two must be there",
                                "give this or heldout")  # fmt: skip
    return sentence.removeprefix("audit: ").removeprefix("scenarios.audit.").removeprefix("protocol.path: ")


def _write(arrays: Mapping[str, np.ndarray]) -> None:
    """Delete the files and empty folders that an earlier call left in the working directory, and save the arrays, path
    → array, there."""
    for path in ARGUMENTS:
        Path(path).unlink(missing_ok=True)
    for folder in {Path(path).parent for path in ARGUMENTS} - {Path(path).parent for path in arrays}:
        with contextlib.suppress(OSError):  # it does not exist, or has files of the user
            folder.rmdir()
    for path, array in arrays.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array, allow_pickle=False)


def _array(value: Any, argument: str) -> np.ndarray:
    """Return ``value`` as a NumPy array. Raises ValueError that names the ``argument`` of `audit` if ``value`` does not
    hold numbers."""
    logits = "logits [models, samples, classes]" if argument in (*external.PER_METHOD, *external.SHARED) else "numbers"
    expected = f"{argument} must be an array of {logits}, found"
    if isinstance(value, Mapping):
        raise ValueError(f"{expected} a {type(value).__name__}; of a model's output, give only the logits")
    try:
        array = np.asarray(_plain(value))
    except ValueError:
        raise ValueError(f"{expected} a list of unequal parts; of a model's output, give only the logits") from None
    if array.dtype.kind in "US":
        classes = "number the classes from 0, in the order of the logits' last axis"
        advice = classes if argument == "labels" else "pass arrays, such as numpy.load(path) for each path"
        raise ValueError(f"{expected} text; {advice}")
    if array.dtype.hasobject:
        raise ValueError(f"{expected} other objects")
    return array


def _plain(value: Any) -> Any:
    """Return ``value`` with tensors converted to NumPy arrays, also in nested lists. bfloat16, which NumPy lacks,
    becomes float32."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if not hasattr(value, "detach"):
        return value
    value = value.detach().cpu()
    return (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()


def _planned(study: dict[str, Any]) -> Plan:
    """Return the plan of ``study``, the content of a study's file.

    All arrays are read first, only to check them. Raises ValueError if an array does not fit its argument or the other
    arrays.
    """
    whole = reading.read(study, "audit")
    (scenario,) = whole.scenarios  # `audit` writes studies of one scenario
    options, methods = external.Options(**scenario.protocol.options), list(scenario.methods)
    for name in methods:
        for population in external.populations(options, name, methods).values():
            # Audited models that diverged are a result, not an error.
            with contextlib.suppress(FailedError) if population.kind == "target" else contextlib.nullcontext():
                reader.read(population.files, population.kind)  # only because it raises for arrays that do not fit
    return planning.make(whole)


def _by_name(chosen: str | Sequence[str] | Mapping[str, dict[str, Any] | None]) -> dict[str, Any]:
    """Return attacks or metrics as name → options, from one name, several names, or a mapping from names to options, in
    which None stands for no options. The path of a user's file becomes absolute, because the study runs in another
    folder."""
    names = [chosen] if isinstance(chosen, str) else chosen
    given = chosen if isinstance(chosen, Mapping) else dict.fromkeys(names)
    options_of = {name: dict(options or {}) for name, options in given.items()}
    for options in options_of.values():
        if "file" in options:
            options["file"] = str(Path(options["file"]).resolve())
    return options_of


def _messages(folder: Path, method: str) -> Iterator[list[str]]:
    """Yield three lists of lines from the results in ``folder``: the failures of the run, the doubts about
    models, and the remarks, each line once. In these lines, the path of the audited models' files is replaced by the
    argument's name, target."""
    records = rows.read_study(folder / "results" / STUDY / "metrics.csv")  # numbers, notes of models, and failures
    intact = [record.row for record in records if isinstance(record.row, rows.Row)]
    # The keys are the notes of either kind, each once and in order.
    notes = [dict.fromkeys(row.note for row in intact if row.metric == kind) for kind in ("doubt", "remark")]
    for lines in (failures.lines(records), *notes):
        yield [line.replace(f"{method}/target", "target") for line in lines]
