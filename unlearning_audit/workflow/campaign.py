"""A campaign tunes one method: trials unlearn some pairs of models, and are evaluated like the study's methods."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.comparisons import distances, tuning
from unlearning_audit.comparisons.distances import RETRAIN, Contrast, Read
from unlearning_audit.comparisons.tuning import Trial
from unlearning_audit.evaluation import scoring
from unlearning_audit.evaluation.arrays import Data, Logits, Membership
from unlearning_audit.evaluation.effects import Effect
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.trials import COLUMNS
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import MachineError
from unlearning_audit.randomness.keyed import generator, seed_of
from unlearning_audit.store import tables
from unlearning_audit.store.files import ArtifactError, NoAnswerError, write_json
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows
from unlearning_audit.workflow.attempt import run_method
from unlearning_audit.workflow.open_stack import ModelBatch, device_facts

#: Random draws for the interval over several attacks. A trial uses only the strongest attack.
DRAWS = 100


class Campaign:
    """The tuning of one method: trials, each of which evaluates the method with other options. The models to be
    unlearned come in pairs (or in the larger blocks of a protocol without pairs). The logits of a pair that a trial has
    unlearned are kept, so that later rounds need not unlearn it again.

    Parameters
    ----------
    data
        The file of samples.
    splits
        The file of memberships.
    trained
        The file of weights before unlearning.
    originals
        The file of logits before unlearning.
    retrained
        The file of logits of retrained models.
    settings
        The settings of the stage ``tune``: method, options and their ranges, attacks, metrics.
    place
        The files of the user's own model and method.
    base
        At most one file, of the model that all models start from.
    folder
        A folder for temporary files.
    """

    def __init__(
        self,
        data: str,
        splits: str,
        trained: str,
        originals: str,
        retrained: str,
        settings: dict[str, Any],
        place: dict[str, Any],
        base: Sequence[str],
        folder: Path,
    ) -> None:
        """Read the files, and divide models, memberships and logits by pair of models."""
        self.data_file, self.settings, self.folder = data, settings, folder
        self.data = Data.read(data)
        membership = Membership.read(splits, samples=len(self.data.y))
        # Whether trials are compared only by their accuracies: on retained, on forgotten and on test samples.
        self.by_accuracy = settings["tune"]["objective"] == "accuracy"
        self.method = registry.load("methods", settings["method"], place.get("method_file"))
        self.file = settings["method_options"].get("file") or self.method.__file__
        stack = ModelBatch(self.data, membership, settings, place, base).stack(membership)
        self.device = stack.device
        stack.information = {}  # keeps the Fisher information of the models, which several trials of a method may need
        stack.load(trained)
        stack.seeds = membership.unlearning_seeds()
        # The models of each pair, which have the number of one block.
        models_of = [np.flatnonzero(membership.block == block) for block in np.unique(membership.block)]
        self.pairs = [membership[models] for models in models_of]
        self.stacks = [stack.take(models) for models in models_of]
        self.splits = [self._written(of_pair, "membership", pair) for pair, of_pair in enumerate(self.pairs)]
        self.originals, self.retrained = (self._split_by_pair(path, models_of) for path in (originals, retrained))
        # For each setting of the method: one file of logits per pair that it has unlearned, and the seconds it took.
        self.unlearned: dict[int, list[str]] = {}
        self.seconds: dict[int, float] = {}
        # Number of pairs → the effects of their retrained models, which all trials on these pairs are compared with.
        self._yardsticks: dict[int, dict[str, Effect]] = {}

    def run(self, setting_file: str, trials: str) -> dict[str, Any]:
        """Evaluate settings of the method (its options) in rounds: each round keeps the better settings and evaluates
        them on more pairs of models.

        Writes the chosen options as JSON to ``setting_file`` and one row per round and trial to the CSV file
        ``trials``. Returns the number of settings, the number of the chosen one and the device, for the job's spec.
        """
        tune = self.settings["tune"]
        seed = seed_of(self.settings["seed"], "tune", self.settings["method"])
        options_of = tuning.settings(self.settings["method_options"], tune["space"], tune["trials"], seed)
        numbers = list(range(len(options_of)))  # of the settings that are still tried
        rounds: list[list[Trial]] = []
        for count, pairs in tuning.rounds(len(options_of), len(self.pairs)):
            if rounds:
                numbers = tuning.survivors(rounds[-1], count)
            rounds.append([self.trial(number, options_of[number], pairs) for number in numbers])
        winner = tuning.choice(rounds[-1])
        table = [_row(stage, trial, winner) for stage, tried in enumerate(rounds, 1) for trial in tried]
        tables.write_rows(trials, table, COLUMNS)
        chosen = {
            "options": winner.options, "trial": winner.number, "trials": len(options_of),
            "distance": _rounded(winner.distance), "error": _rounded(winner.error),
            "flatness": _rounded(tuning.flatness(rounds[0])), "pairs": len(self.pairs),
        }  # fmt: skip
        write_json(setting_file, chosen)
        return {"trials": len(options_of), "chosen": winner.number, **device_facts(self.device)}

    def trial(self, number: int, options: dict[str, Any], pairs: int) -> Trial:
        """Evaluate one setting of the method, its ``options``, on the first ``pairs`` pairs of models, and return the
        trial.

        If the method fails, its models answer NaN, or no metric decides, the returned trial has a note on the error and
        no distance. Errors of the machine and damaged files are raised.

        Parameters
        ----------
        number
            Identifies the setting, whose unlearned models are reused in later rounds.
        """
        trial = Trial(number, options, pairs)
        try:
            files = self.unlearned.setdefault(number, [])  # of earlier rounds, one for each pair in order
            while len(files) < pairs:
                files.append(self._unlearn_pair(number, options, len(files)))
            return self._measured(replace(trial, seconds=self.seconds[number]), files[:pairs])
        except ValueError as error:
            unreadable = isinstance(error, ArtifactError) and not isinstance(error, NoAnswerError)
            if unreadable or isinstance(error, MachineError):  # a full disk is no fault of the setting
                raise
            return replace(trial, note=str(error))

    def _unlearn_pair(self, number: int, options: dict[str, Any], pair: int) -> str:
        """Let the models of one pair unlearn with the method's ``options``, write their logits, and return the path.
        The seconds are added to those of the setting ``number``."""
        stack, membership = self.stacks[pair].copy(), self.pairs[pair]

        def unlearn(*given: ModelStack | Rows) -> object:
            """Call the method with models, the rows to forget and the rows to retain, and with the ``options`` that the
            function around this one got."""
            return registry.call("methods", self.method, "unlearn", *given, self.method.Options(**options))

        seconds = run_method(stack, unlearn, Rows.where(membership.forget), Rows.where(membership.retain), self.file)
        # Seconds that the method spared by reusing an earlier trial's Fisher information count as spent.
        self.seconds[number] = self.seconds.get(number, 0.0) + seconds + stack.spared
        logits = Logits(index=np.arange(len(self.data.y)), y=self.data.y, logits=stack.logits())
        return self._written(logits, f"trial{number}", pair)

    def _measured(self, trial: Trial, files: list[str]) -> Trial:
        """Return the trial with its distance from retraining, the standard error of this distance, and its loss of
        utility. All three are in units of the metric's margin, the distance that counts as equivalence.

        ``files``: the logits of the unlearned models, one file per pair. The distance is the largest over the metrics
        that decide verdicts, or over all metrics if the objective is accuracy. The loss is the largest signed distance
        over the metrics that do not decide, above 0 if the model is worse than retraining, 0 without such metrics.
        Metrics that give no distance, and coarse metrics, whose margin may be wider, are left out of both. Raises
        ValueError if no metric decides.
        """
        if trial.pairs not in self._yardsticks:
            self._yardsticks[trial.pairs] = self._effects(self.retrained[: trial.pairs])
        effects = {"trial": self._effects(files), RETRAIN: self._yardsticks[trial.pairs]}
        reads = []  # one distance from retraining for each metric
        for metric in effects["trial"]:
            # The trial's and the retrained models' numbers by this metric, or the reason why they give no distance.
            contrast = distances.contrast_or_reason("trial", metric, effects)
            if isinstance(contrast, Contrast) and not contrast.audited.rule.coarse:
                rng = generator(self.settings["seed"], "tune", metric)
                reads.append(distances.read(contrast, metric, margins=self.settings["margins"], rng=rng, draws=DRAWS))
        deciding = [read for read in reads if self.by_accuracy or read.contrast.audited.rule.deciding]
        if not deciding:
            raise ValueError("no metric of this scenario measures the distance from retraining")
        furthest = max(deciding, key=lambda read: abs(_in_margins(read)))
        losses = [_in_margins(read) for read in reads if not read.contrast.audited.rule.deciding]
        # ``chosen``: the index of the attack whose distance stands for all attacks.
        error = float(furthest.numbers.errors[furthest.chosen])
        return replace(
            trial, distance=abs(_in_margins(furthest)), error=error / _margin(furthest), lost=max(losses, default=0.0),
            margin=_margin(furthest),
            metric=furthest.metric + (f" ({furthest.attack})" if furthest.attack else ""),
        )  # fmt: skip

    def _effects(self, files: list[str]) -> dict[str, Effect]:
        """Return metric → its effects: what each model and sample adds to the metric's number. They are computed from
        the logits ``files``, one per pair, and from the scores of attacks on them. If the objective is accuracy, a
        metric's effects are those of its accuracies."""
        evaluation, path = self._evaluation(files, scores=None), str(self.folder / "scores.parquet")
        columns, _failed = scoring.score(evaluation, self.settings["attacks"], seed=evaluation.seed)
        tables.write_scores(path, columns)
        evaluation = self._evaluation(files, scores=path)  # the same one with the scores, which metrics read
        effects: dict[str, Any] = {}
        for entry in self.settings["metrics"].values():
            module = registry.load("metrics", entry["name"])
            if self.by_accuracy:
                effects |= module.accuracies_by_role(evaluation)
            else:
                options = registry.options("metrics", entry["name"])(**entry["options"])
                effects |= registry.call("metrics", module, "effects", evaluation, options)
        return effects

    def _evaluation(self, files: list[str], scores: str | None) -> Evaluation:
        """Return the evaluation of unlearned models with the logits ``files``, one for each of the first pairs of
        models, and with the file of attacks' ``scores``, or None."""
        pairs = len(files)
        evaluation = Evaluation(
            self.data_file, self.splits[:pairs], self.originals[:pairs], files, scores_file=scores,
            retrained_files=self.retrained[:pairs],
        )  # fmt: skip
        evaluation.seed, evaluation.draws = self.settings["seed"], DRAWS
        evaluation.sets = {"paper": self.settings["paper_set"], "adaptive": self.settings["adaptive_set"]}
        return evaluation

    def _split_by_pair(self, path: str, models_of: list[np.ndarray]) -> list[str]:
        """Split the file of all models' logits ``path`` into one temporary file per pair of models, and return their
        paths. ``models_of``: for each pair, the numbers of its models."""
        whole = Logits.read(path, sum(map(len, models_of)))  # raises unless the file has so many models
        parts = [replace(whole, logits=whole.logits[models]) for models in models_of]
        return [self._written(part, Path(path).parent.name, pair) for pair, part in enumerate(parts)]

    def _written(self, arrays: Logits | Membership, name: str, pair: int) -> str:
        """Write the memberships or logits of one pair of models to a new file in a folder ``name``-``pair``, and return
        its path."""
        path = self.folder / f"{name}-{pair}" / "arrays.npz"
        arrays.write(path)
        return str(path)


