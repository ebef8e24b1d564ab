"""Audit published result files, and write the table of docs/evidence.md that summarises the verdicts.

python tools/field.py FOLDER…   audits all logs at or below the folders, which takes minutes, and keeps the verdicts
python tools/field.py           writes the table anew from resources/measured/field/audited.csv
"""

import csv
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from unlearning_audit.report import decisions, words

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "resources" / "measured" / "field" / "audited.csv"
PAGE = ROOT / "docs" / "evidence.md"
COLUMNS = ("scenario", "method", "verdict", "distance", "ci_low", "ci_high", "note")
#: The comments around the table on the page.
BLOCK = re.compile(r"(<!-- audited -->\n).*?(<!-- /audited -->)", re.DOTALL)
KINDS = ("before unlearning", "retrained, beside another", "unlearned")


def audit(places: list[str]) -> list[dict[str, str]]:
    """Audit all logs at or below some folders; return the rows of the table of verdicts."""
    places = [os.path.abspath(place) for place in places]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "unlearning_audit.command", "read", *places, "--study", "field.yaml"]
        subprocess.run(command, cwd=folder, check=True)
        return rows(Path(folder, "results", "field", "tables", "verdicts.csv"))


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def kind(row: dict[str, str]) -> str:
    """Return the kind of model that a row is about, one of `KINDS`; "" for retrained models without others to compare
    with."""
    if row["method"].startswith("none"):
        return KINDS[0]
    if row["method"].startswith("retrain"):
        return KINDS[1] if row["distance"] else ""
    return KINDS[2]


def table(lines: list[dict[str, str]]) -> str:
    """Return a Markdown table that counts verdicts by kind of model and state, and a sentence on why some are
    undecided."""
    states = Counter((kind(row), words.state(row["verdict"])) for row in lines)
    parts = [f"| | {' | '.join(state.word for state in words.STATES)} |", "|---" * (len(words.STATES) + 1) + "|"]
    parts += [f"| {name} | {' | '.join(str(states[name, state]) for state in words.STATES)} |" for name in KINDS]
    reasons = Counter(
        decisions.reason(row) for row in lines if kind(row) and words.state(row["verdict"]) == words.UNKNOWN
    )
    told = "; ".join(f"{reason}: {count}" for reason, count in reasons.most_common())
    return "\n".join([*parts, "", f"Cannot tell, because: {told}." if told else "", ""])


def main() -> None:
    """Audit the folders that are given, if any, and write the table of docs/evidence.md."""
    if sys.argv[1:]:
        lines = audit(sys.argv[1:])
        with KEPT.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows({**row, "note": row["note"].split("; ")[0]} for row in lines)
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda match: match[1] + table(rows(KEPT)) + match[2], text), encoding="utf-8")
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
