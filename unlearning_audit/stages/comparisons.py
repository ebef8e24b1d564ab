"""Compare all methods of one scenario and reach verdicts."""

from typing import Any

from unlearning_audit.comparisons import planning, sensitivity
from unlearning_audit.comparisons import verdicts as judge
from unlearning_audit.comparisons.distances import NONE
from unlearning_audit.evaluation import effects as effect_files
from unlearning_audit.evaluation import rows
from unlearning_audit.evaluation import verdicts as columns
from unlearning_audit.stats import decide
from unlearning_audit.store import tables


def comparisons(metrics: list[str], effects: list[str], settings: dict[str, Any], **shown: str) -> dict[str, Any]:
    """Write the verdicts, distances, ranks and resolution of one scenario; return the verdict of each method.

    Parameters
    ----------
    metrics
        The file of numbers of each method in ``settings["methods"]``, in this order.
    effects
        The file of effects of each of these methods: what each model and sample adds to the numbers that decide
        verdicts.
    settings
        "methods"; "margins", "draws" and "seed" for `verdicts.compare`; and, where the study has them, "alpha",
        "spreads" and "shams" for it.
    shown
        The files to write, by the names of these tables.
    """
    effects_of = dict(zip(settings["methods"], map(effect_files.read, effects), strict=True))
    numbers = dict(zip(settings["methods"], map(rows.read, metrics), strict=True))
    # A row of a whole failure says that the method has no numbers at all.
    failures = {
        method: row for method, lines in numbers.items() for row in lines if isinstance(row, rows.Failure) and row.whole
    }
    failed = {method: row.sentence or "no reason given" for method, row in failures.items()}
    damaged = [method for method, row in failures.items() if row.kind == "diverged"]
    comparison = judge.compare(
        effects_of, failed, margins=settings["margins"], draws=settings["draws"], seed=settings["seed"],
        accuracies=sensitivity.accuracies(numbers.get(NONE, [])), alpha=settings.get("alpha", decide.ALPHA),
        damaged=damaged, spreads=settings.get("spreads"), shams=settings.get("shams"),
    )  # fmt: skip
    comparison.resolution.extend(planning.seed_rows(numbers))
    for name in ("verdicts", "distances", "ranks", "resolution"):
        tables.write_rows(shown[name], getattr(comparison, name), getattr(columns, name.upper()))
    return {"verdicts": {row["method"]: row["verdict"] for row in comparison.verdicts}}
