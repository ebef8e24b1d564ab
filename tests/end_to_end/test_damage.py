"""Damaged artifacts stop the run with one sentence that names the file, and the wrong field."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from unlearning_audit.evaluation import rows
from unlearning_audit.report.page import embed
from unlearning_audit.report.tables import cost, meta
from unlearning_audit.store.files import ArtifactError, node_of, read_json
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

import stage_runs

pytestmark = pytest.mark.slow

#: Artifact → the stages that read it, and a field that may not be NaN.
READ = {
    "data/*/data.npz": (("splits", "train", "unlearn", "metrics"), "x"),
    "splits/*/membership.npz": (("train", "unlearn", "metrics"), None),
    "train/*/models.safetensors": (("unlearn",), "0.weight"),
    "train/*/logits.npz": (("metrics",), "logits"),
    "unlearn/*-finetune-*/logits.npz": (("metrics",), None),
}


@pytest.fixture
def place(finished, tmp_path, monkeypatch):
    """A copy of the finished run, in which the test works."""
    copied = finished.copy(tmp_path / "work")
    monkeypatch.chdir(copied.folder)
    return copied


def made_again(place, stage):
    """Make the node of a stage again, of the method finetune; the node."""
    whole = plan.make(reading.read(*reading.load([place.folder / "study.yaml"])))
    nodes = whole.nodes[stage].values()
    (node,) = [node for node in nodes if "-finetune-" in node.name or stage in ("splits", "train")]
    stage_runs.one(node)
    return node


def only(place, pattern):
    (path,) = place.find(pattern)
    return path.relative_to(place.folder)


def refusal(path, make, *arguments):
    """The one sentence by which a file is refused."""
    with pytest.raises(ArtifactError) as error:
        make(*arguments)
    sentence = str(error.value)
    assert sentence.startswith(f"{path}: "), sentence
    assert "\n" not in sentence
    return sentence


def rewrite(path: Path, field: str, place) -> None:
    """The same file with a number that is none and without a spec, so that only its reader can check it."""

    def change(name, numbers):
        numbers = numbers.copy()
        if name == field:
            numbers.flat[place] = np.nan
        return numbers

    if path.suffix == ".npz":
        with np.load(path) as archive:
            arrays = {name: change(name, archive[name]) for name in archive.files}
        np.savez(path, **{**arrays, "node": np.array(node_of(path))})
    else:
        tensors = {name: change(name, value) for name, value in load_file(path).items()}
        save_file(tensors, path, metadata={"node": node_of(path)})
    path.with_name("spec.json").unlink()


@pytest.mark.parametrize(
    ("artifact", "stage"), [(artifact, stage) for artifact, (stages, _) in READ.items() for stage in stages]
)
def test_a_truncated_file_is_refused_by_whoever_reads_it(place, artifact, stage):
    path = only(place, artifact)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert "this file is not as it was made" in refusal(path, made_again, place, stage)
    path.write_bytes(whole)
    made_again(place, stage)


@pytest.mark.parametrize(
    ("artifact", "stage"),
    [(artifact, stage) for artifact, (stages, field) in READ.items() if field for stage in stages],
)
def test_a_number_that_is_none_is_told_by_its_field(place, artifact, stage):
    path, field = only(place, artifact), READ[artifact][1]
    rewrite(path, field, 5)
    # Of models it is a result: whatever made them diverged.
    if field == "logits":
        message = rows.read(made_again(place, stage).outputs["metrics"])[0].sentence
    elif field == "0.weight":
        message = read_json(made_again(place, stage).outputs["spec"])["failed"]
    else:
        message = refusal(path, made_again, place, stage)
    assert message.startswith(f"{path}: ")
    assert re.search(rf"(field|tensor) '{field}' has 1 values that are NaN or infinite", message), message


def test_logits_that_are_none_fail_their_method_and_not_the_run(place):
    path = only(place, "unlearn/*-finetune-*/logits.npz")
    rewrite(path, "logits", slice(None))
    node = made_again(place, "metrics")
    facts = read_json(node.outputs["spec"])
    assert (facts["rows"], facts["parts"]) == (1, {})
    (diverged,) = rows.read(node.outputs["metrics"])
    assert diverged.sentence.startswith(f"{path}: field 'logits' has")
    assert (diverged.kind, diverged.name) == ("diverged", "")


@pytest.mark.parametrize(
    ("artifact", "rule"), [("data/*/data.npz", "splits"), ("train/*/models.safetensors", "unlearn")]
)
def test_the_run_stops_and_says_why(place, artifact, rule):
    path = only(place, artifact)
    path.write_bytes(path.read_bytes()[:-9])
    shutil.rmtree("results/tiny")
    process = place.run(check=False)
    assert process.returncode != 0
    assert f"{rule}: {path}: this file is not as it was made" in process.stdout
    assert not Path("results/tiny").exists()


#: Of what a study shows: the file, and who reads it.
SHOWN = {
    "metrics/*-finetune-*/metrics.csv": rows.read,
    "tiny/metrics.csv": rows.read_study,
    "tiny/cost.csv": cost.read,
    "tiny/tables/meta.csv": meta.read,
    "tiny/tables/quality.md": embed.download,
    "tiny/figures/quality.svg": lambda path: embed.drawing(path, "Quality"),
    "tiny/figures/quality.png": embed.download,
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_study_shows_is_as_it_was_made(place, name):
    path = only(place, name)
    SHOWN[name](path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert "this file is not as it was made" in refusal(path, SHOWN[name], path)
