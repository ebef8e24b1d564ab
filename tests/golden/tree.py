"""How this tree plans a study, runs it, scores it and lays out its files: all that golden tests know of it.

Whoever renames a file, merges jobs or moves a room edits this module and nothing else in this folder. It works in the
current folder, as the workflow does. Studies are written with the fields of the tree that the numbers come from;
`renamed.csv` says what these are called here.

    uv run python tests/golden/tree.py STUDY    # train and score it here, then write tables/
"""

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from shutil import copy

import numpy as np
import pandas as pd
import yaml

GOLDEN = Path(__file__).resolve().parent
ROOT = GOLDEN.parents[1]
sys.path.insert(0, str(ROOT))

from unlearning_audit.report import decisions, naming, style  # noqa: E402
from unlearning_audit.report.tables import formats  # noqa: E402
from unlearning_audit.report.tables import verdicts as display  # noqa: E402
from unlearning_audit.stages import here  # noqa: E402
from unlearning_audit.store.files import write_arrays  # noqa: E402
from unlearning_audit.study import reading  # noqa: E402
from unlearning_audit.workflow import parameters, plan  # noqa: E402
from unlearning_audit.workflow.nodes import Node, Plan  # noqa: E402

#: Stages whose results are kept, because they need trained models.
MODELS = ("data", "splits", "pretrain", "train", "unlearn", "signals")

#: Settings that tell apart what is read of the same models.
TOLD = ("rows", "answers")

#: Signal → stage and file in which the numbers were kept; others lie in "readings".
KEPT = {"relearned": ("relearn", "relearned"), "generations": ("generate", "generations"),
        "sampled": ("generate", "generations")}  # fmt: skip

#: How other tools' logs are read.
LOGS = {"privacyguard": {"alone": True}, "privacy_meter": {"alone": True}, "lira": {"alone": True}}


def planned(study: Path) -> Plan:
    """The plan of a study, which is written to study.yaml in the words of this tree."""
    names = pd.read_csv(GOLDEN / "renamed.csv", dtype=str, keep_default_na=False)
    names = names[names["kind"] == "study"]
    words = dict(zip(names["old"], names["new"], strict=True))

    def in_words(value):
        if isinstance(value, dict):
            return {words.get(key, key): in_words(item) for key, item in value.items() if words.get(key) != ""}
        return [in_words(item) for item in value] if isinstance(value, list) else words.get(value, value)

    for text in study.parent.glob("*.jsonl"):
        copy(text, ".")
    content = in_words(yaml.safe_load(study.read_text(encoding="utf-8")))
    Path("study.yaml").write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return plan.make(reading.read(*reading.load(["study.yaml"])))


# ---------------------------------------------------------------- arrays


def artifacts(made: Plan) -> Iterator[tuple[str, str, Node]]:
    """Name, file and node of all that models leave: "unlearn/DATA-PROTOCOL-MODEL-BLOCKS-METHOD", without the key, which
    changes with the code. Of equal names the second ends in "~2"."""
    for stage in MODELS:
        seen: dict[str, int] = {}
        for node in made.nodes[stage].values():
            signal, label = node.settings.get("signal"), node.label
            kept, _ = KEPT.get(signal, ("readings" if signal else stage, ""))
            label = label.removesuffix(f"-{signal}") if signal in KEPT else label
            name = "/".join([kept, *(str(node.settings[key]) for key in TOLD if key in node.settings), label])
            seen[name] = seen.get(name, 0) + 1
            for output in node.outputs.values():
                if output.endswith((".npz", ".safetensors")):
                    yield name + (f"~{seen[name]}" if seen[name] > 1 else ""), output, node


def keep(made: Plan) -> dict[str, np.ndarray]:
    """The arrays of all artifacts but weights, by "NAME/ARRAY"."""
    arrays = {}
    for name, path, _ in artifacts(made):
        if path.endswith(".npz"):
            with np.load(path) as archive:
                arrays |= {f"{name}/{field}": archive[field] for field in archive.files if field != "node"}
    return arrays


def lay(made: Plan, arrays: dict[str, np.ndarray]) -> None:
    """Write the kept arrays where this plan's jobs look for them. Raises ValueError if they are not all needed."""
    left = set(arrays)
    for name, path, _ in artifacts(made):
        if path.endswith(".npz"):
            fields = {key.rpartition("/")[2]: key for key in left if key.rpartition("/")[0] == name}
            if not fields:
                raise ValueError(f"{name}: the plan needs this, and no arrays of this name are kept")
            write_arrays(path, **in_words({field: arrays[key] for field, key in fields.items()}))
            left -= set(fields.values())
    if left:
        raise ValueError(f"{sorted(left)[0]}: kept, and the plan does not ask for it")


