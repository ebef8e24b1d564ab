import threading
from functools import cache, partial
from pathlib import Path

from unlearning_audit.study.schema import DISPLAYS
from unlearning_audit.workflow.forecast import rates

# As many jobs at once as there are GPUs, each on one of its own; with --resources gpu=N, N of them share evenly.
if GPU and "gpu" not in workflow.global_resources:
    workflow.register_resource("gpu", gpus())

# What gathers a study takes seconds; where it has many methods, minutes and gigabytes, which no login node gives.
SMALL = len(PLAN.cases) <= 200

# A card may be busy or lost for a moment; what a plug-in does wrong is a result and no failure of its job. Where there is
# no card, such as on the login node of a cluster, the profile says how often: any number here would be put before it.
RETRIES = 2 if GPU else None


def inputs(stage):
    """Input function of a stage: the inputs of this node that jobs of their own make."""
    return lambda wildcards: PLAN.node(stage, wildcards.node).awaited


def settings(stage):
    """The settings that a stage's script gets; hashed into the node's name."""
    return lambda wildcards: PLAN.node(stage, wildcards.node).settings


def place(stage):
    """Where a user's own files lie. Takes the inputs, so that Snakemake does not count it as a setting."""
    return lambda wildcards, input: PLAN.node(stage, wildcards.node).place


def reserved(stage):
    """MB of main memory and minutes of a stage's jobs by the forecast's rates and, where they score, by what they read;
    as much again with every retry."""
    of_stage = partial(rates.reserved, stage, PLAN.study.memory)

    def scoring(wildcards, input, attempt):
        from unlearning_audit.workflow.forecast import reading

        inputs = PLAN.node(stage, wildcards.node).inputs
        return of_stage(attempt, reading.of_files(inputs))[0]

    def memory(wildcards, attempt):
        return of_stage(attempt)[0]

    return {
        "mem_mb": scoring if stage == "metrics" else memory,
        "runtime": lambda wildcards, attempt: of_stage(attempt)[1],
    }


def weights(path):
    """A file of weights, which Snakemake deletes after the last job that reads it if the study keeps only logits."""
    return temp(path) if PLAN.study.keep == "logits" else path


CAPTION = "../resources/captions/shown.rst"


def display(category, tables=(), figures=()):
    """The output files of tables and figures by their endings; Snakemake's report shows csv and svg."""
    paths = parameters.shown(tables, figures, "results/{study}")
    for name, path in paths.items():
        if path.endswith((".csv", ".svg")):
            kind = "table" if path.endswith(".csv") else "figure"
            labels = {kind: Path(path).stem}
            in_report = report(path, caption=CAPTION, category=category, labels=labels)
            paths[name] = in_report
    return paths


def protocols(kind):
    """The category of the study's own tables or figures: the protocols of their scenarios."""
    displays = getattr(PLAN.study, f"{kind}s")
    return lambda wildcards: parameters.protocols(PLAN, displays, wildcards[kind])


# Models before numbers, one stage after another, so that short jobs are left for the end and no core waits there.
PRIORITY = {
    "data": 8,
    "splits": 7,
    "pretrain": 6,
    "train": 6,
    "selection": 5,
    "tune": 5,
    "unlearn": 4,
    "signals": 3,
    "comparisons": 2,
    "cost": 2,
    "verdicts": 1,
    "meta": 1,
    "figure": 1,
}
# Where weights are deleted after their last reader, they are read before others are made.
if PLAN.study.keep == "logits":
    PRIORITY |= {"train": 0, "unlearn": 0}


# The systems of evaluation in this study, each a study of its own, made of the same nodes.
SYSTEMS = {
    system: f"{STUDY}-{system}" for system in map(reading.system, PLAN.study.scenarios)
}


@cache
def plan_of(study):
    """The plan of this study, or of one of its systems."""
    system = next((system for system in SYSTEMS if SYSTEMS[system] == study), None)
    return planning.make(reading.select(PLAN.study, [system])) if system else PLAN


@cache
def settings_by(order, study, *values):
    """What ``order`` makes of a plan; Snakemake asks for it as input, as parameters, and again for every update."""
    return order(plan_of(study), *values)


@cache
def files_by(order, study, *values):
    """Every file that these settings name."""
    return parameters.files(plan_of(study), settings_by(order, study, *values))


def asks(order, *names, of=settings_by):
    """A function of `workflow.parameters`, applied to the plan of the wildcards' study."""
    return lambda wildcards: of(
        order, wildcards.study, *(wildcards[name] for name in names)
    )


def reads(order, *names):
    """The input function that goes with `asks`."""
    return asks(order, *names, of=files_by)


def files_in(folder, *makers, study, **wildcards):
    """The outputs of rules that lie in a folder of the study's results."""
    patterns = [
        path for rule in makers for path in rule.output if f"/{folder}/" in path
    ]
    return expand(patterns, study=study, **wildcards)


def tables_of(study):
    plan = plan_of(study)
    makers = [rules.table, rules.cost, rules.meta, rules.verdicts, rules.collect]
    makers += [rules.tuning] * bool(plan.nodes["tune"])
    names = ["headline", *plan.study.tables]
    return sorted(set(files_in("tables", *makers, study=study, table=names)))


def figures_of(study):
    plan = plan_of(study)
    makers = [rules.verdicts, rules.collect, rules.meta, rules.figure]
    makers += [rules.tuning] * bool(plan.nodes["tune"])
    return files_in("figures", *makers, study=study, figure=plan.study.figures)


def libraries():
    """The modules that the warm process imports for the jobs of this run, those of the first jobs first."""
    from unlearning_audit.plugins import registry

    scripts = {job.rule.script for job in workflow.dag.needrun_jobs()}
    stages = [rule.script for rule in workflow.rules if rule.script in scripts]
    modules = ["numpy", "snakemake.script", "scipy.optimize", "pyarrow.parquet"]
    modules += [Path(script).stem for script in stages if script]
    for scenario in PLAN.study.scenarios:
        plugins = [("attacks", attack) for attack in scenario.attacks.values()]
        plugins += [("models", scenario.model)] if scenario.model else []
        for kind, plugin in plugins:
            if plugin.name in registry.names(kind):
                modules += registry.declared(kind, plugin.name, None, "LIBRARIES")
    return [*dict.fromkeys(modules), "matplotlib.backends.backend_svg"]


def stop_timers():
    """Stop those of Snakemake's limit to jobs per time, for which it would wait at its end."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


def reported_studies():
    """The studies that this run reports on."""
    targets = set(workflow.dag_settings.targets)
    return [study for name, study in SYSTEMS.items() if name in targets] or [STUDY]
