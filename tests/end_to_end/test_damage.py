"""Damaged artifacts stop the run with one sentence that names the file, and the wrong field."""

import importlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from unlearning_audit.evaluation import rows
from unlearning_audit.report.page import embed
from unlearning_audit.report.tables import cost, meta
from unlearning_audit.store.files import ArtifactError, node_of, read_json

pytestmark = pytest.mark.slow

#: Artifact → its file, the scripts that read it, and a field that may not be NaN.
ARTIFACTS = {
    "data": ("data/*/data.npz", ("splits", "train", "unlearn", "metrics"), "x"),
    "splits": ("splits/*/membership.npz", ("train", "unlearn", "metrics"), None),
    "trained": ("train/*/models.safetensors", ("unlearn",), "0.weight"),
    "originals": ("train/*/logits.npz", ("metrics",), "logits"),
    "unlearned": ("unlearn/*-finetune-*/logits.npz", ("metrics",), "logits"),
    "metrics": ("metrics/*-finetune-*/metrics.csv", ("collect",), None),
}
#: Script → the node it makes here, and its inputs and outputs.
SCRIPTS = {
    "splits": ("splits/*", ("data",), ("membership",)),
    "train": ("train/*", ("data", "splits"), ("models", "logits")),
    "unlearn": ("unlearn/*-finetune-*", ("data", "splits", "trained"), ("models", "logits")),
    "metrics": ("metrics/*-finetune-*", ("data", "splits", "originals", "unlearned"),
                ("scores", "metrics", "contributions", "records")),
}  # fmt: skip
READ = pytest.mark.parametrize(
    ("artifact", "script"),
    [(artifact, script) for artifact, (_, scripts, _) in ARTIFACTS.items() for script in scripts],
)


@dataclass
class Results:
    """``paths`` of one file of each kind, ``settings`` of the jobs that read them, relative to where tests run."""

    paths: dict[str, Path]
    settings: dict[str, dict]

    def run(self, script: str) -> dict:
        """Call a stage's function on these files, as its job does."""
        function = getattr(importlib.import_module(script), script)
        files = {role: str(path) for role, path in self.paths.items()}
        if script == "collect":
            case = dict.fromkeys(("scenario", "protocol", "method", "plugin", "setting"), "") | {"axes": {}}
            case |= {role: [files[role]] for role in ("originals", "unlearned")}
            outputs = {name: f"out.{name}" for name in ("union", "lists", "csv", "md", "tex", "svg", "png")}
            records = str(self.paths["metrics"].with_name("records.csv"))
            cases = [{**case, "scenario": "main", "metrics": files["metrics"], "records": records}]
            return function(**outputs, settings={"study": "tiny", "cases": cases, "own_metrics": {}})
        _, inputs, outputs = SCRIPTS[script]
        arguments = {role: files[role] if role == "data" else [files[role]] for role in inputs}
        arguments |= {role: f"out/{role}" for role in outputs}
        place = {"file": None, "method_file": None, "where": "scenarios.tiny.protocol"}
        for kind in ("attacks", "metrics"):
            names = self.settings[script].get(kind, ())
            place[kind] = {"files": {}, "terms": {}, "keys": {name: name for name in names}}
        arguments["place"] = place
        return function(**arguments, settings=self.settings[script])

    def refusal(self, script: str, artifact: str) -> str:
        """The one sentence by which ``script`` refuses ``artifact``."""
        with pytest.raises(ArtifactError) as error:
            self.run(script)
        sentence = str(error.value)
        assert sentence.startswith(f"{self.paths[artifact]}: "), sentence
        assert "\n" not in sentence
        return sentence


@pytest.fixture
def results(finished, tmp_path, monkeypatch) -> Results:
    copied = finished.copy(tmp_path / "work")
    monkeypatch.chdir(copied.folder)

    def path_of(pattern):
        (path,) = copied.find(pattern)
        return path.relative_to(copied.folder)

    specs = {script: read_json(path_of(f"{node}/spec.json")) for script, (node, _, _) in SCRIPTS.items()}
    paths = {artifact: path_of(pattern) for artifact, (pattern, _, _) in ARTIFACTS.items()}
    return Results(paths, {script: spec["settings"] for script, spec in specs.items()})


