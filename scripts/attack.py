"""Score every target sample of every target model with every attack, in all forms of its knowledge."""

import sys

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
    An attack that fails has no scores, and the reason is written down beside those of the others.
    """
    case = Case(data, splits, originals, unlearned)
    scored = scoring.alone if settings.get("own_rows") else scoring.scored
    if populations:
        case, scored = external_case.ExternalCase.of(settings["populations"], populations), external_case.scored
    files, columns, failed = place.get("files", {}), [], {}
    for name, chosen in settings["attacks"].items():
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
    return {"attacks": len(settings["attacks"]), "missing": getattr(case, "missing", {}), "failed_attacks": failed}