def _margin(read: Read) -> float:
    """Return the margin of equivalence with which the distance is compared, as a positive number: the upper margin for
    a positive distance, and the lower margin without its minus sign for any other distance."""
    lower, upper = read.distance.margin
    return upper if read.distance.estimate.value > 0 else -lower


def _in_margins(read: Read) -> float:
    """Return the signed distance from retraining, divided by its margin."""
    return float(read.distance.estimate.value) / _margin(read)


def _rounded(value: float) -> float | None:
    """Return a rounded value, or None if it is not finite."""
    return round(value, 6) if np.isfinite(value) else None


def _row(stage: int, trial: Trial, winner: Trial) -> dict[str, Any]:
    """Return the row of the table of trials for one trial in round ``stage`` (1 is the first). "chosen" is 1 for a
    trial with the setting of the ``winner``, and 0 for any other. The interval of the distance has level 95 %. For a
    trial without a distance, as of a method that failed, distance, interval and loss are NaN."""
    distance, half_width = trial.distance, 1.96 * trial.error
    limits = {"ci_low": max(distance - half_width, 0.0), "ci_high": distance + half_width}
    numbers = {"distance": distance, **limits, "lost": trial.lost}
    if not np.isfinite(distance):
        numbers = dict.fromkeys(numbers, np.nan)
    return {
        "stage": stage, "trial": trial.number, "pairs": trial.pairs, "metric": trial.metric, "margin": trial.margin,
        **numbers, "seconds": trial.seconds, "chosen": int(trial.number == winner.number),
        "options": json.dumps(trial.options, sort_keys=True), "note": trial.note,
    }  # fmt: skip
