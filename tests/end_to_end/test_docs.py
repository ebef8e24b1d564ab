"""Every block of code in docs/ does what it says, in the order of the page, in a fresh copy of the workflow."""

import csv
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scipy.stats import binom

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r'^```(\w*)(?: title="([^"\n]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """(language, file name or "", text) of every fenced block."""
    text = page.read_text(encoding="utf-8")
    fences = BLOCK.findall(text)
    assert text.count("```") == 2 * len(fences), "a fence that is not understood"
    return fences


def follow(page: Path, folder: Path) -> None:
    """Do what a reader does: save the files, type the commands. ``uv run`` takes the environment of the tests.

    A command that is followed by a block with the title "answer" has to fail with that line; … stands for anything.
    """
    tools = folder / ".tools"
    tools.mkdir(exist_ok=True)
    snakemake = f'exec "{sys.executable}" -m snakemake "$@"'
    for name, line in {"uv": 'shift\nexec "$@"', "python": f'exec "{sys.executable}" "$@"',
                       "snakemake": snakemake}.items():  # fmt: skip
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
                   "UNLEARNING_DEVICE": "cpu", "XDG_CACHE_HOME": str(folder / ".cache")}  # fmt: skip
    fences = blocks(page)
    for (language, name, text), (_, title, answer) in zip(fences, [*fences[1:], ("", "", "")], strict=True):
        assert language in ("python", "yaml", "sh", "text"), f"who would do something with {language}?"
        if language in ("python", "yaml"):
            assert name, f"a block of {language} without a title is never run:\n{text}"
            if language == "python" and (folder / name).exists():  # a command of the page has written it
                assert (folder / name).read_text() == text
            else:
                (folder / name).write_text(text)
        if language == "sh":
            process = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text], cwd=folder, env=environment, text=True, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            assert (process.returncode == 0) != (title == "answer"), f"{text}\n{process.stdout}"
            if title == "answer":
                assert re.search(".*".join(map(re.escape, answer.strip().split("…"))), process.stdout), process.stdout


@pytest.fixture
def folder(tree, tmp_path):
    """A copy of the workflow that a page may write into."""
    return Path(shutil.copytree(tree, tmp_path / "clone"))


def rows(folder: Path, study: str) -> list[dict]:
    """The study's numbers."""
    assert (folder / f"results/{study}/report.html").stat().st_size > 10_000
    return table(folder / f"results/{study}/metrics.csv")


def table(path: Path) -> list[dict]:
    """The records of a table."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def number(metrics: list[dict], method: str, metric: str, attack: str = "") -> float:
    key, names = (method, metric, attack, "", "", ""), ("method", "metric", "attack", "role", "pair", "model")
    (row,) = [r for r in metrics if tuple(r[name] for name in names) == key]
    return float(row["value"])


def test_every_page_with_commands_is_followed_below():
    pages = {page.stem for page in DOCS.glob("*.md") if any(language == "sh" for language, _, _ in blocks(page))}
    followed = set(re.findall(r'follow\(DOCS / "(\w+)\.md"', Path(__file__).read_text(encoding="utf-8")))
    assert pages == followed


@pytest.mark.slow
def test_a_table_of_losses_becomes_a_report(folder):
    follow(DOCS / "read_results.md", folder)
    metrics = rows(folder, "losses")
    assert {row["method"] for row in metrics} == {"none", "npo", "retrain"}
    none, npo, retrain = (number(metrics, name, "auc_loss") for name in ("none", "npo", "retrain"))
    assert retrain < 0.45 < npo < 0.55 < none
    verdicts = {row["method"]: row["verdict"] for row in table(folder / "results/losses/tables/verdicts.csv")}
    assert verdicts["npo"] == verdicts["none"] == "distinguishable"


@pytest.mark.slow
def test_a_training_loop_becomes_a_report(folder):
    follow(DOCS / "models.md", folder)
    metrics = rows(folder, "tutorial")
    assert list(dict.fromkeys(row["method"] for row in metrics)) == ["none", "finetune_a_little", "retrain"]
    none, tuned, retrain = (number(metrics, name, "auc", "phi") for name in ("none", "finetune_a_little", "retrain"))
    assert 0.6 < none >= tuned > retrain, "a few epochs on the rest forget little of what was memorised"
    texts = {name: text for _, name, text in blocks(DOCS / "models.md")}
    assert len(texts["my_study.yaml"].splitlines()) == 6


#: What runs every cell of a notebook in order, as a kernel does, and shows what the last expression of each is.
CELLS = """
import ast, json, sys

space = {}
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        *body, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module([*body, *([] if isinstance(last, ast.Expr) else [last])], []), "cell", "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
            shown = next((name for name in ("_repr_svg_", "_repr_html_") if hasattr(value, name)), "__repr__")
            print("CELL", getattr(value, shown)()[:20000])