def in_words(fields: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a file by the names that they have here."""
    if "token_index" not in fields:
        return fields
    return {"signal": np.array("tokens"), "values": fields["tokens"], "index": fields["token_index"]}


def weights(made: Plan) -> pd.DataFrame:
    """A line for every array that models leave, weights included, with the SHA-256 of its bytes."""
    from safetensors.numpy import load_file

    lines = []
    for name, path, node in artifacts(made):
        signal = node.settings.get("signal")
        stored = f"{KEPT.get(signal, ('', 'readings'))[1]}.npz" if signal else Path(path).name
        if path.endswith(".safetensors"):
            fields = load_file(path)
        else:
            with np.load(path) as archive:
                fields = {field: archive[field] for field in archive.files if field != "node"}
        if "values" in fields:  # of a signal, whose array had its name
            fields = {str(fields["signal"]): fields["values"], "token_index": fields["index"]}
        for field, value in sorted(fields.items()):
            digest = sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            kind = f"{value.dtype}{[*value.shape]}"
            lines.append({"artifact": name, "stored": stored, "array": field, "kind": kind, "sha256": digest})
    return pd.DataFrame(lines)


# ---------------------------------------------------------------- scores


def score(study: str) -> dict[str, pd.DataFrame]:
    """Score a study anew from its kept inputs, in this process: every table by its name."""
    if study.startswith("logs_"):
        return _score_logs(study.removeprefix("logs_"))
    with np.load(GOLDEN / "inputs" / f"{study}.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name in [name for name in arrays if name.startswith("arrays/")]:  # of models from elsewhere
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        np.save(f"{name}.npy", arrays.pop(name))
    made = planned(GOLDEN / "studies" / f"{study}.yaml")
    lay(made, arrays)
    return _scored(made)


def _score_logs(name: str) -> dict[str, pd.DataFrame]:
    """What the readers make of kept logs in one format."""
    from unlearning_audit import readers

    with tarfile.open(GOLDEN / "inputs/logs.tar.xz") as archive:
        archive.extractall(".", [m for m in archive if m.name.startswith(f"{name}/")], filter="data")
    imported = readers.imported([Path(name)], **LOGS.get(name, {}))
    content = readers.write(imported, Path("read"), f"logs_{name}")
    Path("read.yaml").write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    agreements = pd.DataFrame(readers.agreement_rows(imported)).rename(columns={"file": "log"}).fillna("").astype(str)
    return _scored(planned(Path("read.yaml"))) | ({"agreements": agreements} if len(agreements) else {})


def _scored(made: Plan) -> dict[str, pd.DataFrame]:
    here.judge(made)
    _show(made)
    return tables(made)


def _show(made: Plan) -> None:
    """The tables of a study, without its drawings."""
    folder = Path("results", made.study.name)
    union = str(folder / "metrics.csv")
    style.save = lambda *_, **__: None

    def files(name: str) -> dict[str, str]:
        drawn = {ending: str(folder / f"figures/{name}.{ending}") for ending in ("svg", "png")}
        return {ending: str(folder / f"tables/{name}.{ending}") for ending in ("csv", "md", "tex")} | drawn

    def make(script: str, settings: dict, name: str, *leave_out: str, **more: str) -> None:
        paths = {ending: path for ending, path in files(name).items() if ending not in leave_out}
        getattr(import_module(f"unlearning_audit.stages.{script}"), script)(**paths, **more, settings=settings)

    make("collect", parameters.collect(made), "records", "svg", "png", union=union, lists=str(folder / "records.csv"))
    make("meta", parameters.meta(made), "meta", metrics=union)
    for name in ("headline", *made.study.tables):
        make("table", parameters.table(made, name), name, "svg", "png", metrics=union)
    settings = parameters.verdicts(made)
    naming.set_aliases(settings["own_metrics"])
    verdicts = decisions.read(settings["comparisons"])
    for name in ("verdicts", "ranks", "resolution"):
        paths = {ending: path for ending, path in files(name).items() if ending in ("csv", "md", "tex")}
        formats.write([getattr(display, name)(verdicts, settings["study"])], **paths)


def tables(made: Plan) -> dict[str, pd.DataFrame]:
    """What users read of a finished study, as text: the tables of its folder but for costs, the distances of every
    scenario, and the scores of every sample."""
    folder = Path("results", made.study.name)
    paths = [folder / "metrics.csv", folder / "records.csv", *sorted(folder.glob("tables/*.csv"))]
    found = {
        path.relative_to(folder).with_suffix("").as_posix(): pd.read_csv(path, dtype=str, keep_default_na=False)
        for path in paths if path.stem != "cost" and path.read_text(encoding="utf-8").strip()
    }  # fmt: skip
    distances, scores = [], []
    for comparison in made.comparisons:
        lines = pd.read_csv(comparison.outputs["distances"], dtype=str, keep_default_na=False)
        distances.append(lines.assign(**comparison.scenario.place._asdict()))
    for case in made.cases:
        if case.scores is not None:
            lines = pd.read_parquet(case.scores)
            scores.append(lines.assign(**case.scenario.place._asdict(), method=case.method))
    found["distances"] = pd.concat(distances) if distances else pd.DataFrame()
    if scores:
        found["scores"] = pd.concat(scores)
    return found


# ---------------------------------------------------------------- training


def train(study: Path) -> Plan:
    """Run a study by Snakemake, from the first sample to the last table."""
    planned(study)
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--configfile", "study.yaml"]
    environment = {**os.environ, "UNLEARNING_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
    with open("log.txt", "w") as log:
        done = subprocess.run([*command, "--cores", "2"], stdout=log, stderr=log, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{study}: the run in {ROOT} failed; see {Path('log.txt').resolve()}")
    return planned(study)


if __name__ == "__main__":
    from check import write_tables

    run = train(Path(sys.argv[1]))
    write_tables(Path("tables"), {**tables(run), "weights": weights(run)})
