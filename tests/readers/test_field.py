"""The page of evidence says what the kept tables hold; these are what the published logs give."""

import csv
import importlib
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit import ROOT, readers
from unlearning_audit.comparisons import verdicts as judge
from unlearning_audit.evaluation.published import Published
from unlearning_audit.metrics import published as metric

KEPT = ROOT / "resources" / "measured" / "field"
LOGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "field" / "field.tar.xz"
PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
ATTACKS = ("loss", "min_k", "min_k_plus_plus", "zlib", "gradnorm")
INTERVAL = ("value", "ci_low", "ci_high")


def table_rows(name: str) -> list[dict]:
    """The rows of a kept table."""
    with (KEPT / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def aucs() -> dict[tuple[str, str, str], list[float]]:
    """(scenario, method, attack) → its kept AUC and interval."""
    return {
        (row["scenario"], row["method"], attack): [float(row[name]) for name in INTERVAL]
        for attack in ATTACKS for row in table_rows(f"auc_{attack}") if row["value"]
    }  # fmt: skip


def lines(head: str) -> list[list[str]]:
    """The cells of the table of the page that follows a text."""
    rows = next(part for part in PAGE[PAGE.index(head) :].split("\n\n") if part.startswith("|")).splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def printed(text: str) -> list[float]:
    """Numbers as the page prints them, ".36 [.30, .41]"."""
    return [float(number.replace("−", "-")) for number in re.findall(r"−?\d*[.]\d+", text)]


def scenario(label: str) -> str:
    """What the page calls "Llama-2-7b, forget05" or "MUSE News, Llama-2-7b"."""
    name, _, part = label.partition(", ")
    if name.startswith("MUSE"):
        return f"llama_2_7b_hf_{name.split()[1].lower()}"
    ends = "_chat_hf" if name == "Llama-2-7b" else "_instruct"
    return re.sub(r"[^a-z0-9]+", "_", name.lower()) + f"{ends}_{part}"


def test_the_page_counts_what_was_audited(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    field = importlib.import_module("field")
    kept = table_rows("audited")
    assert field.table(kept) in PAGE
    unlearned = [row for row in kept if field.kind(row) == "unlearned"]
    assert len(unlearned) == sum(row["method"].startswith("calib_") for row in kept) == 56
    unlearned[0] |= {"verdict": "equivalent"}
    unlearned[1] |= {"verdict": "no_yardstick", "note": "no distance: no metric decides"}
    counted = field.table(kept)
    assert "| unlearned | 1 | 0 | 0 | 0 | 55 |" in counted
    assert "none of their numbers decides: 1" in counted


def test_the_page_prints_what_retrained_models_read_and_how_far_two_recipes_are_apart():
    values, rows = aucs(), lines("AUC of attacks between the forget set and the holdout")
    assert len(rows) == 10
    for label, *cells in rows:
        for attack, cell in zip(ATTACKS, cells, strict=True):
            assert printed(cell) == pytest.approx(values[scenario(label), "retrain", attack], abs=0.00501), label
    of_method = {row["scenario"]: row for row in table_rows("verdicts") if row["method"] == "retrain"}
    for label, cell, verdict in lines("standard deviation of .28 or more"):
        name = "llama2_7b" if label.startswith("Llama") else "phi"
        row = of_method[f"{name}_{300 if '300' in label else 200}_samples"]
        numbers = [float(row[column]) for column in ("distance", "ci_low", "ci_high")]
        assert printed(cell) == pytest.approx(numbers, abs=0.000501), label
        assert verdict == row["verdict"].replace("_", " ")


@pytest.fixture(scope="module")
def read(tmp_path_factory) -> tuple[readers.Imported, dict[str, dict[str, Published]]]:
    """The published logs, read, and scenario → method → what `audit read` writes of its models."""
    if not LOGS.is_file():
        pytest.skip("the published logs are not here")
    place = tmp_path_factory.mktemp("field")
    with tarfile.open(LOGS) as archive:
        archive.extractall(place / "logs", filter="data")
    imported = readers.imported([place / "logs"])
    readers.write(imported, place / "models", "field")
    populations: dict[str, dict[str, Published]] = {}
    for file in (place / "models").rglob("published.npz"):
        name, method = file.relative_to(place / "models").parts[:2]
        populations.setdefault(name, {})[{"original": "none"}.get(method, method)] = Published.read(file)
    return imported, populations


def test_all_logs_are_read_and_print_what_their_samples_give(read):
    imported, _ = read
    assert sorted(imported.formats.values()) == ["openunlearning"] * 28 + ["tofu"] * 16
    agrees = [one.agrees for agreements in imported.agreements.values() for one in agreements]
    assert False not in agrees
    assert agrees.count(True) == sum(int(row["printed"]) for row in table_rows("recomputed"))


def test_the_kept_aucs_are_those_of_the_logs(read):
    actual = {
        (name, method, row.metric.removeprefix("auc_")): [getattr(row, column) for column in INTERVAL]
        for name, methods in read[1].items() for method, whole in methods.items()
        for row in metric.of(whole, ()) if row.metric.removeprefix("auc_") in ATTACKS
    }  # fmt: skip
    expected = aucs()
    assert set(expected) == set(actual)
    for key, numbers in expected.items():
        np.testing.assert_allclose(actual[key], numbers, atol=1e-9, err_msg=str(key))


@pytest.mark.parametrize("name", ["llama2_7b_300_samples", "phi_200_samples", "llama_3_2_1b_instruct_forget10"])
def test_the_kept_verdicts_are_those_of_the_logs(read, name):
    parts = {method: metric.parts(whole) for method, whole in read[1][name].items()}
    margins = {"auc": 0.05, "accuracy": 0.05, "perplexity": 1.1}
    compared = judge.compare(parts, {}, margins=margins, draws=1000, seed=0)
    verdicts = {row["method"]: row for row in compared.verdicts}
    for row in (row for row in table_rows("verdicts") if row["scenario"] == name):
        assert verdicts[row["method"]]["verdict"] == row["verdict"], row
        distance = float(row["distance"] or "nan")
        assert float(verdicts[row["method"]]["distance"]) == pytest.approx(distance, abs=1e-3, nan_ok=True)
