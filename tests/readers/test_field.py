"""The page of evidence says what the kept tables hold; these are what the published logs give."""

import csv
import importlib
import tarfile
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit import ROOT, readers
from unlearning_audit.comparisons import verdicts as judge
from unlearning_audit.evaluation.published import Published
from unlearning_audit.metrics import published as metric

from reader_cases import evaluation, rows_of

LOGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "field" / "field.tar.xz"
PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
ATTACKS = ("loss", "min_k", "min_k_plus_plus", "zlib", "gradnorm")
INTERVAL = ("value", "ci_low", "ci_high")


def table_rows(name: str) -> list[dict]:
    """The rows of a kept table."""
    with (ROOT / f"resources/measured/field/{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


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


@pytest.mark.slow  # all published logs are read
def test_all_logs_are_read_and_give_the_numbers_they_print_and_the_kept_aucs(read):
    imported, _ = read
    assert sorted(imported.formats.values()) == ["openunlearning"] * 28 + ["tofu"] * 16
    agrees = [one.agrees for agreements in imported.agreements.values() for one in agreements]
    assert False not in agrees
    assert agrees.count(True) == sum(int(row["printed"]) for row in table_rows("recomputed"))

    actual = {
        (name, method, row.metric.removeprefix("auc_")): [getattr(row, column) for column in INTERVAL]
        for name, methods in read[1].items() for method, whole in methods.items()
        for row in rows_of(whole) if row.metric.removeprefix("auc_") in ATTACKS
    }  # fmt: skip
    expected = {
        (row["scenario"], row["method"], attack): [float(row[name]) for name in INTERVAL]
        for attack in ATTACKS for row in table_rows(f"auc_{attack}") if row["value"]
    }  # fmt: skip
    assert set(expected) == set(actual)
    for key, numbers in expected.items():
        np.testing.assert_allclose(actual[key], numbers, atol=1e-9, err_msg=str(key))


@pytest.mark.parametrize("name", ["llama2_7b_300_samples", "phi_200_samples", "llama_3_2_1b_instruct_forget10"])
@pytest.mark.slow  # all published logs are read
def test_the_kept_verdicts_are_those_of_the_logs(read, name):
    parts = {method: metric.effects(evaluation(whole)) for method, whole in read[1][name].items()}
    margins = {"auc": 0.05, "accuracy": 0.05, "perplexity": 1.1}
    compared = judge.compare(parts, {}, margins=margins, draws=1000, seed=0)
    verdicts = {row["method"]: row for row in compared.verdicts}
    for row in (row for row in table_rows("verdicts") if row["scenario"] == name):
        assert verdicts[row["method"]]["verdict"] == row["verdict"], row
        distance = float(row["distance"] or "nan")
        assert float(verdicts[row["method"]]["distance"]) == pytest.approx(distance, abs=1e-3, nan_ok=True)