"""


@pytest.mark.slow
def test_every_cell_of_the_notebook_shows_what_the_page_says(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "UNLEARNING_DEVICE": "cpu"}
    process = subprocess.run(
        [sys.executable, "-c", CELLS, str(DOCS / "notebook.ipynb")], cwd=tmp_path, env=environment, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    shown = process.stdout.split("CELL ")[1:]
    said = ("a_little_more retrain traces", "a_little_more retrain", "ci_low", "called_member", "<svg", "my_page.html")
    for cell, words in zip(shown, said, strict=True):
        assert all(word in cell for word in words.split())
    assert (tmp_path / "my_page.html").stat().st_size > 10_000


@pytest.mark.slow
def test_one_model_is_audited_by_its_coins_alone(folder):
    follow(DOCS / "one_model.md", folder)
    metrics = rows(folder, "my_audit")
    assert list(dict.fromkeys(row["method"] for row in metrics)) == ["none", "finetune"]
    for method in ("none", "finetune"):
        assert number(metrics, method, "one_run_p", "phi") < 1e-6
    assert 0.55 < number(metrics, "finetune", "right_guesses", "phi") <= number(metrics, "none", "right_guesses", "phi")
    assert 0 < number(metrics, "none", "epsilon_request", "phi") <= 100 * math.log(2)
    (path,) = (folder / "results/comparisons").glob("*/verdicts.csv")
    (verdict,) = [line for line in table(path) if line["method"] == "finetune"]
    assert f"p = {number(metrics, 'finetune', 'one_run_p', 'extended'):.2g}" in verdict["note"]


def test_as_many_pairs_are_needed_as_the_page_says():
    text = (DOCS / "one_model.md").read_text(encoding="utf-8")
    shares, pairs = (re.search(rf"^\| {word}.*", text, re.MULTILINE)[0].split("|")[2:-1] for word in ("share", "pairs"))
    for share, count in zip(map(float, shares), map(int, pairs), strict=True):

        def power(n, share=share):
            least = binom.isf(0.05, n, 0.5) + 1  # so many right guesses are significant
            return binom.sf(least - 1, n, share)

        assert power(count) >= 0.8 > max(power(n) for n in range(1, count))


@pytest.mark.slow
def test_a_study_is_foretold_and_planned_for_a_cluster(folder):
    shutil.copytree(DOCS.parent / "studies", folder / "studies")
    follow(DOCS / "cluster.md", folder)
    assert not list(folder.glob("results/*/*/spec.json")), "nothing was made"


def test_cluster_settings_are_named_as_they_are_read():
    page = (DOCS / "cluster.md").read_text(encoding="utf-8")
    read = "".join(path.read_text(encoding="utf-8") for path in (DOCS.parent / "unlearning_audit").rglob("*.py"))
    variables = set(re.findall(r"UNLEARNING_[A-Z_]+", page))
    assert variables >= {"UNLEARNING_DEVICE", "UNLEARNING_IN_FLIGHT", "UNLEARNING_DETERMINISTIC"}
    assert all(f'"{name}"' in read for name in variables)


@pytest.mark.slow
def test_a_method_of_both_kinds_is_tried_and_audited(folder):
    follow(DOCS / "method.md", folder)
    metrics = rows(folder, "my_methods")
    for method in ("none", "retrain", "shrink", "ascent"):
        assert 0 <= number(metrics, method, "q", "extended") <= 1
    assert "unlearn: {file: unlearn.py}" in (folder / "mine.yaml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_files_of_every_kind_are_used_in_one_study(folder):
    follow(DOCS / "extend.md", folder)
    metrics = rows(folder, "mine")
    attacks = {row["attack"] for row in metrics}
    assert attacks > {f"{name}/{form}" for name in ("my_attack", "steady") for form in ("trained", "unlearned")}
    assert len(list(folder.glob("results/data/my_data-*/data.npz"))) == 1
    assert len(list(folder.glob("results/train/*-my_model-*/models.safetensors"))) == 2
    swap = [row for row in metrics if row["scenario"] == "swap"]
    for metric in ("my_metric", "phi_gap"):
        assert number(swap, "none", metric) > number(swap, "retrain", metric)
    assert any(",phi_gap," in path.read_text() for path in folder.glob("results/comparisons/*/distances.csv"))
    assert (folder / "results/mine/figures/sides.svg").is_file()


@pytest.mark.slow
def test_a_language_model_is_audited_from_its_own_text_and_weights(folder):
    follow(DOCS / "text.md", folder)
    metrics = rows(folder, "my_text")
    assert number(metrics, "none", "auc", "confidence/unlearned") > 0.8
    (low,) = [float(r["ci_low"]) for r in metrics if (r["method"], r["metric"]) == ("none", "privleak")]
    assert low < -50
    answers = rows(folder, "my_questions")
    forgotten = [r for r in answers if (r["metric"], r["role"], r["pair"]) == ("nll", "forget", "")]
    nll = {r["method"]: float(r["value"]) for r in forgotten}
    assert min(nll, key=nll.get) == "none", "all methods forget"
    assert nll["idk_dpo"] > 1.2 * nll["none"]
