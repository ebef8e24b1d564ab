"""Build the evaluation of a job from its settings and its input files."""

from typing import Any

from unlearning_audit.evaluation.cohort import Cohort, Group, by_logits
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.logits import StoredLogits
from unlearning_audit.evaluation.published import holds
from unlearning_audit.store.files import FailedError


def imported(names: list[str], files: list[str], **more: Any) -> Evaluation:
    """Return the evaluation of imported models. A group whose models failed is left out, with a sentence in the
    evaluation's ``unread``. The logits of the audited models are not opened here: whoever reads them reports a failure
    as the method's.

    ``names``: the groups, such as "target" (audited) and "retrain"; ``files``: the paths of data, memberships and
    logits of the first group, then those of the second, and so on; ``more``: further fields of `Evaluation`.
    """
    groups, unread = {}, []
    for name, data, members, logits in zip(names, files[::3], files[1::3], files[2::3], strict=True):
        try:
            if name != "target" and not holds(logits):
                StoredLogits.open(logits)  # raises FailedError for models that failed
            groups[name] = Group(Cohort(data, [members]), [logits])
        except FailedError as error:
            unread.append(f"{error}; nothing is compared with it")
    audited = groups.pop("target")
    return Evaluation(
        audited.cohort.data_file, audited.cohort.splits, originals=[], unlearned_files=audited.files, imported=True,
        others=groups, unread=list(dict.fromkeys(unread)), **more,
    )  # fmt: skip


#: Inputs of a job that are a single file, and those that are lists of files.
SINGLE = ("scores", "selection")
SEVERAL = ("retrained", "control", "relearned", "compared_relearned", "generated", "compared_generated", "sampled",
           "compared_sampled")  # fmt: skip


def evaluation_of(settings: dict[str, Any], **files: Any) -> Evaluation:
    """Return the evaluation that a job works on, of imported models or of the study's own.

    ``settings``: the job's: its seed, number of bootstrap draws, sets of attacks and, for imported models, design and
    names of populations; ``files``: role of an input, as `workflow.nodes.ROLES` names it → its path or paths.
    """
    if "populations" in files:
        scores = files.get("scores", [None])[0]
        design = settings.get("design", "")
        evaluation = imported(settings["populations"], list(files["populations"]), scores_file=scores, design=design)
    else:
        logits = {"original": files["originals"], "unlearned": files["unlearned"]}
        logits |= {name: files.get(name, []) for name in ("retrained", "control")}
        # For each population, its files of logits, and those of its signals or of its last hidden layer. The second
        # list is empty if the study does not compute these.
        signals, hidden = (
            [(paths, files.get(f"{name}_{kind}", [])) for name, paths in logits.items()]
            for kind in ("readings", "features")
        )
        evaluation = Evaluation(
            files["data"], files["splits"], files["originals"], files["unlearned"], signal_files=by_logits(*signals),
            hidden={path: part for paths, parts in hidden for path, part in zip(paths, parts, strict=False)},
            **{f"{name}_file": files[name][0] for name in SINGLE if name in files},
            **{f"{name}_files": files[name] for name in SEVERAL if name in files},
        )  # fmt: skip
    evaluation.seed = settings.get("seed", evaluation.seed)
    evaluation.draws = settings.get("bootstrap", evaluation.draws)
    evaluation.sets = {name: settings.get(f"{name}_set", ()) for name in ("paper", "adaptive")}
    return evaluation
