"""Check a user's own logits or checkpoints and their memberships, and write them in the layout that later stages
read."""

import sys
from typing import Any

from unlearning_audit.evaluation.arrays import Logits
from unlearning_audit.evaluation.external import read
from unlearning_audit.evaluation.published import Published
from unlearning_audit.store.files import FailedError, write_failure


def external(
    data: str, membership: str, logits: str, settings: dict[str, Any], place: dict[str, Any]
) -> dict[str, Any]:
    """Write the data, the memberships and the logits of one population of imported models; return the numbers of
    models, samples and forgotten samples for the job's spec.json.

    If the files cannot be read, their method fails, but not this job: the reason is written in place of each, and
    returned.

    Parameters
    ----------
    data, membership, logits
        The paths to write to.
    settings
        The population, such as target or retrain. With "data", the files are checkpoints, whose models are evaluated.
        Without "data", they are arrays of logits or published results, which are read.
    place
        "files": name, such as "logits" or "forget" → path to read from.
    """
    files, population = place["files"], settings["population"]
    answers: Logits | Published
    try:
        if "data" in settings:
            from unlearning_audit.workflow.external_models import outputs_of  # imports torch, which logits do not need

            options = {name: settings[name] for name in ("data", "model", "seed", "generations")}
            samples, members, answers = outputs_of(files, population, **options)
        else:
            samples, members, answers = read(files, population)
    except ValueError as error:
        print(error, file=sys.stderr)
        part = error.part if isinstance(error, FailedError) else "method"  # what failed, for later jobs
        for path in (data, membership, logits):
            write_failure(path, part, str(error))
        return {"failed": str(error)}
    samples.write(data)
    members.write(membership)
    answers.write(logits)
    return {"models": len(members.seed), "samples": len(samples.y), "forget": int(members.forget[0].sum())}
