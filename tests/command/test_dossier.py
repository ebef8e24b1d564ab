"""The dossier of an audit: what was audited, what was disputed, two pages."""

import hashlib
import json
import re
import shutil
import subprocess
from types import SimpleNamespace

import pytest
from unlearning_audit import command
from unlearning_audit.report import dossier

import reader_cases


def run(*words):
    with pytest.raises(SystemExit) as ended:
        command.main(list(words))
    return ended.value.code


def text_of(page):
    """The words of a page."""
    bare = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(re.sub("<[^>]+>", " ", bare).split())


def test_a_dossier_says_what_was_audited_and_what_is_disputed(workdir, capsys):
    reader_cases.tree(workdir, steps=(10,))
    for seed in (3, 4):
        path = workdir / f"saves/eval/tofu_Tiny-1B_retain90_seed{seed}/TOFU_EVAL.json"
        reader_cases.write_log(path, reader_cases.openunlearning(40 + seed, 0.0))
    full = workdir / "saves/eval/tofu_Tiny-1B_full/evals_forget10/TOFU_EVAL.json"
    log = json.loads(full.read_text())
    log["mia_loss"]["auc"] += 0.01
    full.write_text(json.dumps(log))
    (workdir / "saves/eval/broken_EVAL.json").write_text('{"forget_x": {"value_by_index": {"0": {"prob": [1]}}}}')
    assert run("read", "saves", "--retrain", str(path)) == 0
    assert run("report", "read.yaml", "--dossier") == 0
    assert "Dossier: results/read/dossier.html" in capsys.readouterr().out
    page = (workdir / "results/read/dossier.html").read_text()
    words = text_of(page)
    for head in ("Question", "Verdict", "What this audit could see", "What would change the verdict", "Threat model",
                 "What was audited", "Left out", "Disputes kept", "How to repeat it", "Signature"):  # fmt: skip
        assert f"{head} " in f"{words} "
    for said in (
        hashlib.sha256(full.read_bytes()).hexdigest()[:16], r"npo step10 traces remain 0\.\d+ \[",
        r"this audit would have seen a distance of at least 0\.\d+ by (AUC|memory), with probability 0\.8",
        "loss the probability of each sample, or of its tokens",
        r"need logits, most of them of shadow models as well: .*lira, .*rmia, shadow",
        "need the weights: quantised, relearn, representation", "mia_loss auc is printed as",
        "at 5 % over all methods and metrics of a scenario", "its role, retrain, was decided by the command",
        r"broken_EVAL\.json",
    ):  # fmt: skip
        assert re.search(said, words), said
    chromium = shutil.which("chromium")
    if chromium:  # as many pages as it is printed on
        order = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--print-to-pdf=d.pdf"]
        subprocess.run([*order, "results/read/dossier.html"], check=True, capture_output=True, timeout=60)
        assert len(re.findall(rb"/Type */Page\b", (workdir / "d.pdf").read_bytes())) == 2


def test_one_retrained_model_shows_no_distance(workdir):
    reader_cases.tree(workdir, steps=(10,))
    assert run("read", "saves") == 0
    assert run("report", "read.yaml", "--dossier") == 0
    words = text_of((workdir / "results/read/dossier.html").read_text())
    assert "no distance, however large: too few retrained models to compare with" in words
    assert "this audit would have seen" not in words
    assert re.search(r"by chance if retrained models have a standard deviation of 0\.\d+ or more", words)


def test_without_a_report_it_says_what_makes_one(workdir):
    reader_cases.tree(workdir, steps=(10,))
    assert run("read", "saves", "--only-write") == 0
    assert "there is no report yet" in run("report", "read.yaml", "--dossier")


def test_the_least_distance_is_that_of_the_table_of_resolution():
    least = {"retrain": 0.01, "npo": 0.03, "retrain_control": 0.02}
    rows = [
        {"what": "today", "metric": "auc", "method": method, "least_distance": number, "margin": 0.05}
        for method, number in least.items()
    ]
    judged = SimpleNamespace(
        label="s", compared=["npo"], verdicts={"npo": {"verdict": "inconclusive"}},
        distances=[{"metric": "auc", "deciding": 1}], resolution=rows,
    )  # fmt: skip
    (sentence,) = dossier._seen(SimpleNamespace(places={"s": judged}))
    assert "a distance of at least 0.02 by AUC" in sentence