def rewrite(path: Path, change) -> None:
    """The same file with other numbers, the user's own: nothing is known about it but what its reader checks."""
    if path.suffix == ".npz":
        with np.load(path) as archive:
            arrays = {name: change(name, archive[name]) for name in archive.files}
        np.savez(path, **{**arrays, "node": np.array(node_of(path))})
    else:
        tensors = {name: change(name, value) for name, value in load_file(path).items()}
        save_file(tensors, path, metadata={"node": node_of(path)})
    path.with_name("spec.json").write_text("{}")


@READ
def test_a_truncated_file_is_refused_by_whoever_reads_it(results, artifact, script):
    path = results.paths[artifact]
    whole = path.read_bytes()
    for size in (0, 7, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert "this file is not as it was made" in results.refusal(script, artifact)
    path.write_bytes(whole)
    results.run(script)


@pytest.mark.parametrize(
    ("artifact", "script"), [(artifact, script) for artifact, (_, scripts, field) in ARTIFACTS.items() if field
                             for script in scripts if artifact != "unlearned"]
)  # fmt: skip
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_none_is_told_by_its_field(results, artifact, script, value):
    path, field = results.paths[artifact], ARTIFACTS[artifact][2]

    def change(name, numbers):
        numbers = numbers.copy()
        if name == field:
            numbers.flat[5] = value
        return numbers

    rewrite(path, change)
    # Of models it is a result: whatever made them diverged.
    if artifact == "originals":
        results.run(script)
        message = rows.read("out/metrics")[0].sentence
    else:
        message = results.run(script)["failed"] if artifact == "trained" else results.refusal(script, artifact)
    assert message.startswith(f"{path}: ")
    assert re.search(rf"(field|tensor) '{field}' has 1 values that are NaN or infinite", message), message


def test_logits_that_are_none_fail_their_method_and_not_the_run(results):
    def change(name, numbers):
        return np.full_like(numbers, np.nan) if name == "logits" else numbers

    rewrite(results.paths["unlearned"], change)
    facts = results.run("metrics")
    assert (facts["rows"], facts["parts"]) == (2, {})
    diverged, noticed = rows.read("out/metrics")
    assert diverged.sentence.startswith(f"{results.paths['unlearned']}: field 'logits' has")
    assert (diverged.kind, diverged.name) == ("diverged", "")
    assert noticed.note.endswith("its spec.json is empty, so that nothing is known about it")


# ---------------------------------------------------------------- the same through Snakemake


@pytest.mark.parametrize(
    ("artifact", "rule"), [("data/*/data.npz", "splits"), ("train/*/models.safetensors", "unlearn")]
)
def test_the_run_stops_and_says_why(finished, tmp_path, artifact, rule):
    place = finished.copy(tmp_path / "work")
    (path,) = place.find(artifact)
    path.write_bytes(path.read_bytes()[:-9])
    shutil.rmtree(place.folder / "results" / "tiny")
    process = place.run(check=False)
    assert process.returncode != 0
    assert f"{rule}: {path.relative_to(place.folder)}: this file is not as it was made" in process.stdout
    assert not (place.folder / "results" / "tiny").exists()


#: Of what a study shows: the file, and who reads it.
SHOWN = {
    "metrics.csv": rows.read_union,
    "cost.csv": cost.read,
    "tables/meta.csv": meta.read,
    "tables/quality.md": embed.download,
    "figures/quality.svg": lambda path: embed.drawing(path, "Quality"),
    "figures/quality.png": embed.download,
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_study_shows_is_as_it_was_made(finished, tmp_path, name):
    path = finished.copy(tmp_path / "work").folder / "results/tiny" / name
    SHOWN[name](path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=rf"results/tiny/{name}: this file is not as it was made"):
        SHOWN[name](path)
