import threading
from functools import cache
from pathlib import Path

from unlearning_audit.plugins import registry
from unlearning_audit.study.schema import DISPLAYS, OUTPUTS
from unlearning_audit.workflow import jobs
from unlearning_audit.workflow.forecast import rates
from unlearning_audit.workflow.progress import HEAVY

# As many jobs at once as there are GPUs, each on one of its own; with --resources gpu=N, N of them share evenly.
if GPU and "gpu" not in workflow.global_resources:
    workflow.register_resource("gpu", gpus())

# Jobs that gather a study's results take seconds. With many cases they take minutes and gigabytes, too much for a login
# node, so that they run there only if there are few.
FEW_CASES = len(PLAN.cases) <= 200

# A card may be busy or lost for a moment, so that a job is tried again. An error of a plug-in is a result, and its job
# succeeds. Without a card, as on the login node of a cluster, the profile sets the number; one here would override it.
RETRIES = 2 if GPU else None


def node_field(stage, field):
    """Return a function from wildcards to a ``field`` of the plan's node: "awaited", the inputs that jobs of their own
    make, or "settings", which count in its key."""
    return lambda wildcards: getattr(PLAN.nodes[stage][wildcards.node], field)


def place(stage):
    """Return a function from wildcards to facts for a stage's function that do not change results, such as where a user's
    own files lie. It takes the inputs, so that Snakemake does not count it as a setting.
    """
    return lambda wildcards, input: PLAN.nodes[stage][wildcards.node].place


def output_files(stage, files):
    """Return name → path of what a job of a stage writes: ``files``, each named without its ending, and ``spec.json``.
    If the study keeps only logits, Snakemake deletes weights after the last job that reads them.
    """
    paths = {
        Path(file).stem: f"results/{stage}/{{node}}/{file}"
        for file in (*files, "spec.json")
    }
    if "models" in paths and PLAN.study.keep == "logits":
        paths["models"] = temp(paths["models"])
    return paths


def priority(stage):
    """Return the priority of a stage's jobs, which falls from the first stage to the last, so that short jobs are left for
    the end and no core is idle then; 0 where they make weights that are deleted, so that the jobs that read these come
    first."""
    weights = "models.safetensors" in OUTPUTS[stage] and PLAN.study.keep == "logits"
    return 0 if weights else len(OUTPUTS) - list(OUTPUTS).index(stage)


def reserved(stage):
    """Return name → what jobs of a stage request: the memory in MB and the minutes, each a function, and for stages
    with models the number of GPUs.

    Memory and minutes follow the forecast's rates, and the memory of scoring jobs the size of their inputs. Every retry
    requests as much again.
    """

    def memory(wildcards, input, attempt):
        if stage != "metrics":
            return attempt * rates.MEMORY.get(stage, PLAN.study.memory)
        return attempt * rates.scoring(PLAN.nodes[stage][wildcards.node].inputs)

    return {
        "mem_mb": memory,
        "runtime": lambda wildcards, attempt: attempt * rates.MINUTES[stage],
        **({"gpu": GPU} if stage in HEAVY else {}),
    }


CAPTION = "../resources/captions/shown.rst"


def display(category, tables=(), figures=()):
    """Return ending → path of the output files of tables and figures, given by their names; of a second table or
    figure, name and ending → path. Snakemake's report shows those in csv and svg under ``category``.
    """
    paths = parameters.output_paths(tables, figures, f"results/{STUDY}")
    for name, path in paths.items():
        if path.endswith((".csv", ".svg")):
            kind = "table" if path.endswith(".csv") else "figure"
            labels = {kind: Path(path).stem}
            in_report = report(path, caption=CAPTION, category=category, labels=labels)
            paths[name] = in_report
    return paths


@cache
def cached_settings(settings_of, *values):
    """Return the settings that ``settings_of``, a function of `workflow.parameters`, makes from the plan and
    ``values``. The result is kept: Snakemake asks for it as input, as parameters, and again for every update.
    """
    return settings_of(PLAN, *values)


@cache
def cached_inputs(settings_of, *values):
    """Return all outputs of the study's jobs that the settings of `cached_settings` name."""
    return parameters.input_paths(PLAN, cached_settings(settings_of, *values))


def from_wildcards(settings_of, *names, result=cached_settings):
    """Return a function from wildcards to the settings that ``settings_of``, a function of `workflow.parameters`, makes
    from the plan, or to the files that they name (``result=cached_inputs``), a rule's input. ``names``: the wildcards
    that ``settings_of`` also takes.
    """
    return lambda wildcards: result(settings_of, *(wildcards[name] for name in names))


def files_in(folder, **names):
    """Return the files that the rules of ``SHOWN`` write in one folder of the study's results, sorted. ``names``:
    wildcard → its values."""
    makers = [
        getattr(rules, name) for name in SHOWN if name != "tuning" or PLAN.nodes["tune"]
    ]
    patterns = [
        path for maker in makers for path in maker.output if f"/{folder}/" in path
    ]
    return sorted(set(expand(patterns, **names)))


def libraries():
    """Return names of modules, and paths of files, that the warm process imports for the jobs of this run, those of the
    first jobs first."""
    needed = {job.rule.name for job in workflow.dag.needrun_jobs()}
    modules = [
        library.__file__,
        "numpy",
        "snakemake.script",
        "scipy.optimize",
        "pandas",
        "pyarrow.parquet",
    ]
    modules += [
        str(jobs.file_of(r.name))
        for r in workflow.rules
        if r.name in needed and r.script
    ]
    for scenario in PLAN.study.scenarios:
        for plugin in (*scenario.attacks.values(), scenario.model):
            if plugin.name in registry.names(plugin.kind):
                modules += plugin.declared("LIBRARIES")
    return [*dict.fromkeys(modules), "matplotlib.backends.backend_svg"]


def stop_timers():
    """Stop the timers by which Snakemake limits the jobs per time; at its end, it would wait for them."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
