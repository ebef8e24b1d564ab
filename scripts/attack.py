"""Score every target sample of every target model with every attack in each of its forms."""

import sys
from pathlib import Path

import numpy as np

from job import script
from unlearning.adversary import external_case, scoring
from unlearning.adversary.case import Case
from unlearning.artifacts import tables
from unlearning.artifacts.arrays import NoAnswerError
from unlearning.plugins.guard import PluginError
from unlearning.plugins.registry import load


@script
def attack(
    scores: str,
    settings: dict,
    place: dict,
    data: str = "",
    splits: list[str] = (),
    originals: list[str] = (),
    unlearned: list[str] = (),
    populations: list[str] = (),
) -> dict:
    """Attacks learn from shadow models only: as trained, and as unlearned by the same method.

    Where a protocol has none (``own_rows``), each learns from rows of the model that it is asked about.
    ``populations``: of models that came from elsewhere, the three files of each; then nothing else is given.
    An attack that fails has no scores, and the reason is written down beside those of the others. Scores by the same
    code of the same models, of a run with fewer attacks, are taken over from ``place``.
    """
    case = Case(data, splits, originals, unlearned)
    scored = scoring.alone if settings.get("own_rows") else scoring.scored
    if populations:
        case, scored = external_case.ExternalCase.of(settings["populations"], populations), external_case.scored
    files, columns, failed, taken = place.get("files", {}), [], {}, []
    known = place.get("known", "")
    earlier = tables.read_scores(known) if known and Path(known).exists() else {}
    for name, chosen in settings["attacks"].items():
        if already := tables.rows_of(earlier, name):
            columns += already
            taken.append(name)
            continue
        try:
            module = load("attacks", chosen["name"], files.get(name))
            columns += list(scored(case, name, module, chosen, settings["seed"]))
        except PluginError as error:
            failed[name] = str(error)
            print(error, file=sys.stderr)
        except NoAnswerError as error:  # of the models, so that there is nothing to be asked
            tables.write_scores(scores, tables.no_scores())
            return {"failed": str(error)}
    whole = {name: np.concatenate([c[name] for c in columns]) for name in columns[0]} if columns else tables.no_scores()
    tables.write_scores(scores, whole, failed)
    facts = {"taken": {"from": known, "attacks": taken}} if taken else {}
    missing = getattr(case, "missing", {})
    return {"attacks": len(settings["attacks"]), "missing": missing, "failed_attacks": failed, **facts}
