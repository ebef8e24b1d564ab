"""Snakemake's own report of a finished study: every table and figure, by its kind, with its caption."""

import json
import re

import pytest

pytestmark = pytest.mark.slow


def embedded(page: str, name: str) -> dict:
    """The JSON object that a script of the page assigns to ``name``."""
    return json.JSONDecoder().raw_decode(page, re.search(rf"var {name} = (?={{)", page).end())[0]


def test_snakemake_reports_what_the_study_shows(finished, tmp_path):
    finished.run("--report", str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text()
    files = {path.relative_to(finished.folder).as_posix()
             for pattern in ("tiny/tables/*.csv", "tiny/figures/*.svg") for path in finished.find(pattern)}  # fmt: skip
    results = embedded(page, "results")
    assert {path for path in results if path.endswith((".csv", ".svg"))} == files
    assert all("<p>" in entry["caption"] for entry in results.values())
    assert results["results/tiny/tables/quality.csv"]["labels"] == {"table": "quality"}
    listed = {category: {path for paths in parts.values() for path in paths}
              for category, parts in embedded(page, "categories").items()}  # fmt: skip
    assert set(listed) == {"tables", "figures", "metrics", "cost", "verdicts"}
    assert {"results/tiny/tables/quality.csv"} <= listed["tables"] <= set().union(*listed.values()) == set(results)
