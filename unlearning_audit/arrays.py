"""The audit of arrays in memory, for a notebook: the same files and the same run as the protocol external has."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas

#: What is asked where nothing is named: the adversaries of Tu, Hu & Ma 2024 and a control that must find nothing.
ATTACKS = ("correctness", "confidence", "entropy", "modified_entropy", "shadow", "random")
STUDY = "audit"


@dataclass
class Audit:
    """What came out. ``folder`` holds all files; a temporary one is removed with this object.

    ``failures``: one line for each attack or metric that failed; the rest was computed all the same.
    """

    folder: Path
    failures: list[str] = field(default_factory=list)
    _temporary: Any = None

    @cached_property
    def table(self) -> "pandas.DataFrame":
        """Every number, tidy: method, attack, metric, setting, value, ci_low, ci_high (95 %), n and note, which says
        why a value is empty."""
        import pandas

        from unlearning.artifacts import tables

        rows = tables.read_rows(self._results / "metrics.csv", tables.UNION_COLUMNS)
        return pandas.DataFrame(rows, columns=tables.UNION_COLUMNS).drop(columns=["study", "scenario", "protocol"])

    @cached_property
    def verdicts(self) -> "pandas.DataFrame":
        """A line for each method: whether it is told from retraining, by what, and by how much; empty where nothing
        that decides could be computed."""
        import pandas

        from unlearning.artifacts import verdicts

        found = sorted(self.folder.glob("results/comparisons/*/verdicts.csv"))
        rows = [row for path in found for row in verdicts.read(path, verdicts.VERDICTS)]
        return pandas.DataFrame(rows, columns=verdicts.VERDICTS)

    def report(self, path: str | os.PathLike) -> Path:
        """Copy the page, one file that needs no network, to ``path``, and return that.

        Raises OSError if it cannot be written there.
        """
        return Path(shutil.copyfile(self._results / "report.html", path))

    def _repr_html_(self) -> str:
        return self.verdicts._repr_html_() if len(self.verdicts) else self.table._repr_html_()

    @property
    def _results(self) -> Path:
        return self.folder / "results" / STUDY


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
    method: str = "mine",
    attacks: Sequence[str] | Mapping[str, dict | None] = ATTACKS,
    bootstrap: int = 1000,
    seed: int = 0,
    folder: str | os.PathLike | None = None,
    cores: int = 0,
) -> Audit:
    """Audit models by what they answer; nothing is trained.

    ``target``: logits [models, samples, classes], before softmax, of the models after unlearning. ``labels`` int
    [samples]; ``forget``, ``train``, ``heldout`` bool [models, samples], or [samples] if all models are alike: what
    each model was asked to forget, was trained on, and never saw though it could have; one of the last two must be
    given. ``test`` bool [samples], ``weight`` float [samples], ``pair`` int [samples].

    Other populations are logits of the same models in the same order, or of models that saw the same, or a mapping with
    ``logits`` and whatever differs from the above, such as {"logits": …, "train": …, "forget": …}: ``original`` before
    unlearning, ``retrain`` and ``retrain_control`` trained without the forget set, ``shadow`` and ``shadow_original``
    the adversary's own, unlearned and as trained. docs/own_logits.md says what each allows, and what is inferred.

    ``method`` names the method, ``attacks`` are names, or options by name, {"mine": {"file": "my_attack.py"}} for an
    attack of one's own. ``folder``: where all files are kept; a temporary one if None. ``cores``: how many are used,
    all if 0.

    Raises ValueError with one sentence for arrays that cannot be what they are said to be, and RuntimeError if the
    run did not end.
    """
    temporary = tempfile.TemporaryDirectory(prefix="audit-") if folder is None else None
    place = Path(temporary.name if temporary else folder).resolve()
    alike = {"labels": labels, "test": test, "weight": weight}
    audited = {"logits": target, "forget": forget, "train": train, "heldout": heldout, "pair": pair}
    others = {
        "original": original, "retrain": retrain, "retrain_control": retrain_control, "shadow": shadow,
        "shadow_original": shadow_original,
    }  # fmt: skip
    _write(place / "logits", alike)
    _write(place / "logits" / "target", audited)
    for name, given in others.items():
        if given is not None:
            own = given if isinstance(given, Mapping) else {"logits": given}
            # Shadow models without memberships of their own saw what the audited ones saw.
            lent = {} if isinstance(given, Mapping) or not name.startswith("shadow") else audited | {"pair": None}
            _write(place / "logits" / name, {**lent, **own}, name)
    scenario = {
        "protocol": {"name": "external", "path": "logits"},
        "methods": [method],
        "attacks": _from_here(attacks) if isinstance(attacks, Mapping) else list(attacks),
    }
    study = {"study": STUDY, "bootstrap": bootstrap, "seed": seed, "scenarios": {"audit": scenario}}
    with contextlib.chdir(place):
        _check(study)
    return Audit(place, _run(place, study, cores), temporary)


def _write(folder: Path, arrays: Mapping[str, Any], population: str = "") -> None:
    """``name.npy`` for every array that is given."""
    from unlearning.plugins.suggest import unknown
    from unlearning.protocols.external import KNOWN

    folder.mkdir(parents=True, exist_ok=True)
    for name, value in arrays.items():
        if name not in KNOWN:
            raise ValueError(f"{population}: {unknown(name, KNOWN, f'array {name!r}')}")
        (folder / f"{name}.npy").unlink(missing_ok=True)
        if value is None:
            continue
        value = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        if value.dtype.hasobject:
            where = f"{population}: {name}" if population else name
            raise ValueError(f"{where} must be an array of numbers, found a list of unequal parts or of other things")
        np.save(folder / f"{name}.npy", value, allow_pickle=False)


def _check(study: dict) -> None:
    """Raise ValueError for a study that is none and for arrays that are not what they should be, in a moment."""
    from unlearning.artifacts import external as reader
    from unlearning.protocols import external
    from unlearning.study import reading

    (scenario,) = reading.read(study, "audit").scenarios
    options, named = external.Options(**scenario.protocol.options), list(scenario.methods)
    for name in named:
        for population in external.populations(options, name, named).values():
            reader.read(population.files, population.kind)


def _from_here(attacks: Mapping) -> dict:
    """Options by name; the file of an attack of one's own lies relative to the working directory."""
    own = {name: dict(options or {}) for name, options in attacks.items()}
    return {
        name: options | ({"file": str(Path(options["file"]).resolve())} if "file" in options else {})
        for name, options in own.items()
    }


def _run(place: Path, study: dict, cores: int) -> list[str]:
    """Make everything; the lines of what failed."""
    import yaml

    from unlearning.artifacts import tables
    from unlearning.display import failures
    from unlearning_audit import ROOT, caches

    (place / "audit.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--nocolor"]
    done = subprocess.run(
        [*command, "--configfile", "audit.yaml", "--cores", str(cores or "all")], cwd=place, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        env=caches.environment(),
    )  # fmt: skip
    if not (place / "results" / STUDY / "report.html").exists():
        raise RuntimeError(f"the run in {place} did not end:\n{done.stdout[-2000:]}")
    failed = failures.lines(tables.read_rows(place / "results" / STUDY / "metrics.csv", tables.UNION_COLUMNS))
    for line in failed:
        warnings.warn(line, stacklevel=3)
    return failed
