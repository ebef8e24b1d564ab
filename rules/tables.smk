# These rules write results of one study, or of one evaluation system of it. None needs a GPU or much time.
from unlearning_audit.workflow import parameters


wildcard_constraints:
    study="|".join([STUDY, *SYSTEMS.values()]),


rule collect:
    """Gather the numbers of every method in every scenario, and the forgotten records that are still recognised.

    Inputs: metrics and records of every method. Outputs: all numbers, all records, and a table of records.
    """
    input:
        metrics=reads(parameters.collect),
    output:
        **display("verdicts", *DISPLAYS["collect"]),
        union="results/{study}/metrics.csv",
        lists="results/{study}/records.csv",
    log:
        "results/{study}/logs/collect.txt",
    localrule: SMALL
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("comparisons"),
    params:
        settings=asks(parameters.collect),
    script:
        "../scripts/collect.py"


rule cost:
    """Write the cost ledger: seconds and memory of every job, by stage and method.

    Inputs: the spec of every job, in which it recorded its cost. Outputs: the ledger, and a table.
    """
    input:
        specs=reads(parameters.cost),
    output:
        **display("cost", *DISPLAYS["cost"]),
        ledger="results/{study}/cost.csv",
    log:
        "results/{study}/logs/cost.txt",
    priority: 2
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        settings=asks(parameters.cost),
    script:
        "../scripts/cost.py"


rule verdicts:
    """Write the verdicts on all methods, their ranks, and the distances that the study can detect, and draw the
    verdicts.

    Inputs: comparisons of every scenario. Outputs: three tables and a figure.
    """
    input:
        comparisons=reads(parameters.verdicts),
    output:
        **display("verdicts", *DISPLAYS["verdicts"]),
    log:
        "results/{study}/logs/verdicts.txt",
    priority: 1
    localrule: SMALL
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("comparisons"),
    params:
        settings=asks(parameters.verdicts),
    script:
        "../scripts/verdicts.py"


rule tuning:
    """Show the results of tuning: chosen options beside those of the study, the trade-off of forgetting and utility for
    all options that were tried and for those that are evaluated, and the standing of methods over all scenarios.

    Inputs: the options that tuning chose, its trials, and comparisons. Outputs: two tables and two figures.
    """
    input:
        reads(parameters.tuning),
    output:
        **display("verdicts", *DISPLAYS["tuning"]),
    log:
        "results/{study}/logs/tuning.txt",
    priority: 1
    localrule: SMALL
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("comparisons"),
    params:
        settings=asks(parameters.tuning),
    script:
        "../scripts/tuning.py"


rule table:
    """Write one table of the study as csv, Markdown and LaTeX.

    Inputs: all numbers, and further files that the table shows, such as comparisons. `{table}`: its name in the study.
    """
    input:
        reads(parameters.table, "table"),
        metrics=rules.collect.output.union,
    output:
        **display(protocols("table"), ["{table}"]),
    log:
        "results/{study}/logs/table-{table}.txt",
    wildcard_constraints:
        table="|".join(["headline", *PLAN.study.tables]),
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        settings=asks(parameters.table, "table"),
    script:
        "../scripts/tables.py"


rule figure:
    """Draw one figure of the study as svg and png.

    Inputs: all numbers, and further files that the figure shows, such as scores. `{figure}`: its name in the study.
    """
    input:
        reads(parameters.figure, "figure"),
        metrics=rules.collect.output.union,
    output:
        **display(protocols("figure"), figures=["{figure}"]),
    log:
        "results/{study}/logs/figure-{figure}.txt",
    wildcard_constraints:
        figure="|".join(PLAN.study.figures) or "none",
    priority: 1
    localrule: SMALL
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("comparisons"),
    params:
        settings=asks(parameters.figure, "figure"),
    script:
        "../scripts/figures.py"


rule meta:
    """Evaluate the metrics themselves (meta-evaluation), as a table and as a figure.

    Inputs: all numbers, and memberships of every scenario.
    """
    input:
        reads(parameters.meta),
        metrics=rules.collect.output.union,
    output:
        **display("metrics", *DISPLAYS["meta"]),
    log:
        "results/{study}/logs/meta.txt",
    priority: 1
    localrule: SMALL
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("comparisons"),
    params:
        settings=asks(parameters.meta),
    script:
        "../scripts/meta.py"
