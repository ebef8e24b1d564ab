"""unlearning-audit: draw who saw what → train → unlearn → dump logits → attack → tables, figures, report."""

import os
import sys

from snakemake.utils import min_version

min_version("9.0")
# The folder of this file, also where another workflow uses it as a module.
HERE = workflow.current_basedir.get_path_or_uri(secret_free=True)
sys.path.insert(0, f"{HERE}/scripts")

import library
from unlearning_audit.training.device import gpus
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan as planning, warm

# The number of GPUs that a job asks for, 1 or 0. Without a GPU here, jobs share the cores instead of waiting for one; a
# cluster's profile asks for its own.
try:
    GPU = min(gpus(), 1)
except ValueError as error:
    raise WorkflowError(str(error)) from None
# Whether jobs are forks of a warm process. Jobs on a cluster or on a card start as ever.
WARM = workflow.local_exec and not GPU and warm.possible()

# In a module, the study is its `config:`. Else the default study is read only if no other is named, so that nothing of it
# leaks into another.
IS_MODULE = os.path.realpath(HERE) != os.path.realpath(workflow.basedir)
CONFIGFILES = [] if IS_MODULE else [*map(str, workflow.config_settings.configfiles)]
try:
    if IS_MODULE:
        study = reading.read(config, "config")
    else:
        fields, origin = reading.load(CONFIGFILES or [f"{HERE}/config.yaml"])
        study = reading.read(fields, origin, workflow.config_settings.config)
    PLAN = planning.make(study)
except ValueError as error:
    raise WorkflowError(str(error)) from None

# Snakemake itself would end in a traceback where it cannot keep its records.
if not os.access(".snakemake" if os.path.isdir(".snakemake") else ".", os.W_OK):
    raise WorkflowError(
        f"{os.getcwd()}: this folder is read-only, and results/ and .snakemake/ belong here; choose another with "
        "--directory, or make it writable"
    )

# Snakemake takes this file into its record of the workflow; the study above was read from it already.
if not CONFIGFILES and not IS_MODULE:

    configfile: f"{HERE}/config.yaml"


STUDY = PLAN.study.name


# A GPU is one of this machine's when jobs run here, and the cluster's business when they do not.
resource_scopes:
    gpu="local",


wildcard_constraints:
    node=r"[^/]+-[0-9a-f]{10}",


include: "rules/common.smk"
include: "rules/stages.smk"
include: "rules/tables.smk"
include: "rules/report.smk"


# A plan names its files itself.
if not rules.data.output.data.startswith("results/"):
    raise WorkflowError(
        "prefix: results/ cannot be moved into another folder; leave prefix out of the module"
    )


rule all:
    """Make the study's page, tables and figures, and fail if a method, model, attack or metric failed."""
    default_target: True
    input:
        rules.report.output.html,
        rules.failures.output.text,
        rules.tuning.output if PLAN.nodes["tune"] else [],


onstart:
    from unlearning_audit.workflow import announcement

    if WARM:
        server = os.environ.get(warm.SWITCH) or warm.start(libraries())
        shell.prefix(warm.prefix(server))
    # Whether the shipped rates hold. By this field, the logger recognises the workflow's own messages.
    small = workflow.local_exec and announcement.small(PLAN) and not GPU
    counts = workflow.dag.stats()[1]
    logger.info(
        announcement.line(PLAN, counts, workflow.resource_settings.cores, small),
        extra={"small": small},
    )


onerror:
    stop_timers()


onsuccess:
    stop_timers()
    from unlearning_audit.report import ending

    if answer := ending.told(STUDY, "results"):
        logger.info(f"\n{answer}\n", extra={"small": True})
