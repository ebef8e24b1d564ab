# Everything below belongs to one study, or to one system of it, and is named plainly; nothing here takes a GPU or long.
from unlearning_audit.workflow import parameters


wildcard_constraints:
    study="|".join([STUDY, *SYSTEMS.values()]),


rule collect:
    """Gather the numbers of every method in every scenario, and which forgotten records are still recognised.

    Inputs: metrics and records of every method. Outputs: both in one file each; records as a table.
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

    Inputs: what every job wrote of itself (spec). Outputs: the ledger, and a table.
    """
    input:
        specs=reads(parameters.cost),
    output:
        **display("cost", *DISPLAYS["cost"]),
        ledger="results/{study}/cost.csv",
    log:
        "results/{study}/logs/cost.txt",
    priority: PRIORITY["cost"]
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        settings=asks(parameters.cost),
    script:
        "../scripts/cost.py"


rule verdicts:
    """Write the verdicts on all methods, their ranks and what the study can tell, and draw them.

    Inputs: comparisons of every scenario. Outputs: three tables and a figure.
    """
    input:
        comparisons=reads(parameters.verdicts),
    output:
        **display("verdicts", *DISPLAYS["verdicts"]),
    log:
        "results/{study}/logs/verdicts.txt",
    priority: PRIORITY["verdicts"]
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
    """Show what tuning found: chosen and published settings side by side, the front of all that were tried and of those
    that are audited, and where methods stand over all scenarios.

    Inputs: what tune chose, and comparisons. Outputs: two tables and two figures.
    """
    input:
        reads(parameters.tuning),
    output:
        **display("verdicts", *DISPLAYS["tuning"]),
    log:
        "results/{study}/logs/tuning.txt",
    priority: PRIORITY["verdicts"]
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

    Inputs: all numbers, and what the table asks besides, such as comparisons. `{table}`: its name in the study.
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

    Inputs: all numbers, and what the figure asks besides, such as scores. `{figure}`: its name in the study.
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
    priority: PRIORITY["figure"]
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
    """Meta-evaluation: what every metric of the study is worth, as a table and as a figure.

    Inputs: all numbers, and memberships of every scenario.
    """
    input:
        reads(parameters.meta),
        metrics=rules.collect.output.union,
    output:
        **display("metrics", *DISPLAYS["meta"]),
    log:
        "results/{study}/logs/meta.txt",
    priority: PRIORITY["meta"]
    localrule: SMALL
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("comparisons"),
    params:
        settings=asks(parameters.meta),
    script:
        "../scripts/meta.py"
