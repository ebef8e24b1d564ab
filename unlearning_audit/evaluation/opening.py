"""Build the evaluation of a job from its settings and its input files."""

from typing import Any

from unlearning_audit.evaluation.cohort import Cohort, Group, by_logits
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.logits import Logits
from unlearning_audit.evaluation.published import is_published
from unlearning_audit.store.files import FailedError


def imported_evaluation(names: list[str], files: list[str], **further: Any) -> Evaluation:
    """Return the evaluation of imported models.

    A group whose models failed is left out, with a sentence in the evaluation's ``unread``. The logits of the audited
    models are not opened here: whoever reads them reports a failure as the method's.

    Parameters
    ----------
    names
        The groups, such as "target" (the audited models) and "retrain".
    files
        Three paths for each group, in the order of ``names``: its data, its memberships and its logits.
    further
        Other fields of `Evaluation`.
    """
    groups, unread = {}, []
    for name, data, members, logits in zip(names, files[::3], files[1::3], files[2::3], strict=True):
        try:
            if name != "target" and not is_published(logits):
                Logits.open(logits)  # raises FailedError for models that failed
            groups[name] = Group(Cohort(data, [members]), [logits])
        except FailedError as error:
            unread.append(f"{error}; nothing is compared with it")
    audited = groups.pop("target")
    return Evaluation(
        audited.cohort.data_file, audited.cohort.membership_files, originals=[], unlearned_files=audited.files,
        imported=True, others=groups, unread=list(dict.fromkeys(unread)), **further,
    )  # fmt: skip


#: Inputs of a job that are a single file, and those that are lists of files.
SINGLE = ("scores", "selection")
SEVERAL = ("retrained", "control", "relearned", "compared_relearned", "generated", "compared_generated", "sampled",
           "compared_sampled")  # fmt: skip


def evaluation_of(settings: dict[str, Any], **files: Any) -> Evaluation:
    """Return the evaluation that a job works on, of imported models or of the study's own.

    Parameters
    ----------
    settings
        The job's: its seed, number of bootstrap draws, sets of attacks and, for imported models, design and names of
        populations.
    files
        Role of an input, as `workflow.nodes.ROLES` names it → its path or paths.
    """
    if "populations" in files:
        names, paths = settings["populations"], list(files["populations"])
        # There is one file of scores or none.
        further = {"scores_file": files.get("scores", [None])[0], "design": settings.get("design", "")}
        evaluation = imported_evaluation(names, paths, **further)
    else:
        logits = {"original": files["originals"], "unlearned": files["unlearned"]}
        logits |= {name: files.get(name, []) for name in ("retrained", "control")}
        # For each population, its files of logits, and those of its signals: none if the study does not compute these.
        signals = [(paths, files.get(f"{name}_readings", [])) for name, paths in logits.items()]
        feature_files: dict[str, str] = {}  # file of logits → file of the last hidden layer, if the study computes this
        for name, paths in logits.items():
            feature_files |= zip(paths, files.get(f"{name}_features", []), strict=False)
        evaluation = Evaluation(
            files["data"], files["splits"], files["originals"], files["unlearned"], signal_files=by_logits(*signals),
            feature_files=feature_files, **{f"{name}_file": files[name][0] for name in SINGLE if name in files},
            **{f"{name}_files": files[name] for name in SEVERAL if name in files},
        )  # fmt: skip
    evaluation.seed = settings.get("seed", evaluation.seed)
    evaluation.draws = settings.get("bootstrap", evaluation.draws)
    evaluation.sets = {name: settings.get(f"{name}_set", ()) for name in ("paper", "adaptive")}
    return evaluation
