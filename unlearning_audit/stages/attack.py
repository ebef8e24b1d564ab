"""Score every target sample of every target model with every attack in each of its forms."""

from pathlib import Path

from unlearning_audit.adversary.external_case import case_of
from unlearning_audit.adversary.scoring import score
from unlearning_audit.artifacts import tables
from unlearning_audit.artifacts.files import ArtifactError, NoAnswerError
from unlearning_audit.plugins.isolation import remark


def attack(scores: str, settings: dict, place: dict, **files: str | list[str]) -> dict:
    """Attacks learn from shadow models only: as trained, and as unlearned by the same method.

    Where a protocol has none (``own_rows``), each learns from rows of the model that it is asked about.
    ``files``: the inputs, as `workflow.nodes.ROLES` names them; of models that came from elsewhere ``populations``, the
    three files of each, and nothing else.
    An attack that fails has no scores, and the reason is written down beside those of the others. Scores by the same
    code of the same models, of a run with fewer attacks, are taken over from ``place``.
    """
    case, known = case_of(settings, **files), place.get("known", "")
    if case.published is not None:  # their files hold scores already
        tables.write_scores(scores, tables.no_scores())
        return {"attacks": 0}
    try:
        made = score(
            case, settings["attacks"], seed=settings["seed"], own_rows=settings.get("own_rows", False),
            files=place.get("files"), terms=place.get("terms"), known=earlier_scores(known),
        )  # fmt: skip
    except NoAnswerError as error:
        tables.write_scores(scores, tables.no_scores())
        return {"failed": str(error)}
    tables.write_scores(scores, made.columns, made.failed)
    facts = {"taken": {"from": known, "attacks": made.reused}} if made.reused else {}
    return {"attacks": len(settings["attacks"]), "missing": case.missing, "failed_attacks": made.failed, **facts}


def earlier_scores(path: str) -> dict:
    """The scores of an earlier run, which only save work: none where there is no such file, or a damaged one."""
    try:
        return tables.read_scores(path) if path and Path(path).exists() else {}
    except ArtifactError as error:
        remark(f"{error}; all attacks were asked anew")
        return {}
